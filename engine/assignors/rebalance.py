"""Compute the assignments of a rebalance from the previous assignment, without a group.

| protocol | partitions that members revoke | rebalances |
|---|---|---|
| eager | all, before they join | one |
| cooperative | those not in the new assignment, after it | another one if any was revoked |

Source: ConsumerCoordinator.onJoinPrepare, onJoinComplete of 3.9.1; KIP-429.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from engine.assignors.registry import Assignor, RebalanceProtocol
from engine.assignors.subscription import Assignment, Subscription, Subscriptions, Topics
from engine.assignors.user_data import PreviousAssignment
from engine.model import TopicPartition

#: Two rebalances are enough for fixed members; the bound ends the loop in any case.
_REBALANCES_MAX: Final = 8
_FIRST_GENERATION: Final = 1


def rebalance(
    assignor: Assignor,
    topics: Topics,
    subscriptions: Subscriptions,
    had: Mapping[str, Sequence[TopicPartition]],
) -> list[Assignment]:
    """Return the assignments of consecutive rebalances; the last one is stable.

    A cooperative assignor takes two: partitions are revoked in the first one and assigned in the
    second. `had` is the previous assignment; members without an entry are new. Raises
    NoAssignment.
    """
    assignments: list[Assignment] = []
    for generation_id in range(_FIRST_GENERATION, _FIRST_GENERATION + _REBALANCES_MAX):
        members = {
            name: _add_previous(assignor, member, had.get(name), generation_id)
            for name, member in subscriptions.items()
        }
        assignment = assignor.assign(topics, members)
        assignments.append(assignment)
        if not is_cooperative(assignor) or not given_up(had, assignment):
            break
        had = assignment
    return assignments


def is_cooperative(assignor: Assignor) -> bool:
    """Return True if the assignor prefers the cooperative protocol."""
    return assignor.rebalance_protocols[0] is RebalanceProtocol.COOPERATIVE


def given_up(
    had: Mapping[str, Sequence[TopicPartition]], assignment: Assignment
) -> set[TopicPartition]:
    """Return the partitions of `had` that a present member must revoke for `assignment`."""
    return {
        key for name, keys in assignment.items() for key in set(had.get(name, ())).difference(keys)
    }


def _add_previous(
    assignor: Assignor,
    member: Subscription,
    had: Sequence[TopicPartition] | None,
    generation_id: int,
) -> Subscription:
    """Return a member's subscription with its previous partitions and their generation.

    `had` is None for a new member.
    """
    if had is None:
        return member._replace(user_data=assignor.user_data(None))
    previous = PreviousAssignment(tuple(had), generation_id)
    return member._replace(
        owned_partitions=previous.partitions if is_cooperative(assignor) else (),
        generation_id=generation_id,
        user_data=assignor.user_data(previous),
    )
