"""The states of a member of a group of the consumer protocol, and their valid previous states.

| state | the member | from |
|---|---|---|
| UNSUBSCRIBED | is in no group | PREPARE_LEAVING, LEAVING, FENCED |
| JOINING | heartbeats with epoch 0 until a response | FENCED, UNSUBSCRIBED, STALE |
| RECONCILING | has a target that it does not own yet | STABLE, JOINING, ACKNOWLEDGING, itself |
| ACKNOWLEDGING | owns its target, and has to report it | RECONCILING |
| STABLE | owns the partitions that the coordinator knows | JOINING, ACKNOWLEDGING, RECONCILING |
| FENCED | was removed, and releases its partitions | JOINING and the three of a member |
| PREPARE_LEAVING | releases its partitions | as FENCED, and UNSUBSCRIBED |
| LEAVING | heartbeats with epoch −1, a static member with −2 | PREPARE_LEAVING |
| STALE | left because it did not poll; the next poll joins | LEAVING |
| FATAL | has an error that joining does not resolve | all but FENCED, STALE and itself |

The three of a member are RECONCILING, ACKNOWLEDGING and STABLE.

Source: MemberState of 3.9.1; KIP-848.
"""

from __future__ import annotations

from enum import Enum
from typing import Final


class MemberState(Enum):
    """A state by the name that Kafka's client logs."""

    UNSUBSCRIBED = "UNSUBSCRIBED"
    JOINING = "JOINING"
    RECONCILING = "RECONCILING"
    ACKNOWLEDGING = "ACKNOWLEDGING"
    STABLE = "STABLE"
    FENCED = "FENCED"
    PREPARE_LEAVING = "PREPARE_LEAVING"
    LEAVING = "LEAVING"
    STALE = "STALE"
    FATAL = "FATAL"


_IN_GROUP: Final = (
    MemberState.JOINING,
    MemberState.STABLE,
    MemberState.RECONCILING,
    MemberState.ACKNOWLEDGING,
)
VALID_PREVIOUS_STATES: Final[dict[MemberState, frozenset[MemberState]]] = {
    MemberState.UNSUBSCRIBED: frozenset(
        (MemberState.PREPARE_LEAVING, MemberState.LEAVING, MemberState.FENCED)
    ),
    MemberState.JOINING: frozenset(
        (MemberState.FENCED, MemberState.UNSUBSCRIBED, MemberState.STALE)
    ),
    MemberState.RECONCILING: frozenset(_IN_GROUP),
    MemberState.ACKNOWLEDGING: frozenset((MemberState.RECONCILING,)),
    MemberState.STABLE: frozenset(
        (MemberState.JOINING, MemberState.ACKNOWLEDGING, MemberState.RECONCILING)
    ),
    MemberState.FENCED: frozenset(_IN_GROUP),
    MemberState.PREPARE_LEAVING: frozenset((*_IN_GROUP, MemberState.UNSUBSCRIBED)),
    MemberState.LEAVING: frozenset((MemberState.PREPARE_LEAVING,)),
    MemberState.STALE: frozenset((MemberState.LEAVING,)),
    MemberState.FATAL: frozenset(
        (
            *_IN_GROUP,
            MemberState.PREPARE_LEAVING,
            MemberState.LEAVING,
            MemberState.UNSUBSCRIBED,
        )
    ),
}
#: The states in which the member sends heartbeats.
HEARTBEATING: Final = frozenset(_IN_GROUP)


class MemberStates:
    """The state of one member; allows only the transitions of the table."""

    def __init__(self) -> None:
        self.current = MemberState.UNSUBSCRIBED

    def enter(self, state: MemberState) -> None:
        """Enter `state`; assert that VALID_PREVIOUS_STATES allows it after the current state."""
        assert self.current in VALID_PREVIOUS_STATES[state], f"{self.current} to {state}"
        self.current = state

    @property
    def is_heartbeating(self) -> bool:
        """True in the states in which the member sends heartbeats: it is in its group, or joins."""
        return self.current in HEARTBEATING
