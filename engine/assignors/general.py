"""Sticky assignment where members subscribe to different topics.

1. Members keep their previous partitions of topics that they still subscribe to; in rack-aware
   assignment only partitions with a replica in their rack.
2. Each other partition goes to the subscriber with the fewest partitions, in rack-aware assignment
   preferably to one in a rack of the partition. Topics with few subscribers come first.
3. Partitions move to subscribers that have at least two fewer, until the assignment is balanced:
   first the partitions of step 2, unless a member lost one in step 1; then all. A partition that a
   member of an older generation claims moves to that member if it has at least two fewer.
4. The moves are undone if the assignment is not more even with them, unless every member was
   without partitions after step 1.

Members that have all partitions of their topics and share no topic take no part in step 3.

In step 3 a partition also goes to a claiming member that no longer subscribes to its topic, as in
Kafka.

Source: AbstractStickyAssignor of 3.9.1, its general algorithm; KIP-54, KIP-341; ASG-3.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence

from engine.assignors.errors import NoAssignment
from engine.assignors.movements import PartitionMovements
from engine.assignors.ownership import PreviousOwners, subtract_partitions
from engine.assignors.sticky_racks import NO_RACKS, StickyRacks
from engine.assignors.subscription import (
    Assignment,
    Subscriptions,
    Topics,
    utf16_units,
)
from engine.model import TopicPartition


class GeneralAssignment:
    """The state of one assignment while it is computed."""

    def __init__(
        self,
        topics: Topics,
        subscriptions: Subscriptions,
        owners: PreviousOwners,
        racks: StickyRacks,
    ) -> None:
        """Create an assignment that begins with the partitions of `owners`."""
        #: Number of partitions of each topic.
        self._sizes = {topic: len(rows) for topic, rows in topics.items()}
        self._racks = racks
        #: Owners that partitions had in earlier generations.
        self._former = _former_owners(owners)
        #: `_wanted`: existing topics in each member's subscription. `_takers`: subscribers of each
        #: topic.
        self._wanted = {
            member_id: [topic for topic in member.topics if topic in topics]
            for member_id, member in subscriptions.items()
        }
        self._takers: dict[str, list[str]] = {topic: [] for topic in topics}
        for member_id, wanted in self._wanted.items():
            for topic in wanted:
                self._takers[topic].append(member_id)
        self._assigned: Assignment = owners.owned
        #: Present owner of each partition, and members in the order of how many they have.
        self._owner_of = {key: name for name, keys in owners.owned.items() for key in keys}
        self._by_size = _MembersBySize(self._assigned)
        #: Moves so far, so that no partition moves to and fro between two members.
        self._movements = PartitionMovements()
        #: All partitions, those with the fewest possible owners first.
        self._all = sorted(
            (
                TopicPartition(topic, row.partition)
                for topic, rows in topics.items()
                for row in rows
            ),
            key=self._place,
        )
        #: Whether a member could not keep all that it had. If all could, the new partitions alone
        #: are balanced first.
        self._has_given_up = False

    def build(self) -> Assignment:
        """Compute and return the assignment; raises NoAssignment."""
        left = subtract_partitions(self._all, sorted(self._keep_previous(), key=self._place))
        self._by_size.add_all(self._assigned)
        had_nothing = not any(self._assigned.values())
        self._assign(left)
        apart = self._set_apart()
        self._balance(left, had_nothing=had_nothing)
        self._assigned.update(apart)
        return self._assigned

    def _place(self, key: TopicPartition) -> tuple[int, bytes, int]:
        """Return the sort key of a partition: topics with few subscribers first, then by name."""
        return len(self._takers[key.topic]), utf16_units(key.topic), key.partition

    # What members keep, and what they get (1, 2)

    def _keep_previous(self) -> list[TopicPartition]:
        """Remove the partitions that members may not keep; return all partitions that they keep."""
        kept = []
        for member_id, owned in self._assigned.items():
            mine = [key for key in owned if self._may_keep(member_id, key)]
            self._has_given_up = self._has_given_up or len(mine) < len(owned)
            owned[:] = mine
            kept += mine
        return kept

    def _may_keep(self, member_id: str, key: TopicPartition) -> bool:
        """Return True if the member subscribes to the topic and racks permit the assignment."""
        return key.topic in self._wanted[member_id] and not self._racks.mismatch(member_id, key)

    def _assign(self, partitions: Sequence[TopicPartition]) -> None:
        """Assign the partitions that have no member (step 2 in the module's docstring)."""
        if self._racks.decide:
            partitions = [key for key in partitions if not self._assign_one(key, self._racks)]
        for key in partitions:
            self._assign_one(key, NO_RACKS)

    def _assign_one(self, key: TopicPartition, racks: StickyRacks) -> bool:
        """Assign a partition to the member with the fewest that may have it; False if none may."""
        for member_id in self._by_size:
            if key.topic in self._wanted[member_id] and not racks.mismatch(member_id, key):
                self._by_size.remove(member_id)
                self._assigned[member_id].append(key)
                self._owner_of[key] = member_id
                self._by_size.add(member_id)
                return True
        return False

    # Balancing (3, 4)

    def _set_apart(self) -> Assignment:
        """Take members that balancing cannot change out of the assignment; return their partitions.

        They have all partitions of their topics and share no topic.
        """
        apart = [name for name in self._assigned if not self._takes_part(name)]
        for member_id in apart:
            self._by_size.remove(member_id)
        return {member_id: self._assigned.pop(member_id) for member_id in apart}

    def _takes_part(self, member_id: str) -> bool:
        """Return True if balancing may give the member a partition or take one from it."""
        owned = self._assigned[member_id]
        return len(owned) < self._partition_count_max(member_id) or any(
            self._is_shared(key.topic) for key in owned
        )

    def _is_shared(self, topic: str) -> bool:
        """Return True if more than one member subscribes to `topic`."""
        return len(self._takers[topic]) > 1

    def _partition_count_max(self, member_id: str) -> int:
        """Return the number of partitions of all topics to which the member subscribes."""
        wanted = self._wanted[member_id]
        if len(wanted) == len(self._sizes):
            return sum(self._sizes.values())
        return sum(self._sizes[topic] for topic in wanted)

    def _balance(self, left: Sequence[TopicPartition], *, had_nothing: bool) -> None:
        """Move partitions between members (steps 3 and 4 in the module's docstring).

        `left` are the partitions that had no member. The moves are undone if they did not help.
        """
        before = {member_id: list(keys) for member_id, keys in self._assigned.items()}
        if not self._has_given_up:
            self._move_partitions(left)
        has_moved = self._move_partitions(self._all)
        if not had_nothing and has_moved and _unevenness(self._assigned) >= _unevenness(before):
            self._assigned = before

    def _move_partitions(self, partitions: Iterable[TopicPartition]) -> bool:
        """Move partitions until the assignment is balanced or no partition moves.

        Returns True if a partition moved.
        """
        candidates = [key for key in partitions if self._is_shared(key.topic)]
        has_moved = False
        is_settled = False
        while not is_settled:
            is_settled = True
            is_balanced = None
            for key in candidates:
                if is_balanced is None:
                    is_balanced = self._is_balanced()
                if is_balanced:
                    break
                target = self._target_member(key)
                if target is not None:
                    self._reassign(key, target)
                    has_moved = True
                    is_settled = False
                    is_balanced = None
        return has_moved

    def _target_member(self, key: TopicPartition) -> str | None:
        """Return the member to which a partition moves, None if it stays; raises NoAssignment.

        Racks need no check here: a member in a rack of the partition with at least two fewer
        implies that some subscriber has at least two fewer.
        """
        size = len(self._assigned[self._owner_of[key]])
        former = self._former.get(key)
        if former is not None:
            if former not in self._assigned:
                raise NoAssignment(f"{former}, which had {key} once, takes no part in balancing")
            if size > len(self._assigned[former]) + 1:
                return former
        if not any(size > len(self._assigned[name]) + 1 for name in self._takers[key.topic]):
            return None
        return next(name for name in self._by_size if key.topic in self._wanted[name])

    def _reassign(self, key: TopicPartition, target: str) -> None:
        """Move a partition to `target`.

        If another partition of the topic moved from `target` to the owner before, that one is moved
        back instead.
        """
        key = self._movements.partition_to_move(key, self._owner_of[key], target)
        source = self._owner_of[key]
        self._by_size.remove(source)
        self._by_size.remove(target)
        self._movements.record(key, source, target)
        self._assigned[source].remove(key)
        self._assigned[target].append(key)
        self._owner_of[key] = target
        self._by_size.add(target)
        self._by_size.add(source)

    def _is_balanced(self) -> bool:
        """Return True if no member could get a partition from a member with at least two more."""
        smallest, largest = self._by_size.bounds()
        if smallest >= largest - 1:
            return True
        largest_of: dict[str, int] = {}
        for owned in self._assigned.values():
            for key in owned:
                largest_of[key.topic] = max(largest_of.get(key.topic, 0), len(owned))
        return not any(
            largest_of.get(topic, 0) > len(owned) + 1
            for member_id, owned in self._assigned.items()
            if len(owned) != self._partition_count_max(member_id)
            for topic in self._wanted[member_id]
        )


class _MembersBySize:
    """Member ids sorted by their number of partitions, then by id.

    A member must be removed before its number of partitions changes, and added again after.
    """

    def __init__(self, assigned: Mapping[str, Sequence[TopicPartition]]) -> None:
        self._assigned = assigned
        self._members: list[tuple[int, bytes, str]] = []

    def __iter__(self) -> Iterator[str]:
        return (member_id for _, _, member_id in self._members)

    def _row(self, member_id: str) -> tuple[int, bytes, str]:
        """Return the sort key of a member.

        It is the partition count, then the id as Java compares strings.
        """
        return len(self._assigned[member_id]), utf16_units(member_id), member_id

    def add_all(self, members: Iterable[str]) -> None:
        """Replace the contents by `members`."""
        self._members = sorted(map(self._row, members))

    def add(self, member_id: str) -> None:
        """Insert a member by its present number of partitions."""
        insort(self._members, self._row(member_id))

    def remove(self, member_id: str) -> None:
        """Remove a member if it is present; called before its number of partitions changes."""
        row = self._row(member_id)
        index = bisect_left(self._members, row)
        if index < len(self._members) and self._members[index] == row:
            del self._members[index]

    def bounds(self) -> tuple[int, int]:
        """Return the smallest and the largest number of partitions of a member."""
        return self._members[0][0], self._members[-1][0]


def _former_owners(owners: PreviousOwners) -> dict[TopicPartition, str]:
    """Return the last owner of each partition in generations before the latest one."""
    former: dict[TopicPartition, tuple[int, str]] = {}
    for member_id, (partitions, generation_id) in owners.claims.items():
        if generation_id >= owners.generation_id_max:
            continue
        for key in partitions:
            if key not in former or generation_id > former[key][0]:
                former[key] = generation_id, member_id
    return {key: member_id for key, (_, member_id) in former.items()}


def _unevenness(assigned: Mapping[str, Sequence[TopicPartition]]) -> int:
    """Return the sum of the differences of partition counts over all pairs of members."""
    sizes = sorted(map(len, assigned.values()))
    return sum(size * (2 * index - len(sizes) + 1) for index, size in enumerate(sizes))
