"""Find the owners of partitions before a rebalance from the members' claims.

If two members claim a partition:

| their generations | the owner |
|---|---|
| different | the member with the later generation |
| equal | none: the partition is contested |

Members come in the order of the leader's Java hash map.

Source: AbstractStickyAssignor of 3.9.1; KIP-341, KIP-792.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from typing import NamedTuple, TypeAlias

from engine.assignors.subscription import NO_GENERATION, Subscription, Subscriptions
from engine.assignors.user_data import PreviousAssignment
from engine.model import TopicPartition

#: Reads a member's previous partitions from its subscription.
PreviousOf: TypeAlias = Callable[[Subscription], PreviousAssignment]


class PreviousOwners(NamedTuple):
    """The previous partitions of each member in existing topics, and the contested partitions."""

    owned: dict[str, list[TopicPartition]]
    #: Partitions that several members of one generation claim.
    contested: frozenset[TopicPartition]
    claims: Mapping[str, PreviousAssignment]
    generation_id_max: int


def previous_owners(
    topics: Container[str], subscriptions: Subscriptions, previous_of: PreviousOf
) -> PreviousOwners:
    """Return the previous partitions of each member and the contested partitions.

    `subscriptions` are in the order of the leader's map. When two members claim a partition, the
    first one's claim counts by the generation in its subscription, the second one's by the
    generation that `previous_of` returns. They may differ for the sticky assignor, as in Kafka.
    """
    claims = {name: previous_of(member) for name, member in subscriptions.items()}
    owned: dict[str, list[TopicPartition]] = {name: [] for name in subscriptions}
    contested: set[TopicPartition] = set()
    owner_of: dict[TopicPartition, str] = {}
    for member_id, (partitions, generation_id) in claims.items():
        for partition in partitions:
            if partition.topic not in topics:
                continue
            rival = owner_of.get(partition)
            lead = generation_id - subscriptions[rival].generation_id if rival is not None else 1
            if lead < 0:
                continue
            if lead == 0:
                contested.add(partition)
            if rival is not None and partition in owned[rival]:
                owned[rival].remove(partition)
            if lead > 0:
                owned[member_id].append(partition)
            owner_of[partition] = member_id
    latest = max((claim.generation_id for claim in claims.values()), default=NO_GENERATION)
    return PreviousOwners(owned, frozenset(contested), claims, max(latest, NO_GENERATION))


def have_equal_topics(subscriptions: Subscriptions) -> bool:
    """Return True if all members subscribe to the same topics.

    Members without topics are ignored as long as no earlier member has topics.
    """
    wanted: frozenset[str] = frozenset()
    for subscription in subscriptions.values():
        topics = subscription.topics
        if not wanted:
            wanted = frozenset(topics)
        elif len(topics) != len(wanted) or not wanted.issuperset(topics):
            return False
    return True


def subtract_partitions(
    partitions: Iterable[TopicPartition], assigned: Iterable[TopicPartition]
) -> list[TopicPartition]:
    """Return `partitions` except those in `assigned`; both must be in the same order.

    If an assigned partition is not in `partitions`, because its topic was recreated with fewer, the
    later assigned ones are not removed: they are assigned twice, as in Kafka.
    """
    following = iter(assigned)
    passed_over = next(following, None)
    left = []
    for partition in partitions:
        if partition == passed_over:
            passed_over = next(following, None)
        else:
            left.append(partition)
    return left
