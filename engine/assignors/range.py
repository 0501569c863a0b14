"""The range assignor: each topic separately, its partitions in ranges of equal length.

1. Of n partitions each of m members gets n / m, and the first n mod m members get one more.
2. For a rack-aware topic, partitions first go to members in the rack of a replica, within these
   numbers. Topics with the same members and the same partition count are co-partitioned: one member
   gets a partition number in all of them, if racks and numbers permit it in all.
3. The remaining partitions go to the members in order.

A topic is rack-aware if members have racks that its replicas have, and not every partition has
replicas in all of the topic's racks.

Source: RangeAssignor of 3.9.1, KIP-881; ASG-1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine.assignors.subscription import (
    Assignment,
    PartitionRacks,
    Subscriptions,
    Topics,
    members_in_order,
    subscribed_topics,
)
from engine.model import TopicPartition

NAME = "range"

MayTake = Callable[[str, int], bool]


def assign_range(topics: Topics, subscriptions: Subscriptions) -> Assignment:
    """Return the partitions of each member by the range assignor, rack-aware if racks are known."""
    assignment: Assignment = {member_id: [] for member_id in subscriptions}
    members = members_in_order(subscriptions)
    states = [
        _TopicState(topic, topics[topic], members, subscriptions)
        for topic in subscribed_topics(topics, subscriptions)
    ]
    is_rack_aware = any(state.is_rack_aware for state in states)
    if is_rack_aware:
        _assign_by_racks(states, assignment)
    for state in states:
        # 3.
        state.assign_ranges(lambda _member_id, _partition: True, assignment)
    if is_rack_aware:
        for partitions in assignment.values():
            partitions.sort()
    return assignment


class _TopicState:
    """The state of the assignment of one topic."""

    def __init__(
        self,
        topic: str,
        partitions: Sequence[PartitionRacks],
        members: Sequence[str],
        subscriptions: Subscriptions,
    ) -> None:
        """Create the state of a topic in which no partition has a member."""
        self.topic = topic
        self._racks = {row.partition: row.racks for row in partitions}
        self._member_racks = {
            member_id: subscriptions[member_id].rack_id
            for member_id in members
            if topic in subscriptions[member_id].topics
        }
        #: Number of partitions assigned to each subscriber.
        self._counts = dict.fromkeys(self._member_racks, 0)
        #: Indexes of partitions without a member, ascending.
        self.unassigned = list(self._racks)
        #: Step 1: partitions per member, and how many members get one more.
        self._quota, self._extra_left = divmod(len(partitions), len(self._counts))
        #: Whether the assignment of this topic is rack-aware (step 2).
        self.is_rack_aware = self._needs_racks()

    @property
    def members(self) -> tuple[str, ...]:
        """The members that subscribe to the topic, in order."""
        return tuple(self._counts)

    @property
    def partition_count(self) -> int:
        """The number of partitions of the topic."""
        return len(self._racks)

    def _needs_racks(self) -> bool:
        """Return True if members and replicas share racks, and partitions differ in their racks."""
        member_racks = {rack for rack in self._member_racks.values() if rack is not None}
        topic_racks = frozenset().union(*self._racks.values())
        if member_racks.isdisjoint(topic_racks):
            return False
        return any(racks != topic_racks for racks in self._racks.values())

    def is_of_rack(self, member_id: str, partition: int) -> bool:
        """Return True if the member's rack has a replica of the partition, or it has no rack."""
        rack = self._member_racks[member_id]
        return rack is None or rack in self._racks[partition]

    def room(self, member_id: str) -> int:
        """Return how many more partitions of the topic a member may get."""
        quota = self._quota + (self._extra_left > 0)
        return max(0, quota - self._counts[member_id])

    def assign(self, member_id: str, partitions: Sequence[int], assignment: Assignment) -> None:
        """Assign partitions, by number, to a member."""
        assignment[member_id] += [TopicPartition(self.topic, number) for number in partitions]
        self._counts[member_id] += len(partitions)
        if self._counts[member_id] > self._quota:
            self._extra_left -= 1
        self.unassigned = [number for number in self.unassigned if number not in partitions]

    def assign_ranges(self, may_take: MayTake, assignment: Assignment) -> None:
        """Assign each member in order the unassigned partitions it may have, up to its share.

        `may_take` returns False for a partition that a member may not have.
        """
        for member_id in self._counts:
            takes = [number for number in self.unassigned if may_take(member_id, number)]
            if takes := takes[: self.room(member_id)]:
                self.assign(member_id, takes, assignment)


def _assign_by_racks(states: Sequence[_TopicState], assignment: Assignment) -> None:
    """Assign partitions of rack-aware and co-partitioned topics (step 2 of the module)."""
    together: dict[tuple[tuple[str, ...], int], list[_TopicState]] = {}
    for state in states:
        together.setdefault((state.members, state.partition_count), []).append(state)
    for (members, partition_count), alike in together.items():
        if len(alike) > 1:
            _assign_alike(members, range(partition_count), alike, assignment)
        elif alike[0].is_rack_aware:
            alike[0].assign_ranges(alike[0].is_of_rack, assignment)


def _assign_alike(
    members: Sequence[str],
    partitions: Sequence[int],
    states: Sequence[_TopicState],
    assignment: Assignment,
) -> None:
    """Assign each partition number of co-partitioned topics to one member, if racks permit it."""
    left = list(members)
    for number in partitions:
        taker = next(
            (
                member_id
                for member_id in left
                if all(
                    state.is_of_rack(member_id, number) and state.room(member_id)
                    for state in states
                )
            ),
            None,
        )
        if taker is None:
            continue
        for state in states:
            state.assign(taker, [number], assignment)
        if not any(state.room(taker) for state in states):
            left.remove(taker)
