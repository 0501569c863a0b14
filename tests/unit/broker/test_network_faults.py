"""Brokers that do not reach each other, or the store, for a while: in one process and more."""

from __future__ import annotations

import pytest

from engine.broker.peers import LocalChannel
from engine.host.link_faults import STORE, LinkFaults, SlowPlace
from engine.kafka_errors import NONE, NOT_LEADER_OR_FOLLOWER, REQUEST_TIMED_OUT
from tests.unit.broker.memory_cluster import SESSION_MS, T0, MemoryCluster

HEALED = LinkFaults()
LAG_MS = 3000
SETTINGS = {"replica_lag_time_max_ms": str(LAG_MS), "min_insync_replicas": "2"}
modes = pytest.mark.parametrize("is_one_process", [True, False], ids=["one-process", "processes"])


def opened(*, is_one_process: bool) -> MemoryCluster:
    cluster = MemoryCluster(is_one_process=is_one_process, **SETTINGS)
    cluster.create_topic(replicas=[(1, 2, 3)])
    cluster.pass_time(2000)
    return cluster


def part(cluster: MemoryCluster, *groups: list[str]) -> None:
    cluster.links.set_faults(HEALED.with_partition(groups))


def fetches_directly(cluster: MemoryCluster, follower: int, leader: int) -> bool:
    return isinstance(
        cluster.brokers[follower].storage.fetchers.fetchers[leader, 0]._leader._channel,
        LocalChannel,
    )


@modes
def test_a_follower_that_is_cut_off_leaves_the_in_sync_set_and_comes_back(
    *, is_one_process: bool
) -> None:
    cluster = opened(is_one_process=is_one_process)
    part(cluster, ["1", "2", STORE], ["3"])
    waiting = cluster.produce(1)
    assert waiting.code() is None
    cluster.pass_time(2 * LAG_MS)
    assert (NONE, (1, 2)) == (waiting.code(), cluster.stored().isr)
    cluster.links.set_faults(HEALED)
    cluster.pass_time(5000)
    assert {1, 2, 3} == set(cluster.stored().isr)
    assert cluster.content(1) == cluster.content(3)


@modes
def test_an_isolated_leader_and_controller_acknowledges_nothing_that_is_lost(
    *, is_one_process: bool
) -> None:
    cluster = opened(is_one_process=is_one_process)
    assert cluster.brokers[1].controller.is_active
    assert NONE == cluster.produce(1).code()
    part(cluster, ["1"], ["2", "3", STORE])
    # Nobody told broker 1: it takes what one replica is enough for, and what waits for others.
    lost = cluster.produce(1, 5, acks=1)
    waiting = cluster.produce(1, 7)
    assert NONE == lost.code()
    cluster.pass_time(SESSION_MS + 2000)
    state = cluster.stored()
    assert (2, (2, 3)) == (state.leader, state.isr)
    assert cluster.brokers[1].controller.is_active
    kept = cluster.produce(2, 2)
    cluster.pass_time(1000)
    assert NONE == kept.code()
    assert waiting.code() is None
    cluster.pass_time(60_000)
    assert REQUEST_TIMED_OUT == waiting.code()
    cluster.links.set_faults(HEALED)
    cluster.pass_time(5000)
    # Its controller has resigned, and its log is that of the leader: 6 and more are cut.
    assert [1] == [sum(b.controller.is_active for b in cluster.brokers.values())]
    assert {1, 2, 3} == set(cluster.stored().isr)
    assert {1: (3, 3), 2: (3, 3), 3: (3, 3)} == cluster.ends()
    assert cluster.content(2) == cluster.content(1)
    assert NOT_LEADER_OR_FOLLOWER == cluster.produce(1).code()


@modes
def test_without_the_store_brokers_go_on_and_register_again(*, is_one_process: bool) -> None:
    cluster = opened(is_one_process=is_one_process)
    epochs = [broker.epoch for broker in cluster.brokers.values()]
    part(cluster, ["1", "2", "3"], [STORE])
    cluster.pass_time(2 * SESSION_MS)
    assert [] == [id_ for id_ in cluster.store.session_ids() if cluster.store.ephemerals(id_)]
    written = cluster.produce(1)
    cluster.pass_time(1000)
    assert NONE == written.code()
    cluster.links.set_faults(HEALED)
    cluster.pass_time(5000)
    assert all(new.epoch > old for new, old in zip(cluster.brokers.values(), epochs, strict=True))
    assert [1] == [sum(b.controller.is_active for b in cluster.brokers.values())]
    assert {1, 2, 3} == set(cluster.stored().isr)


@modes
def test_a_slow_follower_holds_up_what_waits_for_all(*, is_one_process: bool) -> None:
    cluster = opened(is_one_process=is_one_process)
    cluster.links.set_faults(HEALED.with_slow("3", SlowPlace(delay_ms=400)))
    cluster.pass_time(3000)
    assert {1, 2, 3} == set(cluster.stored().isr)
    waiting = cluster.produce(1)
    # The records take one delay, and the fetch that tells of them another.
    cluster.pass_time(700)
    assert waiting.code() is None
    cluster.pass_time(2000)
    assert NONE == waiting.code()


def test_a_fault_has_brokers_of_one_process_connect_and_heal_takes_that_back() -> None:
    cluster = opened(is_one_process=True)
    connections = len(cluster.network.listeners)
    before = cluster.links.channel_count
    assert fetches_directly(cluster, 2, 1)
    cluster.links.set_faults(HEALED.with_slow("3", SlowPlace(delay_ms=5)))
    cluster.pass_time(3000)
    assert fetches_directly(cluster, 2, 1)
    assert not fetches_directly(cluster, 3, 1)
    assert cluster.links.channel_count > before
    cluster.links.set_faults(HEALED)
    cluster.pass_time(3000)
    assert fetches_directly(cluster, 3, 1)
    assert (before, connections) == (cluster.links.channel_count, len(cluster.network.listeners))


@modes
def test_a_broker_stops_over_a_cut_link(*, is_one_process: bool) -> None:
    cluster = opened(is_one_process=is_one_process)
    part(cluster, ["1", "2"], ["3"], [STORE])
    cluster.pass_time(1000)
    stopping = cluster.begin_stop(3)
    cluster.pass_time(200_000)
    assert stopping.is_kept
    cluster.links.set_faults(HEALED)
    cluster.pass_time(5000)
    assert 2 == len(cluster.brokers)
    assert {1, 2} == set(cluster.stored().isr)


def test_a_broker_that_no_controller_reached_deletes_no_records_by_time() -> None:
    # Its checkpoint says that they are committed; its replica does not exist before it is told.
    cluster = MemoryCluster(
        is_one_process=False,
        log_retention_check_interval_ms="1000",
        log_initial_task_delay_ms="500",
    )
    cluster.create_topic(retention_ms="10000")
    assert NONE == cluster.produce(1, 3).code()
    cluster.pass_time(2000)
    cluster.stop(3)
    part(cluster, ["1", "2"], ["3"])
    started = cluster.start(3)
    assert 3 == started.storage.logs.checkpointed_high_watermark(T0)
    cluster.pass_time(20_000)
    assert 3 == cluster.partition(1).log.log_start_offset
    assert 0 == started.storage.logs.logs[T0].log_start_offset
    cluster.links.set_faults(HEALED)
    cluster.pass_time(5000)
    assert 3 == cluster.partition(3).log.log_start_offset
