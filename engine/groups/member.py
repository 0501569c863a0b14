"""A member of a group, with its parked JoinGroup and SyncGroup.

Source: MemberMetadata.scala of 3.9.1.
"""

from __future__ import annotations

from typing import NamedTuple

from engine.host.promise import Promise

#: The member id that a client without one sends.
UNKNOWN_MEMBER = ""


class Protocol(NamedTuple):
    """An assignor that a member supports, and the member's subscription for it."""

    name: str
    metadata: bytes


class JoinedMember(NamedTuple):
    """One member in the JoinGroup response to the group's leader."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


class JoinResult(NamedTuple):
    """The result of a JoinGroup; `members` is empty except in the response to the leader."""

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
    """The client id and host of a member, for DescribeGroups."""

    client_id: str
    client_host: str


class Timeouts(NamedTuple):
    """A member's rebalance timeout and session timeout."""

    rebalance_timeout_ms: int
    session_timeout_ms: int


class GroupMember:
    """One member of one group.

    `join` and `sync` are the promises of parked requests, None if none is parked. The session timer
    does not expire a member with a parked request.
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
        """Create a member from the fields of its JoinGroup, without an assignment."""
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client = client
        self.timeouts = timeouts
        self.protocol_type = protocol_type
        self.protocols = protocols
        self.assignment = b""
        self.join: Promise[JoinResult] | None = None
        self.sync: Promise[SyncResult] | None = None
        #: True until the first JoinGroup is answered: before, the client has no member id to send
        #: heartbeats with.
        self.is_new = False
        #: Set while the session timer's operation is checked: True completes it, because a request
        #: came or the member was removed.
        self.is_heartbeat_satisfied = False

    @property
    def is_static(self) -> bool:
        """True if the member has an instance id.

        It keeps its assignment over restarts (KIP-345).
        """
        return self.group_instance_id is not None

    @property
    def has_satisfied_heartbeat(self) -> bool:
        """True if the member's session timer may end without its removal.

        A request of the member came, or one of its requests is parked and awaits a response.
        """
        if self.is_new:
            return self.is_heartbeat_satisfied
        if self.join is not None or self.sync is not None:
            return True
        return self.is_heartbeat_satisfied

    def metadata(self, protocol_name: str) -> bytes:
        """Return the member's subscription for one of its protocols.

        Raises StopIteration for a protocol that it does not have.
        """
        return next(found.metadata for found in self.protocols if found.name == protocol_name)

    def matches(self, protocols: tuple[Protocol, ...]) -> bool:
        """Return True if a repeated JoinGroup has the same protocols and subscriptions."""
        return protocols == self.protocols

    def vote(self, candidates: set[str]) -> str:
        """Return the protocol that the member prefers.

        It is the first of its own that is in `candidates`.
        """
        return next(found.name for found in self.protocols if found.name in candidates)
