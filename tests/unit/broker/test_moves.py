"""Partitions move between three whole brokers while somebody produces.

Source: RSN-9, C6.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from engine.replication.effects import FetchFrom
from engine.wire.structs import message_class
from tests.unit.broker.memory_broker import LOG_DIR
from tests.unit.broker.memory_cluster import T0, MemoryCluster, Requested


class Load:
    """A client that produces to the current leader, again until it is acknowledged."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self._cluster = cluster
        self._requested: Requested | None = None
        self.acknowledged = 0
        self.refused = 0

    def step(self) -> None:
        """Take a response, and send the next record or the same one again."""
        requested = self._requested
        if requested is not None:
            code = requested.code()
            if code is None and requested.is_open:
                return
            if code == 0:
                self.acknowledged += 1
            else:
                self.refused += 1
        leader = self._cluster.stored().leader
        if leader in self._cluster.brokers:
            self._requested = self._cluster.produce(leader)

    def run(self, duration_ms: int) -> None:
        """Produce for a time, twenty times a second."""
        for _ in range(duration_ms // 50):
            self.step()
            self._cluster.pass_time(50, 50)

    def drain(self) -> None:
        """Wait for the last response."""
        before = self.acknowledged
        self.run(500)
        assert self.acknowledged > before


@pytest.fixture(params=[True, False], ids=["one process", "network"])
def make(request: pytest.FixtureRequest) -> Callable[..., MemoryCluster]:
    """Return what makes a cluster with topic t on brokers 1 and 2."""

    def cluster(replicas: Sequence[int] = (1, 2), **settings: str) -> MemoryCluster:
        made = MemoryCluster(is_one_process=request.param, **settings)
        made.create_topic("t", [replicas], min_insync_replicas="2")
        return made

    return cluster


def controller_of(cluster: MemoryCluster) -> int:
    (active,) = [id_ for id_, broker in cluster.brokers.items() if broker.controller.is_active]
    return active


def move(cluster: MemoryCluster, target: Sequence[int] | None) -> tuple[int, str | None]:
    """Ask for other replicas of t-0; returns code and message."""
    request = message_class("AlterPartitionReassignmentsRequest")
    row = request.ReassignablePartition(
        partition_index=0, replicas=None if target is None else list(target)
    )
    topic = request.ReassignableTopic(name="t", partitions=[row])
    name = "AlterPartitionReassignments"
    requested = cluster.ask(controller_of(cluster), name, 0, timeout_ms=1000, topics=[topic])
    (answered,) = requested.answer().responses
    (result,) = answered.partitions
    return result.error_code, result.error_message


def moving(cluster: MemoryCluster) -> list[tuple[list[int], list[int], list[int]]]:
    requested = cluster.ask(
        controller_of(cluster), "ListPartitionReassignments", 0, timeout_ms=1000, topics=None
    )
    return [
        (row.replicas, row.adding_replicas, row.removing_replicas)
        for topic in requested.answer().topics
        for row in topic.partitions
    ]


def hold(cluster: MemoryCluster, broker_id: int) -> Callable[[], None]:
    """Let a broker begin to follow nobody; returns what lets it."""
    fetching = cluster.brokers[broker_id].storage.fetchers
    fetch_from = fetching.fetch_from
    held: list[FetchFrom] = []
    fetching.fetch_from = held.append  # type: ignore[method-assign]

    def release() -> None:
        fetching.fetch_from = fetch_from  # type: ignore[method-assign]
        for order in held[-1:]:
            fetch_from(order)

    return release


def directories(cluster: MemoryCluster, broker_id: int) -> list[str]:
    """Return the directories of partitions on the disk of a broker."""
    names = cluster.disks[broker_id].list_dir(LOG_DIR)
    return [name for name in names if name.startswith("t-")]


def assert_moved(cluster: MemoryCluster, load: Load, *replicas: int) -> None:
    """Assert that replicas have all that was acknowledged, byte for byte, and nobody else any."""
    load.drain()
    cluster.pass_time(1000)
    assert [] == moving(cluster)
    assert set(replicas) == set(cluster.stored().isr)
    contents = {cluster.content(broker_id) for broker_id in replicas}
    assert 1 == len(contents)
    ends = {cluster.partition(broker_id).log.log_end_offset for broker_id in replicas}
    (end,) = ends
    # What was refused may have been appended all the same, and what waits too.
    assert load.acknowledged <= end <= load.acknowledged + load.refused + 1
    for broker_id in set(cluster.brokers) - set(replicas):
        assert T0 not in cluster.brokers[broker_id].storage.replica_manager.partitions
    assert [] == cluster.fatal


def test_a_partition_moves_under_load_and_nothing_is_lost(
    make: Callable[..., MemoryCluster],
) -> None:
    cluster = make(log_segment_delete_delay_ms="1000")
    load = Load(cluster)
    load.run(2000)
    assert (0, None) == move(cluster, (2, 3))
    load.run(3000)
    assert_moved(cluster, load, 2, 3)
    assert 2 == cluster.stored().leader
    cluster.pass_time(2000)
    assert [] == directories(cluster, 1)
    assert ["t-0"] == directories(cluster, 3)
    # The leader changed once: the client heard of it and asked the new one.
    assert 3 >= load.refused
    assert 50 < load.acknowledged


def test_a_partition_moves_to_a_broker_that_had_none_of_it_and_back(
    make: Callable[..., MemoryCluster],
) -> None:
    cluster = make()
    load = Load(cluster)
    load.run(500)
    for target in ((3, 1), (1, 2), (3, 2), (2, 1)):
        assert (0, None) == move(cluster, target)
        load.run(500)
        assert_moved(cluster, load, *target)
        assert cluster.stored().leader in target


def test_a_move_waits_for_a_target_that_is_late_and_is_cancelled(
    make: Callable[..., MemoryCluster],
) -> None:
    cluster = make()
    load = Load(cluster)
    load.run(500)
    release = hold(cluster, 3)
    assert (0, None) == move(cluster, (1, 3))
    load.run(1000)
    assert [([1, 3, 2], [3], [2])] == moving(cluster)
    assert (0, None) == move(cluster, None)
    load.run(1000)
    assert_moved(cluster, load, 1, 2)
    assert 1 == cluster.stored().leader
    release()
    load.run(1000)
    assert_moved(cluster, load, 1, 2)
    assert (85, "No partition reassignment is in progress.") == move(cluster, None)


def test_a_move_goes_on_when_the_controller_loses_its_power(
    make: Callable[..., MemoryCluster],
) -> None:
    cluster = make(replicas=(2, 3))
    assert 1 == controller_of(cluster)
    load = Load(cluster)
    load.run(1000)
    hold(cluster, 1)
    assert (0, None) == move(cluster, (3, 1))
    load.run(300)
    assert [([3, 1, 2], [1], [2])] == moving(cluster)
    cluster.cut_power(1)
    load.run(1000)
    assert controller_of(cluster) in (2, 3)
    assert [([3, 1, 2], [1], [2])] == moving(cluster)
    cluster.start(1)
    load.run(4000)
    assert_moved(cluster, load, 3, 1)


def test_a_move_goes_on_when_the_old_leader_loses_its_power(
    make: Callable[..., MemoryCluster],
) -> None:
    cluster = make(replicas=(2, 3), min_insync_replicas="1")
    load = Load(cluster)
    load.run(1000)
    release = hold(cluster, 1)
    assert (0, None) == move(cluster, (3, 1))
    cluster.cut_power(2)
    load.run(1000)
    assert 3 == cluster.stored().leader
    release()
    load.run(2000)
    assert_moved(cluster, load, 3, 1)
    cluster.start(2)
    cluster.pass_time(2000)
    assert_moved(cluster, load, 3, 1)
