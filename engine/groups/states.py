"""The states of a group, and the valid previous states of each.

| state | from |
|---|---|
| PreparingRebalance | Stable, CompletingRebalance, Empty |
| CompletingRebalance | PreparingRebalance |
| Stable | CompletingRebalance |
| Empty | PreparingRebalance |
| Dead | any |

Source: GRP-2; GroupMetadata.scala of 3.9.1.
"""

from __future__ import annotations

from enum import Enum


class GroupState(Enum):
    """The states of a group; values are the names that Kafka's tools print."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


VALID_PREVIOUS_STATES: dict[GroupState, frozenset[GroupState]] = {
    GroupState.PREPARING_REBALANCE: frozenset(
        (GroupState.STABLE, GroupState.COMPLETING_REBALANCE, GroupState.EMPTY)
    ),
    GroupState.COMPLETING_REBALANCE: frozenset((GroupState.PREPARING_REBALANCE,)),
    GroupState.STABLE: frozenset((GroupState.COMPLETING_REBALANCE,)),
    GroupState.EMPTY: frozenset((GroupState.PREPARING_REBALANCE,)),
    GroupState.DEAD: frozenset(GroupState),
}
