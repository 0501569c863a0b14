"""The plan: changed partitions, their order, and figures of each broker before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from engine.model import TopicPartition


class PartitionChange(NamedTuple):
    """One partition that a plan changes: its replicas, their order, or their directories.

    `old_log_dirs` and `new_log_dirs` go along with the replicas and are empty where the plan does
    not care: Kafka's "any".
    """

    topic: str
    partition: int
    old_replicas: tuple[int, ...]
    new_replicas: tuple[int, ...]
    #: Who leads now, None for nobody, and who will after the election of preferred leaders.
    old_leader: int | None
    new_leader: int
    #: What one added replica copies.
    size_bytes: int = 0
    #: What the old replicas hold, beside them; empty where each has `size_bytes`.
    old_sizes: tuple[int, ...] = ()
    old_log_dirs: tuple[str, ...] = ()
    new_log_dirs: tuple[str, ...] = ()
    #: What the plan is for: moves that must be made go first.
    is_mandatory: bool = False

    @property
    def name(self) -> TopicPartition:
        """Return topic and number."""
        return TopicPartition(self.topic, self.partition)

    @property
    def added(self) -> tuple[int, ...]:
        """Return the brokers that get a replica."""
        return tuple(b for b in self.new_replicas if b not in self.old_replicas)

    @property
    def removed(self) -> tuple[int, ...]:
        """Return the brokers that lose their replica."""
        return tuple(b for b in self.old_replicas if b not in self.new_replicas)

    @property
    def bytes_moved(self) -> int:
        """Return what is copied between brokers."""
        return self.size_bytes * len(self.added)

    @property
    def log_dir_moves(self) -> tuple[tuple[int, str, str], ...]:
        """Return (broker, from, to) of replicas that stay on their broker and change directory."""
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
        """Return what is copied between directories of a broker."""
        sizes = dict(zip(self.old_replicas, self.old_sizes, strict=False))
        return sum(sizes.get(broker_id, self.size_bytes) for broker_id, _, _ in self.log_dir_moves)


class LoadFigures(NamedTuple):
    """The load of a broker."""

    replica_count: int = 0
    leader_count: int = 0
    size_bytes: int = 0
    #: Bytes each second that it takes in, and that followers fetch from it; 0 without samples.
    in_bytes_per_s: int = 0
    out_bytes_per_s: int = 0


class BrokerFigures(NamedTuple):
    """The load of a broker before and after a plan, and the bytes that it copies."""

    broker_id: int
    rack: str | None
    before: LoadFigures
    after: LoadFigures
    capacity_bytes: int | None = None
    bytes_in: int = 0
    #: Read from it by new replicas of partitions that it leads.
    bytes_out: int = 0
    moves_in: int = 0
    moves_out: int = 0


class LevelFigures(NamedTuple):
    """The evenness of a cluster, over the brokers that may hold replicas."""

    #: Most minus fewest replicas within a rack, the worst rack; and over all brokers.
    count_spread_in_rack: int
    count_spread: int
    leader_spread: int
    #: Most bytes of a broker by the mean; 1.0 where there are none.
    bytes_max_over_mean: float
    #: Most bytes of a broker by what it must hold, racks being what they are: where each rack has
    #: a copy of everything, brokers of a small rack hold more.
    bytes_max_over_level: float
    rack_faults: int
    offline_replicas: int
    #: Most bytes each second of a broker by the mean; 1.0 without samples.
    in_max_over_mean: float = 1.0
    out_max_over_mean: float = 1.0


class UnmetGoal(NamedTuple):
    """A goal that a plan did not reach, with the broker or partition and the reason."""

    goal: str
    subject: str
    reason: str


class ReassignmentPlan(NamedTuple):
    """A plan; `batches` holds positions in `changes`.

    `moves` counts replicas that are copied to another broker. `bound_moves` is the fewest moves by
    which any plan could reach the goals on counts, racks and liveness.
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
        """Return whether there is nothing to do."""
        return not self.changes

    @property
    def gap(self) -> float:
        """Return moves by the bound; 1.0 for a plan that is as short as any."""
        if self.moves == self.bound_moves:
            return 1.0
        return self.moves / self.bound_moves if self.bound_moves else float("inf")

    def eta_s(self, throttle_bytes_per_s: float) -> float:
        """Return how long the copies take when each broker may read and take in so much."""
        busiest = max((max(b.bytes_in, b.bytes_out) for b in self.brokers), default=0)
        return busiest / throttle_bytes_per_s

    def targets(self) -> Mapping[TopicPartition, tuple[int, ...]]:
        """Return the replicas of each changed partition after the plan."""
        return {change.name: change.new_replicas for change in self.changes}
