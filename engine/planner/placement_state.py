"""The placement of replicas, by partition and by broker, during the search for a plan.

Brokers and partitions are represented by numbers. Partitions are numbered by size, smallest first,
so a sorted list of partition numbers is also sorted by size, and a partition of about a given size
is found by bisection.

| broker | may receive any replica | may get back a replica it had | gives replicas away |
|---|---|---|---|
| ordinary | yes | yes | yes |
| old, while others are added | no | yes | yes |
| excluded | no | yes | only when repaired or drained |
| drained | no | no | all |
| dead | no | no | only when repaired or drained |

A replica whose directory failed cannot be returned either: it would be offline again.

Invariants: a partition has no two replicas on one broker; `on_broker` and `held_bytes` agree with
`replicas`, except between `shift` and `settle`, when `on_broker` is out of date.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise
from random import Random
from typing import Final

from engine.planner.cluster_model import BrokerModel, ClusterModel, PartitionModel
from engine.planner.constraints import PlanConstraints
from engine.planner.rack_limits import RackLimits, rack_groups

#: More than any broker holds.
UNBOUNDED: Final = 1 << 62


class PlacementState:
    """The placement of replicas during a search; see the module."""

    def __init__(
        self,
        model: ClusterModel,
        constraints: PlanConstraints,
        *,
        leaving: Collection[int] = (),
        only_receivers: Collection[int] | None = None,
    ) -> None:
        """Create the placement from the cluster's present assignment.

        Brokers in `leaving` give all their replicas away. If `only_receivers` is not None, no other
        broker receives replicas.
        """
        self.constraints = constraints
        self.brokers: list[BrokerModel] = sorted(model.brokers, key=lambda b: b.broker_id)
        #: Index of each broker by its id: all other tables use indexes.
        self.index_of = {b.broker_id: i for i, b in enumerate(self.brokers)}
        #: Smallest first; a partition's position here is its number in all other tables.
        self.partitions = _by_size(model.partitions, constraints.seed)
        self.sizes = [partition.size_bytes for partition in self.partitions]
        self._set_roles(leaving, only_receivers)
        self._set_racks()
        self._fill_from_model()
        #: Whether the plan's constraints allow changes of each partition.
        self.movable = [
            partition.topic not in constraints.excluded_topics
            and (not constraints.pinned or partition.name not in constraints.pinned)
            for partition in self.partitions
        ]
        #: Partitions with a replica that had to move for other reasons than balance.
        self.forced: set[int] = set()
        #: Pairs of partition and broker that must not come back: the broker is dead, or its
        #: directory failed.
        self.barred: set[tuple[int, int]] = set()
        #: Pairs of partition and broker that cannot lead: the replica has not caught up, or its
        #: directory failed.
        self.lagging: set[tuple[int, int]] = set()
        self._find_offline()
        self._find_lagging()

    def _set_roles(self, leaving: Collection[int], only_receivers: Collection[int] | None) -> None:
        """Set for each broker whether it leaves, is usable, takes part and receives replicas.

        `leaving` are the brokers to empty. `only_receivers` None means that every broker that takes
        part in balancing receives replicas.
        """
        excluded = self.constraints.excluded_brokers
        left = set(leaving)
        chosen = None if only_receivers is None else set(only_receivers)
        self.leaving = [b.broker_id in left for b in self.brokers]
        self.usable = [b.is_alive and b.broker_id not in left for b in self.brokers]
        #: Whether a broker takes part in balancing.
        self.in_play = [
            usable and b.broker_id not in excluded
            for usable, b in zip(self.usable, self.brokers, strict=True)
        ]
        self.receives = [
            playing and (chosen is None or b.broker_id in chosen)
            for playing, b in zip(self.in_play, self.brokers, strict=True)
        ]
        self.capacity = [
            UNBOUNDED if b.capacity_bytes is None else b.capacity_bytes for b in self.brokers
        ]

    def _set_racks(self) -> None:
        """Set the rack of each broker, and the limits of replicas per rack."""
        self.group_of = rack_groups(self.brokers, self.constraints.racks)
        self.limits = RackLimits(self.group_of, self.usable)
        self.has_racks = self.limits.group_count > 1
        self.members: list[list[int]] = [[] for _ in range(self.limits.group_count)]
        for broker, group in enumerate(self.group_of):
            self.members[group].append(broker)

    def _fill_from_model(self) -> None:
        """Set the replicas, counts and bytes of all brokers from the model's partitions."""
        index_of = self.index_of
        count = len(self.brokers)
        self.original: list[tuple[int, ...]] = []
        self.replicas: list[list[int]] = []
        self.on_broker: list[list[int]] = [[] for _ in range(count)]
        self.held_bytes = [0] * count
        #: Bytes of replicas whose size differs from the partition's, by partition and broker.
        self.own_sizes: dict[tuple[int, int], int] = {}
        for number, partition in enumerate(self.partitions):
            replicas = [index_of[broker_id] for broker_id in partition.replicas]
            self.original.append(tuple(replicas))
            self.replicas.append(replicas)
            size = partition.size_bytes
            for place, broker in enumerate(replicas):
                self.on_broker[broker].append(number)
                own = partition.replica_sizes[place] if partition.replica_sizes else size
                if own != size:
                    self.own_sizes[number, broker] = own
                self.held_bytes[broker] += own
        self.counts = [len(held) for held in self.on_broker]
        #: Replicas that a broker did not have, in order.
        self.arrived: list[list[int]] = [[] for _ in range(count)]
        #: Replicas that a broker had and has no longer, in order.
        self.departed: list[list[int]] = [[] for _ in range(count)]
        self.moves = 0
        self.bytes_moved = 0

    def _find_offline(self) -> None:
        """Add the replicas on dead brokers and in failed directories to `barred`.

        They must not be moved back.
        """
        dead = {b.broker_id for b in self.brokers if not b.is_alive}
        for number, partition in enumerate(self.partitions):
            if partition.offline or (dead and not dead.isdisjoint(partition.replicas)):
                gone = dead.union(partition.offline).intersection(partition.replicas)
                self.barred.update((number, self.index_of[broker_id]) for broker_id in gone)

    def _find_lagging(self) -> None:
        """Add the replicas that cannot lead to `lagging`: barred ones and those not in the ISR."""
        self.lagging |= self.barred
        for number, partition in enumerate(self.partitions):
            isr = partition.isr
            if isr and len(isr) < len(partition.replicas):
                for broker, broker_id in zip(
                    self.original[number], partition.replicas, strict=True
                ):
                    if broker_id not in isr:
                        self.lagging.add((number, broker))

    # Rules

    def size_at(self, partition: int, broker: int) -> int:
        """Return the bytes of a broker's replica, the partition's size if the broker has none."""
        if self.own_sizes:
            return self.own_sizes.get((partition, broker), self.sizes[partition])
        return self.sizes[partition]

    def copied_bytes(self, partition: int) -> int:
        """Return the bytes that are copied for one more replica of a partition."""
        return self.sizes[partition]

    def is_admitted(self, partition: int, broker: int) -> bool:
        """Return True if a broker may receive a replica; racks and capacity are not checked."""
        if broker in self.replicas[partition] or (partition, broker) in self.barred:
            return False
        return self.receives[broker] or (
            not self.leaving[broker] and broker in self.original[partition]
        )

    def fits_rack(
        self, partition: int, target: int, source: int | None = None, *, no_fault: bool = False
    ) -> bool:
        """Return True if rack limits allow a replica on `target`, and none on `source` if given.

        A move within a rack is allowed even if the rack is above its limit, unless `no_fault`.
        """
        if not self.has_racks:
            return True
        group_of = self.group_of
        group = group_of[target]
        stays = source is not None and group_of[source] == group
        if stays and not no_fault:
            return True
        replicas = self.replicas[partition]
        held = -1 if stays else 0
        for broker in replicas:
            if group_of[broker] == group:
                held += 1
        factor = len(replicas) + (source is None)
        return held < self.limits.limit(factor)

    def fits(self, partition: int, broker: int) -> bool:
        """Return True if a broker has disk space for a replica of the partition."""
        return self.held_bytes[broker] + self.size_at(partition, broker) <= self.capacity[broker]

    def may_move(self, partition: int, source: int, target: int) -> bool:
        """Return True if a partition's replica may be moved from `source` to `target`."""
        return (
            self.movable[partition]
            and self.is_admitted(partition, target)
            and self.fits(partition, target)
            and self.fits_rack(partition, target, source)
        )

    def cost(self, partition: int, source: int, target: int) -> int:
        """Return by how much (−1 to 1) a replica's move to `target` changes the plan's moves."""
        original = self.original[partition]
        return (target not in original) - (source not in original)

    def fault_count(self, partition: int) -> int:
        """Return how many replicas of a partition exceed the limit of their rack."""
        if not self.has_racks:
            return 0
        group_of = self.group_of
        groups = [group_of[broker] for broker in self.replicas[partition]]
        if len(set(groups)) == len(groups):
            return 0
        limit = self.limits.limit(len(groups))
        return sum(max(0, groups.count(group) - limit) for group in set(groups))

    # Changes

    def place(self, partition: int, broker: int, at: int | None = None) -> None:
        """Add a replica at position `at` in the order of preference, None for the last one."""
        replicas = self.replicas[partition]
        replicas.insert(len(replicas) if at is None else at, broker)
        insort(self.on_broker[broker], partition)
        self._entered(partition, broker)

    def remove(self, partition: int, broker: int) -> int:
        """Remove a broker's replica, and return its position in the order of preference."""
        replicas = self.replicas[partition]
        at = replicas.index(broker)
        del replicas[at]
        _remove_sorted(self.on_broker[broker], partition)
        self._left(partition, broker)
        return at

    def move(self, partition: int, source: int, target: int) -> None:
        """Replace the replica on `source` by one on `target`, at the same position in the order."""
        _remove_sorted(self.on_broker[source], partition)
        insort(self.on_broker[target], partition)
        self.shift(partition, source, target)

    def shift(self, partition: int, source: int, target: int) -> None:
        """Move a replica as `move` does, but leave `on_broker` unchanged until `settle`.

        Sorting `on_broker` once for many moves saves time.
        """
        replicas = self.replicas[partition]
        replicas[replicas.index(source)] = target
        self._left(partition, source)
        self._entered(partition, target)

    def settle(
        self, gone: Iterable[tuple[int, set[int]]], come: Iterable[tuple[int, list[int]]]
    ) -> None:
        """Update `on_broker` after calls of `shift`.

        `gone` and `come` have the partitions that left and came, by broker.
        """
        for broker, went in gone:
            self.on_broker[broker] = [p for p in self.on_broker[broker] if p not in went]
        for broker, came in come:
            self.on_broker[broker].extend(came)
            self.on_broker[broker].sort()

    def adopt(self, other: PlacementState) -> None:
        """Use the replicas of another search over the same partitions.

        Counts and bytes are not updated, so only a plan may be built from this placement
        afterwards.
        """
        self.replicas = other.replicas

    def _entered(self, partition: int, broker: int) -> None:
        """Update a broker's counts, bytes and moves for a replica that was added to it.

        It counts as a move unless the broker had the replica originally.
        """
        self.counts[broker] += 1
        self.held_bytes[broker] += self.size_at(partition, broker)
        if broker not in self.original[partition]:
            insort(self.arrived[broker], partition)
            self.moves += 1
            self.bytes_moved += self.copied_bytes(partition)
        else:
            _remove_sorted(self.departed[broker], partition)

    def _left(self, partition: int, broker: int) -> None:
        """Update a broker's counts, bytes and moves for a replica that was removed from it.

        If the replica had been moved there, that move is uncounted.
        """
        self.counts[broker] -= 1
        self.held_bytes[broker] -= self.size_at(partition, broker)
        if broker not in self.original[partition]:
            _remove_sorted(self.arrived[broker], partition)
            self.moves -= 1
            self.bytes_moved -= self.copied_bytes(partition)
        else:
            insort(self.departed[broker], partition)


def _remove_sorted(ordered: list[int], item: int) -> None:
    """Remove an item from a sorted list that contains it."""
    del ordered[bisect_left(ordered, item)]


def _by_size(partitions: Sequence[PartitionModel], seed: int) -> list[PartitionModel]:
    """Return partitions by size, smallest first; equal ones by name, or shuffled with a `seed`."""
    ordered = sorted(partitions, key=lambda p: (p.size_bytes, p.topic, p.partition))
    if seed and any(a.size_bytes == b.size_bytes for a, b in pairwise(ordered)):
        Random(seed).shuffle(ordered)
        ordered.sort(key=lambda p: p.size_bytes)
    return ordered
