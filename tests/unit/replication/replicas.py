"""Partitions in memory, and requests to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from engine.host.memory import ManualClock
from engine.host.ports import LogDirOffline
from engine.host.promise import Promise
from engine.kafka_errors import INELIGIBLE_REPLICA
from engine.log.local_log import LocalLog
from engine.log.log_config import LogConfig
from engine.log.segment import Segment
from engine.model import TopicPartition
from engine.replication.delayed_fetch import FetchResults
from engine.replication.delayed_produce import ProduceResult
from engine.replication.effects import Effect, FetchFrom, ProposeIsr
from engine.replication.partition import Partition
from engine.replication.partition_types import (
    FetchParams,
    FetchSpec,
    IsrDecision,
    PartitionState,
    ReplicationConfig,
)
from engine.replication.ports import ReplicaManagerPorts
from engine.replication.replica_manager import ReplicaManager
from engine.replication.replication_quota import UNBOUNDED, ReplicationQuota
from engine.replication.watermark import Isolation
from tests.unit.log.writing import PARTITION, SMALL, new_log

LEADER = 1
FOLLOWER = FetchParams(replica_id=2, isolation=Isolation.LOG_END)
CONSUMER = FetchParams()


def state(
    isr: tuple[int, ...] = (1,),
    *,
    replicas: tuple[int, ...] | None = None,
    leader: int = LEADER,
    epoch: int = 0,
    partition_epoch: int = 0,
) -> PartitionState:
    return PartitionState(leader, epoch, isr, partition_epoch, replicas or isr)


def partition_of(
    clock: ManualClock | None = None,
    *,
    log: LocalLog | None = None,
    log_config: LogConfig = SMALL,
    min_isr: int = 1,
    **more: Any,
) -> Partition:
    """Return a partition of broker 1 without a role."""
    config = ReplicationConfig(min_insync_replicas=min_isr)
    log = log or new_log(log_config)
    more.setdefault("is_alive", lambda _broker_id: True)
    return Partition(LEADER, log, clock or ManualClock(), config=config, **more)


def log_of(topic_partition: TopicPartition, config: LogConfig = SMALL) -> LocalLog:
    """Return an empty log of a partition, on a disk of its own."""
    log = new_log(config)
    log.topic_partition = topic_partition
    return log


def leader_of(
    isr: tuple[int, ...] = (1,), clock: ManualClock | None = None, **more: Any
) -> Partition:
    """Return a partition that broker 1 leads, of replicas 1 to 3 if the set has others."""
    partition = partition_of(clock, **more)
    replicas = isr if isr == (LEADER,) else (1, 2, 3)
    partition.become_leader(state(isr, replicas=replicas))
    return partition


def fetched(partition: Partition, offset: int, replica_id: int = 2) -> tuple[Effect, ...]:
    """Note a follower's fetch at an offset."""
    spec = FetchSpec(offset, 1 << 20, log_start_offset=0)
    return partition.record_follower_fetch(replica_id, spec, partition.log.log_end_offset)


REJECTED = IsrDecision(INELIGIBLE_REPLICA)


def committed(
    partition: Partition, isr: tuple[int, ...], leader_epoch: int, partition_epoch: int
) -> tuple[Effect, ...]:
    """Let the controller grant what is in flight; a set is proposed first if there is none."""
    if partition.in_sync.pending is None:
        partition.in_sync = partition.in_sync._replace(pending=isr)
    assert partition.in_sync.pending is not None
    proposal = ProposeIsr(
        partition.topic_partition,
        partition.in_sync.pending,
        partition.leader_epoch,
        partition.partition_epoch,
    )
    return partition.on_isr_decided(proposal, IsrDecision(0, isr, leader_epoch, partition_epoch))


class NotedFetching:
    """Notes what is to be fetched from whom."""

    def __init__(self) -> None:
        self.orders: list[FetchFrom] = []
        self.stopped: list[TopicPartition] = []

    def fetch_from(self, order: FetchFrom) -> None:
        self.orders.append(order)

    def stop(self, topic_partition: TopicPartition) -> None:
        self.stopped.append(topic_partition)


class NotedMoving:
    """Notes which moves are to go on, and which not."""

    def __init__(self) -> None:
        self.resumed: list[TopicPartition] = []
        self.stopped: list[TopicPartition] = []

    def resume(self, topic_partition: TopicPartition) -> None:
        self.resumed.append(topic_partition)

    def stop(self, topic_partition: TopicPartition) -> None:
        self.stopped.append(topic_partition)


