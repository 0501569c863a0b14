"""Input and output of assignors, and the order of members.

Members with an instance id come first, by that id; the others by member id. Texts are compared by
their UTF-16 units, as Java compares them.

Source: AbstractPartitionAssignor, AbstractPartitionAssignor.MemberInfo of 3.9.1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from engine.model import TopicPartition

#: Of members that say no generation.
NO_GENERATION: Final = -1


class Subscription(NamedTuple):
    """A member's subscribed topics and rack, and its claims about the former assignment.

    `owned_partitions` are what it still has, `generation_id` when it got them; `user_data` is what
    its assignor adds, of a form that only that assignor knows.
    """

    topics: tuple[str, ...]
    group_instance_id: str | None = None
    rack_id: str | None = None
    owned_partitions: tuple[TopicPartition, ...] = ()
    generation_id: int = NO_GENERATION
    user_data: bytes | None = None


class PartitionRacks(NamedTuple):
    """A partition of a topic, with the racks of its replicas as far as they are known."""

    partition: int
    racks: frozenset[str] = frozenset()


#: The partitions of each topic by number; a topic that does not exist is not there.
Topics: TypeAlias = Mapping[str, Sequence[PartitionRacks]]
Subscriptions: TypeAlias = Mapping[str, Subscription]
#: The partitions of each member.
Assignment: TypeAlias = dict[str, list[TopicPartition]]
Assign: TypeAlias = Callable[[Topics, Subscriptions], Assignment]


def members_in_order(subscriptions: Subscriptions) -> list[str]:
    """Return member ids in the order in which assignors go through them."""

    def rank(member_id: str) -> tuple[bool, bytes]:
        instance_id = subscriptions[member_id].group_instance_id
        return instance_id is None, utf16_units(member_id if instance_id is None else instance_id)

    return sorted(subscriptions, key=rank)


def subscribed_topics(topics: Topics, subscriptions: Subscriptions) -> list[str]:
    """Return the topics that exist and have a subscriber, in order."""
    wanted = {topic for subscription in subscriptions.values() for topic in subscription.topics}
    return sorted((topic for topic in wanted if topics.get(topic)), key=utf16_units)


def utf16_units(text: str) -> bytes:
    """Return a key that sorts as Java's compareTo does."""
    return text.encode("utf-16-be", "surrogatepass")
