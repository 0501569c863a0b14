"""A member of a group, and the responses that it waits for.

Source: MemberMetadata.scala of 3.9.1.
"""

from __future__ import annotations

from typing import NamedTuple

from engine.host.promise import Promise

#: The member id in the request of a client that has none yet.
UNKNOWN_MEMBER = ""


class Protocol(NamedTuple):
    """An assignor that a member supports, and the member's subscription for it."""

    name: str
    metadata: bytes


class JoinedMember(NamedTuple):
    """A member as its group's leader sees it in the JoinGroup response."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


class JoinResult(NamedTuple):
    """The result of a JoinGroup; `members` is empty for all but the leader."""

    member_id: str
    error_code: int = 0
    generation_id: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader_id: str = UNKNOWN_MEMBER
    members: tuple[JoinedMember, ...] = ()
    skip_assignment: bool = False


class SyncResult(NamedTuple):
    """The result of a SyncGroup."""

    error_code: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


class ClientOfMember(NamedTuple):
    """A member's client id and host, for descriptions of the group."""

    client_id: str
    client_host: str


class Timeouts(NamedTuple):
    """A member's session timeout, and its timeout for rejoining."""

    rebalance_timeout_ms: int
    session_timeout_ms: int


class GroupMember:
    """One member of one group.

    `join` and `sync` are the responses that are parked, None while none is. The session timer
    does not run against a member that waits for either.
    """

    __slots__ = (
        "assignment",
        "client",
        "group_instance_id",
        "is_heartbeat_satisfied",
        "is_new",
        "join",
        "member_id",
        "protocol_type",
        "protocols",
        "sync",
        "timeouts",
    )

    def __init__(
        self,
        member_id: str,
        group_instance_id: str | None,
        client: ClientOfMember,
        timeouts: Timeouts,
        protocol_type: str,
        protocols: tuple[Protocol, ...],
    ) -> None:
        """Begin without assignment; JoinGroup's fields are taken over as they are."""
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client = client
        self.timeouts = timeouts
        self.protocol_type = protocol_type
        self.protocols = protocols
        self.assignment = b""
        self.join: Promise[JoinResult] | None = None
        self.sync: Promise[SyncResult] | None = None
        #: Whether the first JoinGroup has no response yet: the client knows no member id to
        #: heartbeat with.
        self.is_new = False
        #: Set while the operation of the session timer is checked, which completes it: a request
        #: came, or the member has left.
        self.is_heartbeat_satisfied = False

    @property
    def is_static(self) -> bool:
        """Return whether the member keeps its place over restarts of its client."""
        return self.group_instance_id is not None

    @property
    def has_satisfied_heartbeat(self) -> bool:
        """Return whether the session timer has nothing against the member."""
        if self.is_new:
            return self.is_heartbeat_satisfied
        if self.join is not None or self.sync is not None:
            return True
        return self.is_heartbeat_satisfied

    def metadata(self, protocol_name: str) -> bytes:
        """Return the subscription for an assignor that the member supports."""
        return next(found.metadata for found in self.protocols if found.name == protocol_name)

    def matches(self, protocols: tuple[Protocol, ...]) -> bool:
        """Return whether a repeated join brings the protocols that the member has."""
        return protocols == self.protocols

    def vote(self, candidates: set[str]) -> str:
        """Return the candidate that the member lists first."""
        return next(found.name for found in self.protocols if found.name in candidates)
