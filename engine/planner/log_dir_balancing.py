"""Moves between the log directories of a broker, to balance their bytes.

The fullest directory gives the emptiest one the replica whose size is nearest to what both need,
until no directory has more than `bytes_tolerance` times the mean, or no move brings both closer
together. Where capacities are known, the target must have room while both copies exist.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from engine.planner.cluster_model import BrokerModel, ClusterModel, PartitionModel
from engine.planner.constraints import PlanConstraints
from engine.planner.plan import PartitionChange

#: How many replicas below and above the wanted size are tried.
_NEIGHBOURS = 8
#: The difference between both directories must be at least this multiple of the replica's size:
#: otherwise a large replica would be moved for almost no gain.
_WORTH = 9 / 8


class _Replica(NamedTuple):
    size: int
    topic: str
    partition: int


class _Directories:
    """The log directories of one broker with their bytes, and the planned moves between them."""

    def __init__(self, broker: BrokerModel) -> None:
        """Create a broker's log directories without replicas; `add` adds them."""
        self._broker = broker
        self._capacity = {d.path: d.capacity_bytes for d in broker.log_dirs}
        #: Bytes of replicas in each directory. Other files on its disk are not counted: they cannot
        #: be moved.
        self.held = {d.path: 0 for d in broker.log_dirs}
        #: Bytes in each directory with all arrivals and no departures: an upper bound for any order
        #: of the moves.
        self._peak = {d.path: d.foreign_bytes for d in broker.log_dirs}
        #: Replicas that may be moved out of each directory, sorted by size in `level`.
        self._movable: dict[str, list[_Replica]] = {d.path: [] for d in broker.log_dirs}
        #: New directory of each replica that moves, by topic and partition.
        self.moved: dict[tuple[str, int], str] = {}

    def add(self, path: str, replica: _Replica, *, movable: bool) -> None:
        """Add a replica to the directory `path`; does nothing if the directory is unknown."""
        if path in self.held:
            self.held[path] += replica.size
            self._peak[path] += replica.size
            if movable and replica.size:
                self._movable[path].append(replica)

    def level(self, tolerance: float) -> None:
        """Move replicas until no directory exceeds `tolerance` times the mean, or none helps."""
        if len(self.held) < 2:
            return
        for replicas in self._movable.values():
            replicas.sort()
        mean = sum(self.held.values()) / len(self.held)
        helpless: set[str] = set()
        while True:
            full = max((p for p in self.held if p not in helpless), key=self._order, default=None)
            if full is None or self.held[full] <= mean * tolerance:
                return
            if self._move_one_off(full, mean):
                helpless.clear()
            else:
                helpless.add(full)

    def _order(self, path: str) -> tuple[int, str]:
        """Return the sort key of a directory.

        It is the bytes, then the path, so that plans are repeatable.
        """
        return self.held[path], path

    def _move_one_off(self, full: str, mean: float) -> bool:
        """Move one replica from the directory `full` to the emptiest one possible.

        Returns False if no move helps. `mean` is the mean of bytes per directory.
        """
        for target in sorted(self.held, key=self._order):
            gap = self.held[full] - self.held[target]
            wanted = min(self.held[full] - mean, mean - self.held[target])
            if gap <= 0 or wanted <= 0:
                return False
            replica = self._replica_near_size(full, target, int(wanted), gap)
            if replica is not None:
                self._movable[full].remove(replica)
                insort(self._movable[target], replica)
                self.held[full] -= replica.size
                self.held[target] += replica.size
                self._peak[target] += replica.size
                self.moved[replica.topic, replica.partition] = target
                return True
        return False

    def _replica_near_size(self, full: str, target: str, wanted: int, gap: int) -> _Replica | None:
        """Return a replica of `full` of about `wanted` bytes that fits into `target`, or None.

        `gap`, the difference of bytes of both directories, limits its size.
        """
        replicas = self._movable[full]
        at = bisect_left(replicas, (wanted,))
        bound = self._capacity[target]
        near = [
            replica
            for replica in replicas[max(0, at - _NEIGHBOURS) : at + _NEIGHBOURS]
            if replica.size * _WORTH <= gap
            and (bound is None or self._peak[target] + replica.size <= bound)
        ]
        return min(near, key=lambda r: (abs(r.size - wanted), r), default=None)


def plan_log_dirs(
    model: ClusterModel, broker_ids: Collection[int], constraints: PlanConstraints
) -> tuple[list[PartitionChange], Mapping[int, Mapping[str, int]]]:
    """Return the moves that balance the log directories of each broker, and the resulting bytes.

    The bytes are by broker and directory.
    """
    chosen = {b.broker_id: _Directories(b) for b in model.brokers if b.broker_id in set(broker_ids)}
    for partition in model.partitions:
        movable = (
            partition.topic not in constraints.excluded_topics
            and partition.name not in constraints.pinned
        )
        for broker_id, path in zip(partition.replicas, partition.log_dirs, strict=False):
            if broker_id in chosen:
                replica = _Replica(
                    partition.size_on(broker_id), partition.topic, partition.partition
                )
                stays = not movable or broker_id in partition.offline
                chosen[broker_id].add(path, replica, movable=not stays)
    for directories in chosen.values():
        directories.level(constraints.bytes_tolerance)
    changes = [
        change
        for partition in sorted(model.partitions, key=lambda p: (p.topic, p.partition))
        if (change := _directory_change(partition, chosen)) is not None
    ]
    held = {broker_id: directories.held for broker_id, directories in chosen.items()}
    return changes, held


def batch_log_dir_moves(
    changes: Sequence[PartitionChange], constraints: PlanConstraints
) -> list[list[int]]:
    """Return batches of positions in `changes`, largest first.

    No batch has more moves on a broker than `moves_per_broker`.
    """
    batches: list[list[int]] = []
    used: list[dict[int, int]] = []
    first: dict[int, int] = {}
    for position in sorted(range(len(changes)), key=lambda at: (-changes[at].size_bytes, at)):
        brokers = [move[0] for move in changes[position].log_dir_moves]
        number = max((first.get(broker, 0) for broker in brokers), default=0)
        if number == len(batches):
            batches.append([])
            used.append({})
        batches[number].append(position)
        for broker in brokers:
            used[number][broker] = used[number].get(broker, 0) + 1
            if used[number][broker] >= constraints.moves_per_broker:
                first[broker] = number + 1
    return batches


def _directory_change(
    partition: PartitionModel, chosen: Mapping[int, _Directories]
) -> PartitionChange | None:
    """Return a partition's change of directories on the chosen brokers, None if nothing moves."""
    name = (partition.topic, partition.partition)
    targets = tuple(
        chosen[broker_id].moved.get(name, path) if broker_id in chosen else path
        for broker_id, path in zip(partition.replicas, partition.log_dirs, strict=False)
    )
    if targets == partition.log_dirs:
        return None
    leader = partition.leader if partition.leader is not None else partition.replicas[0]
    return PartitionChange(
        topic=partition.topic,
        partition=partition.partition,
        old_replicas=partition.replicas,
        new_replicas=partition.replicas,
        old_leader=partition.leader,
        new_leader=leader,
        size_bytes=partition.size_bytes,
        old_sizes=partition.replica_sizes,
        old_log_dirs=partition.log_dirs,
        new_log_dirs=targets,
    )
