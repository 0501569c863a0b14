"""The model of a cluster for plans: brokers, their directories, and partitions with sizes.

The caller of a planner creates it from a live cluster, a file or a test. Bytes are of one replica;
ids are Kafka's. A partition's replicas are in order, the preferred leader first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from engine.errors import EngineError
from engine.model import TopicPartition


class BadClusterModel(EngineError):
    """A cluster model is inconsistent; `subject` is the broker or partition."""

    def __init__(self, subject: str, rule: str) -> None:
        self.subject = subject
        self.rule = rule
        super().__init__(f"{subject}: {rule}")


class LogDirModel(NamedTuple):
    """A log directory of a broker; `capacity_bytes` is None if it is unknown."""

    path: str
    capacity_bytes: int | None = None
    #: Bytes of the capacity used by files other than the model's partitions.
    foreign_bytes: int = 0


class BrokerModel(NamedTuple):
    """A broker that may have replicas.

    `capacity_bytes` is the limit for all its replicas, None for no limit. A broker that is not
    alive keeps its assigned replicas, which count as offline; no replica is placed there.
    """

    broker_id: int
    rack: str | None = None
    capacity_bytes: int | None = None
    log_dirs: tuple[LogDirModel, ...] = ()
    is_alive: bool = True


class PartitionModel(NamedTuple):
    """A partition with its replicas, leader and sizes.

    `leader` is None without a leader. `size_bytes` is the size that a new replica copies.
    `replica_sizes` and `log_dirs` are parallel to `replicas`, or empty: then every replica has
    `size_bytes`, and directories are unknown. If `isr` is empty, live replicas count as in sync.
    `offline` are replicas whose directory failed on a live broker.
    """

    topic: str
    partition: int
    replicas: tuple[int, ...]
    leader: int | None
    size_bytes: int = 0
    replica_sizes: tuple[int, ...] = ()
    log_dirs: tuple[str, ...] = ()
    isr: tuple[int, ...] = ()
    offline: tuple[int, ...] = ()
    #: Bytes that producers write per second; None if unknown.
    write_bytes_per_s: int | None = None

    @property
    def write_rate(self) -> int:
        """The bytes per second that each replica receives, 0 if unknown."""
        return self.write_bytes_per_s or 0

    @property
    def name(self) -> TopicPartition:
        """The topic and partition number."""
        return TopicPartition(self.topic, self.partition)

    def size_on(self, broker_id: int) -> int:
        """Return the bytes of a broker's replica, or of the one that a move would create there."""
        if self.replica_sizes and broker_id in self.replicas:
            return self.replica_sizes[self.replicas.index(broker_id)]
        return self.size_bytes


class ClusterModel(NamedTuple):
    """The brokers and partitions of a cluster, in any order."""

    brokers: Sequence[BrokerModel]
    partitions: Sequence[PartitionModel]

    def check(self) -> None:
        """Raise BadClusterModel if brokers or partitions occur twice or are inconsistent."""
        ids = [broker.broker_id for broker in self.brokers]
        if len(set(ids)) < len(ids):
            twice = next(broker_id for broker_id in ids if ids.count(broker_id) > 1)
            raise BadClusterModel(f"broker {twice}", "is listed twice")
        names = set()
        known = frozenset(ids)
        for partition in self.partitions:
            _check_partition(partition, known)
            names.add((partition.topic, partition.partition))
        if len(names) < len(self.partitions):
            raise BadClusterModel("partitions", "one is listed twice")


def _check_partition(partition: PartitionModel, broker_ids: frozenset[int]) -> None:
    """Raise BadClusterModel if the fields of a partition contradict each other."""
    replicas = partition.replicas
    held = set(replicas)
    rule = ""
    if not replicas:
        rule = "has no replicas"
    elif len(held) < len(replicas):
        rule = "has two replicas on one broker"
    elif not held <= broker_ids:
        unknown = sorted(held - broker_ids)[0]
        rule = f"has a replica on broker {unknown}, which the model does not have"
    elif partition.replica_sizes and len(partition.replica_sizes) != len(replicas):
        rule = "has sizes of another number of replicas"
    elif partition.log_dirs and len(partition.log_dirs) != len(replicas):
        rule = "has directories of another number of replicas"
    elif partition.size_bytes < 0 or min(partition.replica_sizes, default=0) < 0:
        rule = "has a negative size"
    if rule:
        raise BadClusterModel(str(partition.name), rule)
