"""The assignors by the names in members' JoinGroup requests, and their rebalance protocols.

| protocol | before a member joins again |
|---|---|
| eager | it revokes all its partitions |
| cooperative | it keeps them, and later revokes those not in its new assignment |

Source: ConsumerPartitionAssignor.RebalanceProtocol of 3.9.1, KIP-429.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Final, NamedTuple, TypeAlias

from engine.assignors import range as by_range
from engine.assignors import round_robin, sticky
from engine.assignors.subscription import Assign
from engine.assignors.user_data import PreviousAssignment


class RebalanceProtocol(StrEnum):
    """Whether members revoke all partitions before they rejoin, or only those that move."""

    EAGER = "eager"
    COOPERATIVE = "cooperative"


#: Returns the user data for a member's subscription; None stands for no previous assignment.
UserData: TypeAlias = Callable[[PreviousAssignment | None], bytes | None]


def _no_user_data(_previous: PreviousAssignment | None) -> None:
    """Return None: range and round robin send no user data in their subscriptions."""
    return


class Assignor(NamedTuple):
    """An assignor's function and its rebalance protocols, the preferred one first."""

    assign: Assign
    rebalance_protocols: tuple[RebalanceProtocol, ...]
    user_data: UserData = _no_user_data


_EAGER: Final = (RebalanceProtocol.EAGER,)

ASSIGNORS: Final[Mapping[str, Assignor]] = {
    by_range.NAME: Assignor(by_range.assign_range, _EAGER),
    round_robin.NAME: Assignor(round_robin.assign_round_robin, _EAGER),
    sticky.NAME: Assignor(sticky.assign_sticky, _EAGER, sticky.sticky_user_data),
    sticky.COOPERATIVE_NAME: Assignor(
        sticky.assign_cooperative_sticky,
        (RebalanceProtocol.COOPERATIVE, *_EAGER),
        sticky.cooperative_user_data,
    ),
}