def quota_of(
    clock: ManualClock, throttled: Sequence[TopicPartition] = (), bound_per_s: int = UNBOUNDED
) -> ReplicationQuota:
    """Return a throttle with Kafka's windows."""
    quota = ReplicationQuota(clock, lambda key: key in throttled, window_count=11, window_ms=1000)
    quota.bound_per_s = bound_per_s
    return quota


def ports_of(
    *,
    is_known: Callable[[TopicPartition], bool] = lambda _key: False,
    proposed: list[ProposeIsr] | None = None,
    fetching: NotedFetching | None = None,
    moving: NotedMoving | None = None,
    offline: list[LogDirOffline] | None = None,
    deadlines: list[int] | None = None,
    leader_quota: ReplicationQuota | None = None,
) -> ReplicaManagerPorts:
    """Return ports that note what they are told."""
    return ReplicaManagerPorts(
        is_known,
        [].append if proposed is None else proposed.append,
        fetching or NotedFetching(),
        moving or NotedMoving(),
        [].append if offline is None else offline.append,
        [].append if deadlines is None else deadlines.append,
        None,
        leader_quota or quota_of(ManualClock()),
    )


def borrowed_segments(monkeypatch: pytest.MonkeyPatch) -> list[Segment]:
    """Return the segments whose files are lent, as they are at any time from now on."""
    borrowed: list[Segment] = []
    borrow, give_back = Segment.borrow, Segment.give_back

    def noting(segment: Segment) -> None:
        borrowed.append(segment)
        borrow(segment)

    def striking(segment: Segment) -> None:
        borrowed.remove(segment)
        give_back(segment)

    monkeypatch.setattr(Segment, "borrow", noting)
    monkeypatch.setattr(Segment, "give_back", striking)
    return borrowed


def when_there(answer: Any, take: Callable[[Any], object]) -> None:
    """Take an answer, at once or when its promise is kept."""
    if isinstance(answer, Promise):
        answer.watch(lambda: take(answer.result()))
    else:
        take(answer)


class Broker:
    """A manager with one partition in its only log directory, and all it answered."""

    def __init__(self, isr: tuple[int, ...] = (1,), **more: Any) -> None:
        self.clock = ManualClock()
        self.proposed: list[ProposeIsr] = []
        self.fetching = NotedFetching()
        self.moving = NotedMoving()
        self.deadlines: list[int] = []
        self.known: set[TopicPartition] = set()
        self.quota = quota_of(self.clock, [PARTITION])
        ports = ports_of(
            is_known=self.known.__contains__,
            proposed=self.proposed,
            fetching=self.fetching,
            moving=self.moving,
            deadlines=self.deadlines,
            leader_quota=self.quota,
        )._replace(on_log_dir_offline=self._directory_failed)
        self.manager = ReplicaManager(self.clock, ports)
        self.partition = leader_of(isr, self.clock, **more)
        self.manager.add(self.partition)
        self.produced: list[dict[TopicPartition, ProduceResult]] = []
        self.fetches: list[FetchResults] = []

    def _directory_failed(self, _failure: LogDirOffline) -> None:
        """Let all partitions go: they are in one directory."""
        self.manager.mark_offline(*self.manager.partitions)

    def produce(
        self,
        batches: memoryview,
        acks: int = -1,
        *,
        timeout_ms: int = 1000,
        to: tuple[TopicPartition, ...] = (PARTITION,),
    ) -> None:
        entries = {key: memoryview(bytearray(batches)) for key in to}
        when_there(self.manager.append_records(entries, acks, timeout_ms), self.produced.append)

    def fetch(
        self, offset: int, params: FetchParams = CONSUMER, *, max_bytes: int = 1 << 20, **more: Any
    ) -> None:
        spec = FetchSpec(offset, max_bytes, **more)
        self.fetch_all(params, [(PARTITION, spec)])

    def fetch_all(
        self,
        params: FetchParams,
        specs: Sequence[tuple[TopicPartition, FetchSpec]],
        take: Callable[[FetchResults], object] | None = None,
    ) -> None:
        when_there(self.manager.fetch(params, specs), take or self.fetches.append)

    def pass_time(self, duration_ms: int) -> None:
        self.clock.advance(duration_ms)
        self.manager.advance()

    def codes(self) -> list[int]:
        """Return the error code of each produce, 0 without one."""
        return [
            0 if result.error is None else result.error.code
            for results in self.produced
            for result in results.values()
        ]

    def sizes(self) -> list[int]:
        """Return the bytes that each fetch got from its partitions."""
        return [sum(result.size_bytes for _, result in results) for results in self.fetches]
