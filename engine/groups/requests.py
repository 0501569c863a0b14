"""Requests to the coordinator, in values.

Source: GroupCoordinator.handleJoinGroup, handleSyncGroup of 3.9.1.
"""

from __future__ import annotations

from typing import NamedTuple

from engine.groups.member import ClientOfMember, Protocol, Timeouts


class JoinRequest(NamedTuple):
    """A JoinGroup."""

    group_id: str
    member_id: str
    group_instance_id: str | None
    client: ClientOfMember
    timeouts: Timeouts
    protocol_type: str
    protocols: tuple[Protocol, ...]
    #: Whether a new member is given an id first, and joins with it.
    requires_known_member_id: bool
    #: Whether a static leader that returns may be requested to leave the assignment as it is.
    supports_skip_assignment: bool


class SyncRequest(NamedTuple):
    """A SyncGroup; protocol type and name are None for clients that do not send them."""

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None
    protocol_type: str | None
    protocol_name: str | None
    assignments: dict[str, bytes]


class MemberRequest(NamedTuple):
    """A member of a generation, in a Heartbeat or a commit."""

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None


class LeavingMember(NamedTuple):
    """A member that leaves, by its id or, without one, by its instance id."""

    member_id: str
    group_instance_id: str | None
