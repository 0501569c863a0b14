"""A client's membership in a group: it joins, gets partitions, sends heartbeats, and leaves.

```
JoinGroup ──> SyncGroup ──> Heartbeat … ──┬──> LeaveGroup, or silence
    ^                                     │
    └── another generation, coordinator ──┘
```

A member that vanishes sends no more requests, and joins again as a new member.

Source: AbstractCoordinator of 3.9.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from engine.client.connection import Call, RequestMessage
from engine.client.settings import Address
from engine.errors import EngineError
from engine.host.promise import Promise
from engine.kafka_errors import (
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    ILLEGAL_GENERATION,
    MEMBER_ID_REQUIRED,
    NONE,
    NOT_COORDINATOR,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
    kafka_error,
)
from engine.model import TopicPartition
from engine.sim.clients import BACKOFF_MS, ClusterRequests
from engine.wire import messages
from engine.wire.structs import Message

SESSION_TIMEOUT_MS: Final = 3_000
HEARTBEAT_MS: Final = 400
_GROUP_KEY_TYPE = 0
_ASSIGNOR = "simulated"
_PROTOCOL_TYPE = "simulation"
#: Error codes after which a member requests the coordinator again.
_MOVED = frozenset((NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS))
#: Error codes after which a member joins again.
REJOINS: Final = frozenset((REBALANCE_IN_PROGRESS, ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID))


class MembershipEvents(Protocol):
    """Receives the events of group members: trace lines, assignments and broken rules."""

    def record(self, subject: str, text: str) -> None:
        """Add a line to the trace."""
        ...

    def check_assignment(
        self, group_id: str, generation_id: int, member_id: str, partitions: list[TopicPartition]
    ) -> None:
        """Check the partitions that a member was assigned in a generation of its group."""
        ...

    def broke(self, rule: str, text: str, partition: TopicPartition | None) -> None:
        """Record a rule that a response to a client broke."""
        ...


class GroupRequests:
    """Sends requests to the coordinator of one group, and waits."""

    def __init__(self, requests: ClusterRequests, group_id: str, events: MembershipEvents) -> None:
        """Create it without a known coordinator."""
        self.name = requests.name
        self.group_id = group_id
        self._requests = requests
        self._events = events
        #: Last known address of the coordinator; None before, and after an error.
        self.coordinator: Address | None = None

    async def send(self, api_name: str, request: RequestMessage, highest: int) -> Message | None:
        """Send a request to the group's coordinator; return the response.

        None, after a back-off, if there is no coordinator or an error; the next call finds it
        again.
        """
        if self.coordinator is None:
            await self._find()
        if self.coordinator is None:
            await self.pause(BACKOFF_MS)
            return None
        try:
            response = await self._requests.send(
                self.coordinator, Call(api_name, request, highest=highest)
            )
        except EngineError as error:
            self._events.record(self.name, f"{api_name}: {error}")
            self.coordinator = None
            await self.pause(BACKOFF_MS)
            return None
        return response.message

    def forget_coordinator(self) -> None:
        """Find the coordinator again before the next request."""
        self.coordinator = None

    async def _find(self) -> None:
        """Find the group's coordinator by a random broker; it stays unknown after an error."""
        request = messages.FindCoordinatorRequest(key=self.group_id, key_type=_GROUP_KEY_TYPE)
        call = Call("FindCoordinator", request, highest=3)
        try:
            response = (await self._requests.send(self._requests.any_broker(), call)).message
        except EngineError:
            return
        if response.error_code == NONE:
            self.coordinator = Address(response.host, response.port)

    async def pause(self, pause_ms: int) -> None:
        """Wait for `pause_ms`."""
        over: Promise[None] = Promise()
        self._requests.after(pause_ms, lambda: over.keep(None))
        await over


