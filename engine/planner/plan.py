"""The plan: changed partitions, their batches, and each broker's figures before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from engine.model import TopicPartition


class PartitionChange(NamedTuple):
    """The change of one partition in a plan: of its replicas, their order, or their directories.

    `old_log_dirs` and `new_log_dirs` are parallel to the replicas, and empty if the plan does not
    choose directories: Kafka's "any".
    """

    topic: str
    partition: int
    old_replicas: tuple[int, ...]
    new_replicas: tuple[int, ...]
    #: The present leader, None if there is none, and the leader after the election of preferred
    #: leaders.
    old_leader: int | None
    new_leader: int
    #: Bytes to copy for one added replica.
    size_bytes: int = 0
    #: Bytes of each old replica, parallel to `old_replicas`; empty if each has `size_bytes`.
    old_sizes: tuple[int, ...] = ()
    old_log_dirs: tuple[str, ...] = ()
    new_log_dirs: tuple[str, ...] = ()
    #: Whether the plan's purpose requires this change: such changes come first.
    is_mandatory: bool = False

    @property
    def name(self) -> TopicPartition:
        """The topic and partition number."""
        return TopicPartition(self.topic, self.partition)

    @property
    def added(self) -> tuple[int, ...]:
        """The brokers that get a new replica."""
        return tuple(b for b in self.new_replicas if b not in self.old_replicas)

    @property
    def removed(self) -> tuple[int, ...]:
        """The brokers whose replica is removed."""
        return tuple(b for b in self.old_replicas if b not in self.new_replicas)

    @property
    def bytes_moved(self) -> int:
        """The bytes that are copied between brokers."""
        return self.size_bytes * len(self.added)

    @property
    def log_dir_moves(self) -> tuple[tuple[int, str, str], ...]:
        """(Broker, old path, new path) of each replica that only changes its directory."""
        if not self.old_log_dirs or not self.new_log_dirs:
            return ()
        old = dict(zip(self.old_replicas, self.old_log_dirs, strict=True))
        new = dict(zip(self.new_replicas, self.new_log_dirs, strict=True))
        return tuple(
            (broker_id, old[broker_id], path)
            for broker_id, path in new.items()
            if broker_id in old and path not in (old[broker_id], "any")
        )

    @property
    def log_dir_bytes(self) -> int:
        """The bytes that are copied between directories of the same broker."""
        sizes = dict(zip(self.old_replicas, self.old_sizes, strict=False))
        return sum(sizes.get(broker_id, self.size_bytes) for broker_id, _, _ in self.log_dir_moves)


class LoadFigures(NamedTuple):
    """The load of a broker."""

    replica_count: int = 0
    leader_count: int = 0
    size_bytes: int = 0
    #: Bytes per second that are written to its replicas, and that followers fetch from it; 0
    #: without samples.
    in_bytes_per_s: int = 0
    out_bytes_per_s: int = 0


class BrokerFigures(NamedTuple):
    """The load of a broker before and after a plan, and the bytes copied to and from it."""

    broker_id: int
    rack: str | None
    before: LoadFigures
    after: LoadFigures
    capacity_bytes: int | None = None
    bytes_in: int = 0
    #: Bytes that new replicas fetch from it, as the leader of their partition.
    bytes_out: int = 0
    moves_in: int = 0
    moves_out: int = 0


class LevelFigures(NamedTuple):
    """How evenly a cluster is loaded, over the brokers that may hold replicas."""

    #: Most minus fewest replicas of a broker: within the worst rack, and over all brokers.
    count_spread_in_rack: int
    count_spread: int
    leader_spread: int
    #: Most bytes of a broker divided by the mean; 1.0 if there are none.
    bytes_max_over_mean: float
    #: Most bytes of a broker divided by the bytes expected from racks: if each rack must have a
    #: copy of everything, brokers of a small rack hold more.
    bytes_max_over_level: float
    rack_faults: int
    offline_replicas: int
    #: Most bytes per second of a broker divided by the mean; 1.0 without samples.
    in_max_over_mean: float = 1.0
    out_max_over_mean: float = 1.0


class UnmetGoal(NamedTuple):
    """A goal that a plan did not reach: its name, the broker or partition, and the reason."""

    goal: str
    subject: str
    reason: str


class ReassignmentPlan(NamedTuple):
    """A reassignment plan; `batches` has positions in `changes`.

    `moves` counts the replicas that are copied to another broker. `bound_moves` is a lower bound of
    the moves by which any plan could reach the goals on counts, racks and liveness.
    """

    verb: str
    changes: Sequence[PartitionChange]
    batches: Sequence[Sequence[int]]
    brokers: Sequence[BrokerFigures]
    before: LevelFigures
    after: LevelFigures
    moves: int
    bytes_moved: int
    log_dir_moves: int
    leader_changes: int
    bound_moves: int
    warnings: Sequence[str] = ()
    unmet: Sequence[UnmetGoal] = ()
    seed: int = 0

    @property
    def is_empty(self) -> bool:
        """True if the plan has no changes."""
        return not self.changes

    @property
    def gap(self) -> float:
        """The moves divided by `bound_moves`.

        1.0 if no plan is shorter, infinity if the bound is 0.
        """
        if self.moves == self.bound_moves:
            return 1.0
        return self.moves / self.bound_moves if self.bound_moves else float("inf")

    def eta_s(self, throttle_bytes_per_s: float) -> float:
        """Return how many seconds the copies take, if the throttle is the only limit.

        Each broker may send and receive `throttle_bytes_per_s`.
        """
        busiest = max((max(b.bytes_in, b.bytes_out) for b in self.brokers), default=0)
        return busiest / throttle_bytes_per_s

    def targets(self) -> Mapping[TopicPartition, tuple[int, ...]]:
        """Return the replicas of each changed partition after the plan."""
        return {change.name: change.new_replicas for change in self.changes}
