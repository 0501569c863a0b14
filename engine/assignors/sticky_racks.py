"""Decide whether a sticky assignment is rack-aware: for all topics together, or not at all.

It is rack-aware if members have racks that replicas have, and not every partition has replicas in
all racks of the topics.

Source: AbstractStickyAssignor, AbstractPartitionAssignor of 3.9.1; KIP-881.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple

from engine.assignors.subscription import Subscriptions, Topics
from engine.model import TopicPartition

_NO_RACKS: Final[frozenset[str]] = frozenset()


class StickyRacks(NamedTuple):
    """The racks of members and replicas; both empty if the assignment is not rack-aware."""

    of_member: Mapping[str, str]
    of_partition: Mapping[TopicPartition, frozenset[str]]

    @property
    def decide(self) -> bool:
        """True if the assignment is rack-aware."""
        return bool(self.of_member)

    def mismatch(self, member_id: str, partition: TopicPartition) -> bool:
        """Return True if the member has a rack and the partition has no replica in it."""
        rack = self.of_member.get(member_id)
        return rack is not None and rack not in self.of_partition.get(partition, _NO_RACKS)

    def next_member(
        self, partition: TopicPartition, members: Sequence[str], first_index: int = 0
    ) -> int | None:
        """Return the index of the next member in a rack of the partition, None if there is none.

        The search begins at `first_index` and wraps around. Members without a rack are skipped.
        """
        racks = self.of_partition.get(partition, _NO_RACKS)
        if not racks:
            return None
        for index in chain(range(first_index, len(members)), range(first_index)):
            if self.of_member.get(members[index]) in racks:
                return index
        return None

    def by_choice(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Return the partitions by the number of members in their racks, fewest first."""
        members_in = Counter(self.of_member.values())

        def choice(partition: TopicPartition) -> int:
            """Return the number of members in the racks of a partition."""
            return sum(members_in[rack] for rack in self.of_partition.get(partition, _NO_RACKS))

        return sorted(partitions, key=choice)


NO_RACKS: Final = StickyRacks({}, {})


def sticky_racks(topics: Topics, subscriptions: Subscriptions) -> StickyRacks:
    """Return the racks of members and partitions, NO_RACKS if the assignment is not rack-aware."""
    of_member = {name: member.rack_id for name, member in subscriptions.items() if member.rack_id}
    if not of_member:
        return NO_RACKS
    of_partition = {
        TopicPartition(topic, row.partition): row.racks
        for topic, rows in topics.items()
        for row in rows
    }
    all_racks = _NO_RACKS.union(*of_partition.values())
    if all_racks.isdisjoint(of_member.values()):
        return NO_RACKS
    if all(racks == all_racks for racks in of_partition.values()):
        return NO_RACKS
    return StickyRacks(of_member, of_partition)
