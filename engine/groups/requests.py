"""The requests to the group coordinator, independent of their wire format.

Source: GroupCoordinator.handleJoinGroup, handleSyncGroup of 3.9.1.
"""

from __future__ import annotations

from typing import NamedTuple

from engine.groups.member import ClientOfMember, Protocol, Timeouts


class JoinRequest(NamedTuple):
    """A JoinGroup request."""

    group_id: str
    member_id: str
    group_instance_id: str | None
    client: ClientOfMember
    timeouts: Timeouts
    protocol_type: str
    protocols: tuple[Protocol, ...]
    #: Whether a new dynamic member first gets MEMBER_ID_REQUIRED with an id (KIP-394).
    requires_known_member_id: bool
    #: Whether the client understands `skip_assignment` for a static leader that rejoins (KIP-814).
    supports_skip_assignment: bool


class SyncRequest(NamedTuple):
    """A SyncGroup request; type and name are None in versions that do not send them."""

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None
    protocol_type: str | None
    protocol_name: str | None
    assignments: dict[str, bytes]


class MemberRequest(NamedTuple):
    """The member and generation in a Heartbeat or an OffsetCommit."""

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None


class LeavingMember(NamedTuple):
    """A member that leaves: its member id, or only its instance id."""

    member_id: str
    group_instance_id: str | None
