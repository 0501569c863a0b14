"""Order the changes of a plan in batches within each broker's capacity and limit of moves.

During a change the new replicas take space before the old ones are deleted. So a change may start
when each of its targets has room in addition to its present replicas and those that other running
changes add. The space that it frees counts once it is complete.

A change for which no order leaves room is given up, with a warning in the plan: two full brokers
cannot exchange replicas.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence

from engine.planner.plan import PartitionChange

#: Most changes without a copy in one batch: so many requests are answered quickly.
LIGHT_CHANGES_PER_BATCH = 1000
#: How many changes of a broker's queue are checked for one that may start now.
_LOOK_AHEAD = 16


class ChangeQueue:
    """Waiting changes, and the choice of those that may start; for batches, and for simulation.

    `held_bytes` and `capacity_bytes` are by broker id; a broker without a capacity has no limit.
    """

    def __init__(
        self,
        changes: Sequence[PartitionChange],
        held_bytes: Mapping[int, int],
        capacity_bytes: Mapping[int, int],
        moves_per_broker: int,
    ) -> None:
        """Create a queue of `changes`, none of which has started.

        A broker takes part in at most `moves_per_broker` moves in each direction. `held_bytes` are
        the bytes on each broker before the first change.
        """
        self._changes = changes
        self._held = dict(held_bytes)
        self._capacity = capacity_bytes
        self._slots = moves_per_broker
        #: Moves in progress to each broker, and from each leader.
        self._inwards: dict[int, int] = {}
        self._outwards: dict[int, int] = {}
        self._added = [change.added for change in changes]
        #: Positions of changes that copy nothing (`_light`), and of other changes by their first
        #: added broker; the most urgent first.
        self._light: deque[int] = deque()
        self._by_target: dict[int, deque[int]] = {}
        for position in sorted(range(len(changes)), key=self._urgency):
            added = self._added[position]
            if added:
                self._by_target.setdefault(added[0], deque()).append(position)
            else:
                self._light.append(position)

    def _urgency(self, position: int) -> tuple[bool, int, int]:
        """Return the sort key of a change: mandatory changes first, then the largest."""
        change = self._changes[position]
        return not change.is_mandatory, -change.size_bytes, position

    def is_empty(self) -> bool:
        """True if no change waits."""
        return not self._light and not any(self._by_target.values())

    def start(self, *, is_unlimited: bool = False) -> list[int]:
        """Start the changes that may run now; return their positions.

        They use up slots and disk space until `finish`. Only the first `_LOOK_AHEAD` changes of a
        broker's queue are checked, unless `is_unlimited`.
        """
        started = []
        far = len(self._changes) if is_unlimited else _LOOK_AHEAD
        for target in sorted(self._by_target):
            queue = self._by_target[target]
            passed: list[int] = []
            while queue and len(passed) < far and self._is_free(self._inwards, target):
                position = queue.popleft()
                if self._may_start(position):
                    self._reserve(position)
                    started.append(position)
                else:
                    passed.append(position)
            queue.extendleft(reversed(passed))
        while self._light and len(started) < LIGHT_CHANGES_PER_BATCH:
            started.append(self._light.popleft())
        return started

    def finish(self, positions: Iterable[int]) -> None:
        """Free the slots of completed changes, and the disk space of the replicas they removed."""
        for position in positions:
            change = self._changes[position]
            self._free_disk_space(change)
            if self._added[position]:
                self._count(self._outwards, change.old_leader, -1)
            for target in self._added[position]:
                self._count(self._inwards, target, -1)

    def remove_waiting(self) -> list[int]:
        """Remove the changes that still wait, and return their positions in order."""
        left = [*self._light, *(p for queue in self._by_target.values() for p in queue)]
        self._light.clear()
        self._by_target.clear()
        return sorted(left)

    def _is_free(self, used: Mapping[int, int], broker: int | None) -> bool:
        """Return True if a broker has a free slot in the direction that `used` counts.

        Also True for None (no leader).
        """
        return broker is None or used.get(broker, 0) < self._slots

    def _may_start(self, position: int) -> bool:
        """Return True if a change's leader and targets have free slots,
        and the targets disk space.
        """
        change = self._changes[position]
        if not self._is_free(self._outwards, change.old_leader):
            return False
        for target in self._added[position]:
            if not self._is_free(self._inwards, target):
                return False
            if not self._has_room(target, change.size_bytes):
                return False
        return True

    def _has_room(self, broker: int, size: int) -> bool:
        """Return True if a broker has disk space for `size` more bytes, or an unknown capacity."""
        capacity = self._capacity.get(broker)
        return capacity is None or self._held.get(broker, 0) + size <= capacity

    def _reserve(self, position: int) -> None:
        """Use up the slots and disk space of a change that starts."""
        change = self._changes[position]
        self._count(self._outwards, change.old_leader, 1)
        for target in self._added[position]:
            self._count(self._inwards, target, 1)
            self._held[target] = self._held.get(target, 0) + change.size_bytes

    def _free_disk_space(self, change: PartitionChange) -> None:
        """Subtract the bytes of the replicas that a completed change removed."""
        sizes = change.old_sizes
        for broker in change.removed:
            place = change.old_replicas.index(broker)
            size = sizes[place] if sizes else change.size_bytes
            self._held[broker] = self._held.get(broker, 0) - size

    @staticmethod
    def _count(used: dict[int, int], broker: int | None, by: int) -> None:
        """Add `by` to a broker's moves in one direction; does nothing for None (no leader)."""
        if broker is not None:
            used[broker] = used.get(broker, 0) + by


def batch_changes(
    changes: Sequence[PartitionChange],
    held_bytes: Mapping[int, int],
    capacity_bytes: Mapping[int, int],
    moves_per_broker: int,
) -> tuple[list[list[int]], list[int]]:
    """Return batches of positions in `changes`, in which each batch fits onto the disks.

    Also returns the positions of the changes that fit in no order.
    """
    queue = ChangeQueue(changes, held_bytes, capacity_bytes, moves_per_broker)
    batches: list[list[int]] = []
    while not queue.is_empty():
        batch = queue.start() or queue.start(is_unlimited=True)
        if not batch:
            return batches, queue.remove_waiting()
        batches.append(batch)
        queue.finish(batch)
    return batches, []


def without(changes: Sequence[PartitionChange], given_up: Collection[int]) -> list[PartitionChange]:
    """Return the changes whose positions are not in `given_up`, which fit in no order."""
    return [change for at, change in enumerate(changes) if at not in given_up]
