"""Sticky assignment where all members subscribe to the same topics.

Of n partitions each of m members gets n / m (rounded down), and n mod m members get one more.

1. Members keep their previous partitions, up to that number. Of the members with more than n / m,
   the first ones in the order of a Java hash map keep one more. A member does not keep a partition
   that several members claim, nor, in rack-aware assignment, one without a replica in its rack.
2. The other partitions are sorted by topic and number; in rack-aware assignment, partitions with
   the fewest members in their racks come first and go to a member in one of their racks: first to
   members with fewer than n / m, in turn, then to members with n / m.
3. Remaining partitions go to members with fewer than n / m, in turn, then to members with n / m.

Source: AbstractStickyAssignor of 3.9.1, its algorithm for equal subscriptions; ASG-3.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine.assignors.errors import NoAssignment
from engine.assignors.ownership import PreviousOwners, subtract_partitions
from engine.assignors.sticky_racks import StickyRacks
from engine.assignors.subscription import Assignment, Topics, utf16_units
from engine.model import TopicPartition


class ConstrainedAssignment:
    """The state of one assignment while it is computed."""

    def __init__(self, topics: Topics, owners: PreviousOwners, racks: StickyRacks) -> None:
        """Create an assignment in which no partition has a member.

        `owners` are the members' previous partitions.
        """
        self._topics = topics
        self._owners = owners
        self._racks = racks
        self.assignment: Assignment = {member_id: [] for member_id in owners.owned}
        #: Partitions that another member had or claims, with the member that gets them.
        self.moved: dict[TopicPartition, str] = {}
        partition_count = sum(map(len, topics.values()))
        #: Partitions of most members, and how many members get one more.
        self._fewest, self._larger_wanted = divmod(partition_count, len(self.assignment))
        self._most = self._fewest + (self._larger_wanted > 0)
        #: How many members have `_most`, if that is more than `_fewest`.
        self._larger = 0
        #: `_below`: members with fewer than `_fewest` partitions. `_with_fewest`: members with
        #: exactly as many, which may get one more.
        self._below: list[str] = []
        self._with_fewest: list[str] = []
        #: Partitions that their members have not kept, with the member.
        self._given_up: dict[TopicPartition, str] = {}

    def build(self) -> Assignment:
        """Compute and return the assignment; raises NoAssignment."""
        for member_id, owned in self._owners.owned.items():
            self._keep_previous(member_id, owned)
        self._below.sort(key=utf16_units)
        self._with_fewest.sort(key=utf16_units)
        kept = [partition for partitions in self.assignment.values() for partition in partitions]
        left = _unassigned(self._topics, kept)
        if self._racks.decide:
            left = self._assign_by_racks(self._racks.by_choice(left))
        self._assign_in_turn(left)
        self._check_shares()
        return self.assignment

    def _keep_previous(self, member_id: str, owned: Iterable[TopicPartition]) -> None:
        """Assign a member its previous partitions, up to its share (step 1 of the module)."""
        mismatched = [key for key in owned if self._racks.mismatch(member_id, key)]
        self._given_up.update(dict.fromkeys(mismatched, member_id))
        barred = self._owners.contested.union(mismatched)
        mine = sorted(
            (key for key in owned if key not in barred),
            key=lambda key: (key.partition, utf16_units(key.topic)),
        )
        room = self._fewest
        if len(mine) < self._fewest:
            self._below.append(member_id)
        elif len(mine) >= self._most and self._larger < self._larger_wanted:
            room = self._most
            self._add_larger()
        elif self._larger < self._larger_wanted:
            self._with_fewest.append(member_id)
        self.assignment[member_id] += mine[:room]
        self._given_up.update(dict.fromkeys(mine[room:], member_id))

    def _add_larger(self) -> None:
        """Count a member with `_most` partitions; after the last one no member may get one more."""
        self._larger += 1
        if self._larger == self._larger_wanted:
            self._with_fewest.clear()

    def _assign_by_racks(self, partitions: Sequence[TopicPartition]) -> list[TopicPartition]:
        """Assign partitions to members in their racks (step 2 in the module's docstring).

        Returns those for which there is no such member.
        """
        left = []
        turn = 0
        for partition in partitions:
            index = self._racks.next_member(partition, self._below, turn)
            if index is not None:
                member_id = self._below[index]
                turn = self._next_turn(index)
            else:
                index = self._racks.next_member(partition, self._with_fewest)
                if index is None:
                    left.append(partition)
                    continue
                member_id = self._with_fewest[index]
                self._leave_if_full(index)
            self._assign(partition, member_id)
        return left

    def _next_turn(self, index: int) -> int:
        """Count one more partition for the member at `index`; return the index of the next turn.

        The caller assigns the partition afterwards. A member that reaches `_fewest` with it leaves
        `_below`; it joins `_with_fewest` while more members with a larger share are wanted.
        """
        member_id = self._below[index]
        count = len(self.assignment[member_id]) + 1
        if count >= self._fewest:
            del self._below[index]
            if count < self._most and self._larger < self._larger_wanted:
                self._with_fewest.append(member_id)
        else:
            index += 1
        return index % len(self._below) if self._below else 0

    def _leave_if_full(self, index: int) -> None:
        """Remove a member from `_with_fewest` if one more partition gives it `_most`."""
        if len(self.assignment[self._with_fewest[index]]) + 1 == self._most:
            del self._with_fewest[index]
            self._add_larger()

    def _assign_in_turn(self, partitions: Iterable[TopicPartition]) -> None:
        """Assign the remaining partitions to members in turn (step 3 in the module's docstring)."""
        index = 0
        for partition in partitions:
            if index >= len(self._below):
                index = 0
            if self._below:
                member_id = self._below[index]
                index += 1
            elif self._with_fewest:
                member_id = self._with_fewest.pop(0)
            else:
                raise NoAssignment("more partitions are left than members may have")
            self._assign(partition, member_id)
            count = len(self.assignment[member_id])
            if count == self._fewest:
                index -= 1
                del self._below[index]
                self._with_fewest.append(member_id)
            elif count == self._most:
                self._larger += 1

    def _assign(self, partition: TopicPartition, member_id: str) -> None:
        """Assign a partition to a member; add it to `moved` if another member had or claimed it."""
        self.assignment[member_id].append(partition)
        former = self._given_up.get(partition, member_id)
        if former != member_id or partition in self._owners.contested:
            self.moved[partition] = member_id

    def _check_shares(self) -> None:
        """Raise NoAssignment if a member has fewer partitions than its share."""
        if self._below and self._larger != self._larger_wanted:
            raise NoAssignment("fewer members than expected have one partition more")
        if any(len(self.assignment[member_id]) != self._fewest for member_id in self._below):
            raise NoAssignment("a member has too few partitions, and none is left")


def _unassigned(topics: Topics, assigned: list[TopicPartition]) -> list[TopicPartition]:
    """Return the partitions of `topics` that are not in `assigned`, by topic and number."""

    def place(key: TopicPartition) -> tuple[bytes, int]:
        """Return the sort key of a partition, by topic name as in Java."""
        return utf16_units(key.topic), key.partition

    names = sorted(topics, key=utf16_units)
    return subtract_partitions(
        (TopicPartition(name, row.partition) for name in names for row in topics[name]),
        sorted(assigned, key=place),
    )
