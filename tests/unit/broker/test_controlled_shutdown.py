"""A broker that stops has its leaders moved while it still serves."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from engine.cluster.cluster import Cluster
from engine.config.settings import BrokerSettings
from engine.host.coroutine import drive
from engine.host.promise import Promise
from engine.znode.client import ZnodeClient
from tests.unit.broker.memory_cluster import T0, MemoryCluster

NOT_LEADER = 6
BACKOFF_MS = 5000


class _NoStore:
    """For a cluster that opens no broker."""

    def client(self, session_timeout_ms: int) -> ZnodeClient:
        raise AssertionError(session_timeout_ms)


def _no_settings(_broker_id: int, _port: int | None) -> BrokerSettings:
    raise AssertionError


@pytest.fixture(params=[True, False], ids=["one process", "network"])
def make(request: pytest.FixtureRequest) -> Callable[..., MemoryCluster]:
    """Return what makes a cluster whose brokers reach each other in one of both ways."""

    def cluster(**settings: str) -> MemoryCluster:
        cluster = MemoryCluster(is_one_process=request.param, **settings)
        # The controller tries again what a broker could not hear yet while it opened.
        cluster.pass_time(1000)
        return cluster

    return cluster


@pytest.mark.parametrize("broker_id", [1, 3])
def test_leaders_move_before_the_connections_close(
    make: Callable[..., MemoryCluster], broker_id: int, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = make()
    cluster.create_topic(replicas=[(broker_id, 2)])
    assert 0 == cluster.produce(broker_id, 3).code()
    with caplog.at_level(logging.INFO):
        cluster.stop(broker_id)
    said = "\n".join(caplog.messages)
    moved = said.index("Controlled shutdown request returned successfully after")
    assert said.index("Starting controlled shutdown") < moved < said.index("has stopped")
    # One more epoch, and not two: the session's end had nothing left to move.
    state = cluster.stored()
    assert (2, 1, (2,)) == (state.leader, state.leader_epoch, state.isr)
    assert 0 == cluster.produce(2, 2).code()


def test_a_producer_that_waits_for_all_in_sync_replicas_is_sent_to_the_next_leader(
    make: Callable[..., MemoryCluster],
) -> None:
    cluster = make()
    cluster.create_topic(replicas=[(3, 2)])
    cluster.brokers[2].storage.fetchers.stop(T0)
    waiting = cluster.produce(3)
    assert waiting.code() is None
    # The connection is there still when the leader changes: the client hears why.
    cluster.stop(3)
    assert NOT_LEADER == waiting.code()


def test_partitions_that_nobody_can_take_are_tried_again_and_left(
    make: Callable[..., MemoryCluster], caplog: pytest.LogCaptureFixture
) -> None:
    cluster = make()
    cluster.create_topic(replicas=[(3, 2)])
    cluster.cut_power(2)
    assert (3,) == cluster.stored().isr
    with caplog.at_level(logging.INFO):
        stopping = cluster.begin_stop(3)
        assert not stopping.is_kept
        assert 0 == cluster.produce(3).code()
        cluster.pass_time(2 * BACKOFF_MS)
    stopping.result()
    said = [one.message for one in caplog.records if one.filename == "controlled_shutdown.py"]
    assert [
        "Starting controlled shutdown",
        "Controlled shutdown request returned after 0ms with 1 partitions remaining to move",
        "Retrying controlled shutdown (2 retries remaining)",
        "Controlled shutdown request returned after 0ms with 1 partitions remaining to move",
        "Retrying controlled shutdown (1 retries remaining)",
        "Controlled shutdown request returned after 0ms with 1 partitions remaining to move",
        "Proceeding to do an unclean shutdown as all the controlled shutdown attempts failed",
    ] == said


def test_a_stop_may_be_hurried(make: Callable[..., MemoryCluster]) -> None:
    cluster = make()
    cluster.create_topic(replicas=[(3, 2)])
    cluster.cut_power(2)
    broker, stopping = cluster.brokers[3], cluster.begin_stop(3)
    broker.stop_waiting()
    cluster.timers.run_until_idle()
    assert stopping.is_kept


def test_it_may_be_switched_off(make: Callable[..., MemoryCluster]) -> None:
    cluster = make(controlled_shutdown_enable="false")
    cluster.create_topic(replicas=[(3, 2)])
    cluster.cut_power(2)
    cluster.stop(3)
    assert (-1, (3,)) == (cluster.stored().leader, cluster.stored().isr)


def test_a_number_of_tries_and_a_pause_are_as_they_are_set(
    make: Callable[..., MemoryCluster],
) -> None:
    cluster = make(controlled_shutdown_max_retries="2", controlled_shutdown_retry_backoff_ms="1000")
    cluster.create_topic(replicas=[(3, 2)])
    cluster.cut_power(2)
    stopping = cluster.begin_stop(3)
    cluster.pass_time(900)
    assert not stopping.is_kept
    cluster.pass_time(100)
    assert stopping.is_kept


def test_a_controller_that_is_lost_meanwhile_is_tried_again_as_its_successor(
    make: Callable[..., MemoryCluster],
) -> None:
    cluster = make()
    cluster.create_topic(replicas=[(3, 2)])
    assert cluster.brokers[1].controller.is_active
    cache = cluster.brokers[3].metadata_cache
    cache.update(None, list(cache.brokers.values()), {}, {})
    stopping = cluster.begin_stop(3)
    assert not stopping.is_kept
    cluster.cut_power(1)
    cluster.timers.run_until_idle()
    stopping.result()
    assert (2, 1) == (cluster.stored().leader, cluster.stored().leader_epoch)


def test_a_controller_of_this_process_that_does_not_answer_is_given_up_too(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster = MemoryCluster(is_one_process=True, controlled_shutdown_retry_backoff_ms="1000")
    cluster.create_topic(replicas=[(1, 2)])
    cluster.pass_time(2000)
    # It waits for a metadata store that is gone, itself included.
    cluster.local[1] = lambda _name, _version, _request: Promise()
    stopping = cluster.begin_stop(1)
    cluster.pass_time(3 * 30_000 + 1_000, 1_000)
    assert not stopping.is_kept
    cluster.pass_time(2_000, 1_000)
    assert stopping.is_kept
    assert 3 == sum("no answer within 30 s" in line for line in caplog.messages)


def test_one_that_is_alone_asks_for_nothing(make: Callable[..., MemoryCluster]) -> None:
    cluster = make()
    cluster.create_topic(replicas=[(1, 2, 3)])
    cluster.stop(3)
    cluster.stop(2)
    assert (1,) == cluster.stored().isr
    cluster.stop(1)
    assert 1 == cluster.stored().leader


def test_where_all_stop_nothing_moves(make: Callable[..., MemoryCluster]) -> None:
    cluster = make()
    cluster.create_topic(replicas=[(3, 2, 1)])
    before = cluster.stored()
    brokers = list(cluster.brokers.values())
    whole = Cluster(_NoStore(), brokers[0].host, _no_settings, cluster.fatal.append)
    whole.brokers.extend(brokers)
    drive(whole.close()).result()
    cluster.timers.run_until_idle()
    assert before == cluster.stored()