class Membership:
    """One client that can be a member of a group repeatedly."""

    def __init__(
        self,
        requests: GroupRequests,
        partitions: Sequence[TopicPartition],
        events: MembershipEvents,
        *,
        session_timeout_ms: int = SESSION_TIMEOUT_MS,
    ) -> None:
        """Create a client that is no member.

        `session_timeout_ms` is also its rebalance time-out.
        """
        self._session_timeout_ms = session_timeout_ms
        self.name = requests.name
        self.group_id = requests.group_id
        #: The member id; empty while the client is no member.
        self.member_id = ""
        self.generation_id = -1
        self._requests = requests
        self._all = list(partitions)
        self._events = events

    def forget(self) -> None:
        """Forget the member id without leaving the group."""
        self.member_id = ""

    async def join(self) -> list[TopicPartition] | None:
        """Send JoinGroup and SyncGroup; return the partitions, None if the caller should retry."""
        protocol = messages.JoinGroupRequest.JoinGroupRequestProtocol
        request = messages.JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=self._session_timeout_ms,
            rebalance_timeout_ms=self._session_timeout_ms,
            member_id=self.member_id,
            group_instance_id=None,
            protocol_type=_PROTOCOL_TYPE,
            protocols=[protocol(name=_ASSIGNOR, metadata=b"")],
        )
        joined = await self._requests.send("JoinGroup", request, 5)
        if joined is None:
            return None
        if joined.error_code == MEMBER_ID_REQUIRED:
            self.member_id = joined.member_id
            return None
        if not await self._is_accepted("JoinGroup", joined.error_code):
            return None
        self.member_id, self.generation_id = joined.member_id, joined.generation_id
        return await self._sync(joined)

    async def _sync(self, joined: Message) -> list[TopicPartition] | None:
        """Send SyncGroup, with assignments if this member is the leader; return its partitions."""
        row = messages.SyncGroupRequest.SyncGroupRequestAssignment
        rows = []
        if joined.leader == self.member_id:
            members = sorted(member.member_id for member in joined.members)
            rows = [
                row(member_id=member_id, assignment=self._share(at, len(members)))
                for at, member_id in enumerate(members)
            ]
        request = messages.SyncGroupRequest(
            group_id=self.group_id,
            generation_id=self.generation_id,
            member_id=self.member_id,
            group_instance_id=None,
            protocol_type=_PROTOCOL_TYPE,
            protocol_name=_ASSIGNOR,
            assignments=rows,
        )
        synced = await self._requests.send("SyncGroup", request, 3)
        if synced is None or not await self._is_accepted("SyncGroup", synced.error_code):
            return None
        assigned = [self._all[int(at)] for at in bytes(synced.assignment).decode().split()]
        self._events.check_assignment(self.group_id, self.generation_id, self.member_id, assigned)
        return assigned

    def _share(self, at: int, count: int) -> bytes:
        """Return the assignment of member `at` of `count`: each `count`-th partition."""
        return " ".join(str(index) for index in range(at, len(self._all), count)).encode()

    async def heartbeat(self) -> int | None:
        """Send a heartbeat; return the error code, None without a response."""
        request = messages.HeartbeatRequest(
            group_id=self.group_id,
            generation_id=self.generation_id,
            member_id=self.member_id,
            group_instance_id=None,
        )
        response = await self._requests.send("Heartbeat", request, 3)
        return None if response is None else self.check_code("Heartbeat", response.error_code)

    async def leave(self) -> None:
        """Send LeaveGroup."""
        identity = messages.LeaveGroupRequest.MemberIdentity(member_id=self.member_id)
        request = messages.LeaveGroupRequest(group_id=self.group_id, members=[identity])
        response = await self._requests.send("LeaveGroup", request, 4)
        if response is not None:
            self.check_code("LeaveGroup", response.error_code)
        self._events.record(self.name, "leaves")

    # Responses

    def check_code(self, api_name: str, code: int) -> int:
        """Return a response's error code; check rule G2: a member may get this code.

        After an error that means a moved coordinator, the coordinator is requested again.
        """
        if code in _MOVED:
            self._requests.forget_coordinator()
        elif code != NONE and code not in REJOINS and not kafka_error(code).is_retriable:
            text = f"{self.name} {api_name}: {kafka_error(code).name}"
            self._events.broke("G2", text, None)
        return code

    async def _is_accepted(self, api_name: str, code: int) -> bool:
        """Return True if the code is NONE; otherwise wait for the back-off.

        After UNKNOWN_MEMBER_ID the next join is that of a new member.
        """
        if self.check_code(api_name, code) == NONE:
            return True
        self._events.record(self.name, f"{api_name}: {kafka_error(code).name}")
        if code == UNKNOWN_MEMBER_ID:
            self.member_id = ""
        await self._requests.pause(BACKOFF_MS)
        return False
