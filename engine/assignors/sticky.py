"""The sticky assignors: a balanced assignment in which partitions keep their members if possible.

| assignor | previous partitions from | a partition that moves to another member |
|---|---|---|
| sticky | user data | is in the new member's assignment |
| cooperative-sticky | owned partitions | is unassigned until the next rebalance |

With cooperative-sticky the previous member revokes the partition and joins again; that rebalance
assigns it.

Source: StickyAssignor, CooperativeStickyAssignor of 3.9.1; KIP-54, KIP-341, KIP-429; ASG-3.
"""

from __future__ import annotations

from collections.abc import Mapping

from engine.assignors.constrained import ConstrainedAssignment
from engine.assignors.general import GeneralAssignment
from engine.assignors.ownership import PreviousOf, have_equal_topics, previous_owners
from engine.assignors.sticky_racks import sticky_racks
from engine.assignors.subscription import (
    NO_GENERATION,
    Assignment,
    Subscription,
    Subscriptions,
    Topics,
    subscribed_topics,
)
from engine.assignors.user_data import (
    PreviousAssignment,
    decode_generation,
    decode_previous_assignment,
    encode_generation,
    encode_previous_assignment,
)
from engine.hash_order import in_java_hash_order
from engine.model import TopicPartition

NAME = "sticky"
COOPERATIVE_NAME = "cooperative-sticky"


def assign_sticky(topics: Topics, subscriptions: Subscriptions) -> Assignment:
    """Return the partitions of each member by the sticky assignor; raises NoAssignment."""
    assignment, _ = _compute_assignment(topics, subscriptions, _previous_of_user_data)
    return assignment


def assign_cooperative_sticky(topics: Topics, subscriptions: Subscriptions) -> Assignment:
    """Return the partitions of each member by the cooperative sticky assignor.

    Partitions that another member must revoke first have no member. Raises NoAssignment.
    """
    assignment, moved = _compute_assignment(topics, subscriptions, _previous_of_owned)
    if moved is None:
        moved = _moved_partitions(subscriptions, assignment)
    for partition, member_id in moved.items():
        if partition in assignment[member_id]:
            assignment[member_id].remove(partition)
    return assignment


def sticky_user_data(previous: PreviousAssignment | None) -> bytes | None:
    """Return the sticky assignor's user data: a member's previous assignment, None without one."""
    return None if previous is None else encode_previous_assignment(previous)


def cooperative_user_data(previous: PreviousAssignment | None) -> bytes:
    """Return the user data of cooperative-sticky: the generation of the previous assignment."""
    return encode_generation(NO_GENERATION if previous is None else previous.generation_id)


def _previous_of_user_data(subscription: Subscription) -> PreviousAssignment:
    """Return a member's previous assignment from its user data, for the sticky assignor."""
    return decode_previous_assignment(subscription.user_data)


def _previous_of_owned(subscription: Subscription) -> PreviousAssignment:
    """Return a member's previous assignment from its owned partitions, for cooperative-sticky.

    Before version 2 of the subscription the generation is in the user data.
    """
    generation_id = subscription.generation_id
    if generation_id <= NO_GENERATION:
        generation_id = decode_generation(subscription.user_data)
    return PreviousAssignment(subscription.owned_partitions, generation_id)


def _compute_assignment(
    topics: Topics, subscriptions: Subscriptions, previous_of: PreviousOf
) -> tuple[Assignment, Mapping[TopicPartition, str] | None]:
    """Return the assignment, and the partitions that change members with their new ones.

    The second is None if members subscribe to different topics: that algorithm does not record
    it.
    """
    members = {name: subscriptions[name] for name in in_java_hash_order(subscriptions)}
    if not members:
        return {}, {}
    existing = {name: topics[name] for name in subscribed_topics(topics, members)}
    owners = previous_owners(existing, members, previous_of)
    racks = sticky_racks(existing, members)
    if have_equal_topics(members):
        constrained = ConstrainedAssignment(existing, owners, racks)
        return constrained.build(), constrained.moved
    return GeneralAssignment(existing, members, owners, racks).build(), None


def _moved_partitions(
    subscriptions: Subscriptions, assignment: Assignment
) -> dict[TopicPartition, str]:
    """Return the assigned partitions that another member owns, with their new members."""
    given_up: set[TopicPartition] = set()
    added: dict[TopicPartition, str] = {}
    for member_id, partitions in assignment.items():
        owned = subscriptions[member_id].owned_partitions
        added.update((key, member_id) for key in set(partitions).difference(owned))
        given_up.update(set(owned).difference(partitions))
    return {key: member_id for key, member_id in added.items() if key in given_up}
