"""Input and output of assignors, and the order of members.

Members with an instance id come first, by that id; then members without one, by member id. Strings
are compared by their UTF-16 units, as in Java.

Source: AbstractPartitionAssignor, AbstractPartitionAssignor.MemberInfo of 3.9.1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from engine.model import TopicPartition

#: The generation of members that send none.
NO_GENERATION: Final = -1


class Subscription(NamedTuple):
    """A member's topics and rack, and its claims about the previous assignment.

    `owned_partitions` are the partitions that it still owns, from generation `generation_id`.
    `user_data` is in the format of the member's assignor.
    """

    topics: tuple[str, ...]
    group_instance_id: str | None = None
    rack_id: str | None = None
    owned_partitions: tuple[TopicPartition, ...] = ()
    generation_id: int = NO_GENERATION
    user_data: bytes | None = None


class PartitionRacks(NamedTuple):
    """A partition number of a topic, and the known racks of its replicas."""

    partition: int
    racks: frozenset[str] = frozenset()


#: The partitions of each existing topic, by number.
Topics: TypeAlias = Mapping[str, Sequence[PartitionRacks]]
Subscriptions: TypeAlias = Mapping[str, Subscription]
#: The partitions of each member, by member id.
Assignment: TypeAlias = dict[str, list[TopicPartition]]
Assign: TypeAlias = Callable[[Topics, Subscriptions], Assignment]


def members_in_order(subscriptions: Subscriptions) -> list[str]:
    """Return the member ids in the order in which assignors handle them.

    Static members come first, by instance id, then the others by member id.
    """

    def rank(member_id: str) -> tuple[bool, bytes]:
        """Return the sort key of a member."""
        instance_id = subscriptions[member_id].group_instance_id
        return instance_id is None, utf16_units(member_id if instance_id is None else instance_id)

    return sorted(subscriptions, key=rank)


def subscribed_topics(topics: Topics, subscriptions: Subscriptions) -> list[str]:
    """Return the existing topics with partitions and at least one subscriber, sorted by name."""
    wanted = {topic for subscription in subscriptions.values() for topic in subscription.topics}
    return sorted((topic for topic in wanted if topics.get(topic)), key=utf16_units)


def utf16_units(text: str) -> bytes:
    """Return a sort key that orders strings as Java's String.compareTo does."""
    return text.encode("utf-16-be", "surrogatepass")
