"""A fetcher at work: rounds on the loop, with leaders that are gone and come back."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from engine.client.errors import Unreachable
from engine.host.promise import Promise
from engine.ids import uuid_text
from engine.kafka_errors import OFFSET_OUT_OF_RANGE
from engine.log.local_log import LocalLog
from engine.replication.following.fetch_state import FetchPhase, PartitionResponse
from engine.replication.following.leader_end_point import LeaderEndPoint
from engine.replication.following.replica_fetcher import ReplicaFetcher
from engine.replication.partition_types import PartitionState
from engine.wire.structs import Struct
from tests.unit.broker.memory_cluster import T0, MemoryCluster
from tests.unit.host.listening import Told
from tests.unit.log.writing import sent

NAME = "kafka.server.ReplicaFetcherThread"


def followed(
    *, is_one_process: bool = False, **settings: str
) -> tuple[MemoryCluster, ReplicaFetcher]:
    """Return a cluster whose broker 2 follows broker 1, and that fetcher."""
    cluster = MemoryCluster(is_one_process=is_one_process, **settings)
    cluster.create_topic(replicas=[(1, 2)])
    cluster.pass_time(2000)
    return cluster, cluster.brokers[2].storage.fetchers.fetchers[1, 0]


def test_a_lost_leader_is_logged_once_for_each_reason(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster, fetcher = followed()
    caplog.set_level(logging.WARNING, NAME)
    cluster.brokers[1].server.close("gone for a while")
    cluster.pass_time(5000)
    told = [record for record in caplog.records if "is not fetched from" in record.getMessage()]
    assert 1 <= len(told) <= 2
    state = fetcher.followed.states[T0]
    assert state.delayed_until_ms is not None


def test_a_leader_that_is_not_known_for_a_while_is_found_again_without_a_back_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster, _ = followed(is_one_process=True, replica_fetch_backoff_ms="0")
    with monkeypatch.context() as patch:
        patch.setattr(LeaderEndPoint, "ensure_connected", lambda _leader: False)
        cluster.pass_time(1000)
    cluster.pass_time(100)
    assert 0 == cluster.produce(1, 3).code()
    assert 3 == cluster.partition(2).log.log_end_offset


def test_a_silent_leader_is_waited_for_as_long_as_the_setting_says(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster, _ = followed(replica_socket_timeout_ms="2000")
    caplog.set_level(logging.WARNING, NAME)
    port = cluster.brokers[1].ports["PLAINTEXT"]
    cluster.brokers[1].server.close("gone")
    cluster.network.listen("here", port, lambda _connection: None, Told().options())
    cluster.pass_time(1000)
    caplog.clear()
    cluster.pass_time(1500)
    assert "no answer within 2 s" not in caplog.text
    cluster.pass_time(1500)
    assert "no answer within 2 s" in caplog.text


def test_what_rests_is_forgotten_by_its_leader_until_it_is_due() -> None:
    cluster, fetcher = followed()
    assert fetcher._leader.session.holds_partitions
    fetcher.followed.unreached([T0])
    cluster.pass_time(700)
    assert not fetcher._leader.session.holds_partitions
    cluster.pass_time(1000)
    assert fetcher._leader.session.holds_partitions
    assert 0 == cluster.produce(1, 3).code()
    assert 3 == cluster.partition(2).log.log_end_offset


def test_what_is_out_of_range_is_requested_and_goes_on() -> None:
    cluster, fetcher = followed()
    fetcher.followed.start_cycle()
    fetcher.followed.apply_responses([(T0, PartitionResponse(OFFSET_OUT_OF_RANGE))])
    assert {T0: 0} == fetcher.followed.requested_ends()
    cluster.pass_time(1000)
    assert {} == fetcher.followed.requested_ends()
    assert 0 == cluster.produce(1, 3).code()
    assert 3 == cluster.partition(2).log.log_end_offset


def test_a_fetcher_that_is_closed_drops_what_is_on_its_way() -> None:
    cluster, fetcher = followed(is_one_process=True)
    fetcher.close()
    assert 0 == cluster.produce(1, 3, acks=1).code()
    cluster.pass_time(1000)
    assert 0 == cluster.partition(2).log.log_end_offset


def test_rounds_that_find_nothing_wait_at_the_leader() -> None:
    cluster, _ = followed(is_one_process=True)
    serve = cluster.brokers[1].serve_local
    served: list[str] = []

    def noting(name: str, version: int, request: Struct) -> Promise[Any]:
        served.append(name)
        return serve(name, version, request)

    cluster.local[1] = noting
    cluster.pass_time(5000)
    assert 9 <= served.count("Fetch") <= 11


def test_a_session_lasts_while_nothing_happens(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, NAME)
    cluster, _ = followed()
    cluster.pass_time(5000)
    assert not [record for record in caplog.records if "begins again" in record.getMessage()]


@pytest.mark.parametrize("is_one_process", [True, False])
def test_a_watermark_that_was_passed_over_comes_again(is_one_process: bool) -> None:
    cluster, fetcher = followed(is_one_process=is_one_process)
    assert 0 == cluster.produce(1, 3, acks=1).code()
    # The response that tells the watermark comes to a log that is about its range by then.
    fetcher.followed.start_cycle()
    fetcher.followed.apply_responses([(T0, PartitionResponse(OFFSET_OUT_OF_RANGE))])
    cluster.pass_time(5000)
    assert 3 == cluster.partition(2).high_watermark


def make_again(cluster: MemoryCluster, topic_id: bytes) -> None:
    """Let broker 1 lead a new topic of the name, and broker 2 know of it but follow the old one."""
    storage, epoch = cluster.brokers[1].storage, cluster.partition(1).leader_epoch
    storage.replica_manager.remove(T0)
    storage.logs.delete([T0])
    for broker in cluster.brokers.values():
        cache = broker.metadata_cache
        known = {T0: cache.partition(T0)}
        cache.update(cache.controller_id, list(cache.brokers.values()), known, {"t": topic_id})
    state = PartitionState(1, epoch, (1, 2), 0, (1, 2))
    results = storage.leadership.apply_states(
        {T0: state}, frozenset([T0]), {"t": uuid_text(topic_id)}
    )
    assert {T0: None} == results


@pytest.mark.parametrize("is_one_process", [True, False])
def test_a_follower_of_a_topic_takes_no_records_of_another_that_has_its_name(
    is_one_process: bool,
) -> None:
    cluster, _ = followed(is_one_process=is_one_process)
    assert 0 == cluster.produce(1, 3).code()
    cluster.pass_time(1000)
    before = cluster.content(2)
    make_again(cluster, bytes(15) + b"7")
    cluster.pass_time(3000)
    requested = [cluster.produce(1, 2) for _ in range(3)]
    cluster.pass_time(3000)
    assert before == cluster.content(2)
    assert (6, 0) == (cluster.partition(1).log.log_end_offset, cluster.partition(1).high_watermark)
    assert [None] * 3 == [each.code() for each in requested], "who is in sync has not got them"


@pytest.mark.parametrize("is_one_process", [True, False])
def test_where_an_epoch_behind_a_gap_starts_is_requested(is_one_process: bool) -> None:
    cluster, _ = followed(is_one_process=is_one_process)
    led, own = clean_away(cluster)
    cluster.pass_time(1000)
    assert 10 == own.log_end_offset
    assert ((0, 0), (4, 5)) == own.epochs.entries == led.epochs.entries
    assert 10 == cluster.partition(2).high_watermark


def test_a_leader_that_is_lost_before_it_answers_an_epoch_is_asked_again() -> None:
    cluster, fetcher = followed(is_one_process=True)
    serve = cluster.brokers[1].serve_local
    failures = [Unreachable("broker", 1, "it is gone")]

    def failing_once(name: str, version: int, request: Struct) -> Promise[Any]:
        if name == "OffsetForLeaderEpoch" and failures:
            return Promise.failed(failures.pop())
        return serve(name, version, request)

    cluster.local[1] = failing_once
    led, own = clean_away(cluster)
    cluster.pass_time(800)
    assert not failures
    assert FetchPhase.FETCHING_EPOCH is fetcher.followed.states[T0].phase
    assert not fetcher._leader.session.holds_partitions
    cluster.pass_time(1500)
    assert led.epochs.entries == own.epochs.entries
    assert 10 == cluster.partition(2).high_watermark


def clean_away(cluster: MemoryCluster) -> tuple[LocalLog, LocalLog]:
    """Have broker 1 clean away all between its first three records and a tenth, of epoch 4.

    Returns its log, in which that epoch starts at 5, and the follower's.
    """
    assert 0 == cluster.produce(1, 3).code()
    cluster.pass_time(1000)
    # As four elections later.
    for broker_id in (1, 2):
        cluster.partition(broker_id).leader_epoch = 4
    cluster.brokers[2].storage.fetchers.fetchers[1, 0].followed.follow(T0, 4)
    led = cluster.partition(1).log
    led.epochs.assign(4, 5)
    led.append_as_follower(sent(base_offset=9, leader_epoch=4), 0)
    return led, cluster.partition(2).log
