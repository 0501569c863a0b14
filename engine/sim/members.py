"""Members of a group in the simulated cluster: they join, stay, commit, leave, and vanish.

```
JoinGroup ──> SyncGroup ──> Heartbeat, OffsetCommit … ──┬──> LeaveGroup, or silence
    ^                                                   │
    └── another generation, another coordinator ────────┘
```

A member consumes nothing: what it commits is a number that rises over all commits of the run, so
that each committed offset names the commit that it comes from. A member that vanishes sends
nothing any more, and is a new member when it comes again.

Source: AbstractCoordinator, ConsumerCoordinator of 3.9.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
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
from engine.sim.clients import BACKOFF_MS, ClusterLinks
from engine.wire import messages
from engine.wire.structs import Message

SESSION_TIMEOUT_MS: Final = 3_000
REBALANCE_TIMEOUT_MS: Final = 3_000
_HEARTBEAT_MS = 400
_GROUP_KEY_TYPE = 0
_ASSIGNOR = "simulated"
_PROTOCOL_TYPE = "simulation"
#: A group without members, known or not.
_EMPTY_STATES = frozenset(("Empty", "Dead"))
#: How often a member leaves or vanishes between two heartbeats.
_LEAVE_SHARE, _VANISH_SHARE = 0.02, 0.02
_COMMIT_SHARE = 0.4
#: What makes a member look for the coordinator again.
_MOVED = frozenset((NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS))
#: What makes a member join again.
_REJOINS = frozenset((REBALANCE_IN_PROGRESS, ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID))


class Commit:
    """One offset that a member commits; `code` is None while there is no response."""

    __slots__ = ("code", "ended_at", "is_outdated", "number", "partition", "sent_at")

    def __init__(
        self, partition: TopicPartition, number: int, sent_at: int, *, is_outdated: bool = False
    ) -> None:
        self.partition = partition
        self.number = number
        #: When it was sent and answered, by the order of all such events.
        self.sent_at = sent_at
        self.ended_at: int | None = None
        #: Whether a later generation was known as it was sent.
        self.is_outdated = is_outdated
        self.code: int | None = None


class MemberEvents(Protocol):
    """Who is told what members see."""

    def told(self, subject: str, text: str) -> None:
        """Take note of something that a reader of the trace wants to know."""
        ...

    def assigned(
        self, group_id: str, generation_id: int, member_id: str, partitions: list[TopicPartition]
    ) -> None:
        """Take note of what a member has in a generation."""
        ...

    def commits(self, group_id: str, partition: TopicPartition, generation_id: int) -> Commit:
        """Return a commit that is sent now, with the next number."""
        ...

    def committed(self, commit: Commit, code: int) -> None:
        """Take note of the response to a commit."""
        ...

    def broke(self, rule: str, text: str, partition: TopicPartition | None) -> None:
        """Take note of a broken promise to a client."""
        ...


class GroupLinks:
    """Requests to the coordinator of one group, and pauses."""

    def __init__(self, links: ClusterLinks, group_id: str, events: MemberEvents) -> None:
        self.name = links.name
        self.group_id = group_id
        self._links = links
        self._events = events
        self._coordinator: Address | None = None

    async def ask(self, api_name: str, request: RequestMessage, highest: int) -> Message | None:
        """Return a response, None if there is none now: then the coordinator is looked up again."""
        if self._coordinator is None:
            await self._find()
        if self._coordinator is None:
            await self.pause(BACKOFF_MS)
            return None
        try:
            response = await self._links.ask(
                self._coordinator, Call(api_name, request, highest=highest)
            )
        except EngineError as error:
            self._events.told(self.name, f"{api_name}: {error}")
            self._coordinator = None
            await self.pause(BACKOFF_MS)
            return None
        return response.message

    def forget_coordinator(self) -> None:
        """Look the coordinator up before the next request."""
        self._coordinator = None

    async def _find(self) -> None:
        request = messages.FindCoordinatorRequest(key=self.group_id, key_type=_GROUP_KEY_TYPE)
        call = Call("FindCoordinator", request, highest=3)
        try:
            response = (await self._links.ask(self._links.any_broker(), call)).message
        except EngineError:
            return
        if response.error_code == NONE:
            self._coordinator = Address(response.host, response.port)

    async def pause(self, pause_ms: int) -> None:
        """Wait."""
        over: Promise[None] = Promise()
        self._links.after(pause_ms, lambda: over.keep(None))
        await over


class SimulatedMember:
    """One client of a group, which is a member again and again."""

    def __init__(
        self,
        links: GroupLinks,
        partitions: Sequence[TopicPartition],
        random: Random,
        events: MemberEvents,
    ) -> None:
        self.name = links.name
        #: Whether it sends nothing any more.
        self.is_done = False
        self._links = links
        self._group_id = links.group_id
        self._all = list(partitions)
        self._random = random
        self._events = events
        self._member_id = ""
        self._generation_id = -1
        self._is_finishing = False

    def finish(self) -> None:
        """Be a member no more: leave, or vanish."""
        self._is_finishing = True

    async def run(self) -> None:
        """Be a member until it is to finish."""
        while not self._is_finishing:
            assigned = await self._join()
            if assigned is not None and not await self._stay(assigned):
                self._member_id = ""
                await self._links.pause(self._random.randrange(1, 2 * SESSION_TIMEOUT_MS))
        if self._member_id and self._draws(0.5):
            await self._leave()
        self.is_done = True

    def _draws(self, share: float) -> bool:
        return self._random.random() < share

    # Joining

    async def _join(self) -> list[TopicPartition] | None:
        """Join and get partitions; None if that is to be tried again."""
        protocol = messages.JoinGroupRequest.JoinGroupRequestProtocol
        request = messages.JoinGroupRequest(
            group_id=self._group_id,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            member_id=self._member_id,
            group_instance_id=None,
            protocol_type=_PROTOCOL_TYPE,
            protocols=[protocol(name=_ASSIGNOR, metadata=b"")],
        )
        joined = await self._links.ask("JoinGroup", request, 5)
        if joined is None:
            return None
        if joined.error_code == MEMBER_ID_REQUIRED:
            self._member_id = joined.member_id
            return None
        if not await self._is_accepted("JoinGroup", joined.error_code):
            return None
        self._member_id, self._generation_id = joined.member_id, joined.generation_id
        return await self._sync(joined)

    async def _sync(self, joined: Message) -> list[TopicPartition] | None:
        row = messages.SyncGroupRequest.SyncGroupRequestAssignment
        rows = []
        if joined.leader == self._member_id:
            members = sorted(member.member_id for member in joined.members)
            rows = [
                row(member_id=member_id, assignment=self._share(at, len(members)))
                for at, member_id in enumerate(members)
            ]
        request = messages.SyncGroupRequest(
            group_id=self._group_id,
            generation_id=self._generation_id,
            member_id=self._member_id,
            group_instance_id=None,
            protocol_type=_PROTOCOL_TYPE,
            protocol_name=_ASSIGNOR,
            assignments=rows,
        )
        synced = await self._links.ask("SyncGroup", request, 3)
        if synced is None or not await self._is_accepted("SyncGroup", synced.error_code):
            return None
        assigned = [self._all[int(at)] for at in bytes(synced.assignment).decode().split()]
        self._events.assigned(self._group_id, self._generation_id, self._member_id, assigned)
        return assigned

    def _share(self, at: int, count: int) -> bytes:
        """Return the partitions of one of `count` members: each `count`-th, from `at` on."""
        return " ".join(str(index) for index in range(at, len(self._all), count)).encode()

    # Staying

    async def _stay(self, assigned: list[TopicPartition]) -> bool:
        """Stay in a generation; returns whether to join again at once."""
        while not self._is_finishing:
            await self._links.pause(self._random.randrange(1, 2 * _HEARTBEAT_MS))
            if self._draws(_VANISH_SHARE):
                self._events.told(self.name, "vanishes")
                return False
            if self._draws(_LEAVE_SHARE):
                await self._leave()
                return False
            if assigned and self._draws(_COMMIT_SHARE):
                code = await self._commit(self._random.choice(assigned))
            else:
                code = await self._heartbeat()
            if code in _REJOINS:
                if code == UNKNOWN_MEMBER_ID:
                    self._member_id = ""
                return True
        return True

    async def _heartbeat(self) -> int | None:
        request = messages.HeartbeatRequest(
            group_id=self._group_id,
            generation_id=self._generation_id,
            member_id=self._member_id,
            group_instance_id=None,
        )
        response = await self._links.ask("Heartbeat", request, 3)
        return None if response is None else self._judged("Heartbeat", response.error_code)

    async def _commit(self, partition: TopicPartition) -> int | None:
        commit = self._events.commits(self._group_id, partition, self._generation_id)
        of = messages.OffsetCommitRequest
        row = of.OffsetCommitRequestPartition(
            partition_index=partition.partition,
            committed_offset=commit.number,
            committed_metadata="",
        )
        request = of(
            group_id=self._group_id,
            generation_id_or_member_epoch=self._generation_id,
            member_id=self._member_id,
            group_instance_id=None,
            topics=[of.OffsetCommitRequestTopic(name=partition.topic, partitions=[row])],
        )
        response = await self._links.ask("OffsetCommit", request, 7)
        if response is None:
            return None
        ((code,),) = ([int(p.error_code) for p in topic.partitions] for topic in response.topics)
        self._events.committed(commit, code)
        return self._judged("OffsetCommit", code)

    async def _leave(self) -> None:
        identity = messages.LeaveGroupRequest.MemberIdentity(member_id=self._member_id)
        request = messages.LeaveGroupRequest(group_id=self._group_id, members=[identity])
        response = await self._links.ask("LeaveGroup", request, 4)
        if response is not None:
            self._judged("LeaveGroup", response.error_code)
        self._events.told(self.name, "leaves")

    # Responses

    def _judged(self, api_name: str, code: int) -> int:
        """Return a code that a member can go on with; any other breaks a promise."""
        if code in _MOVED:
            self._links.forget_coordinator()
        elif code != NONE and code not in _REJOINS and not kafka_error(code).is_retriable:
            text = f"{self.name} {api_name}: {kafka_error(code).name}"
            self._events.broke("G2", text, None)
        return code

    async def _is_accepted(self, api_name: str, code: int) -> bool:
        """Return whether a member is taken; one that is not known joins as a new one."""
        if self._judged(api_name, code) == NONE:
            return True
        self._events.told(self.name, f"{api_name}: {kafka_error(code).name}")
        if code == UNKNOWN_MEMBER_ID:
            self._member_id = ""
        await self._links.pause(BACKOFF_MS)
        return False


class GroupReader:
    """Asks for what a group has once its members are gone."""

    def __init__(self, links: GroupLinks) -> None:
        self._links = links
        #: The offsets of the group, None until it has no member.
        self.offsets: Mapping[TopicPartition, int] | None = None

    async def run(self) -> None:
        """Ask until the group is empty, and then for its offsets."""
        while not await self._is_empty():
            await self._links.pause(BACKOFF_MS)
        while self.offsets is None:
            self.offsets = await self._fetch()

    async def _is_empty(self) -> bool:
        request = messages.DescribeGroupsRequest(groups=[self._links.group_id])
        response = await self._links.ask("DescribeGroups", request, 5)
        if response is None:
            return False
        (group,) = response.groups
        if group.error_code != NONE:
            self._links.forget_coordinator()
            return False
        return group.group_state in _EMPTY_STATES

    async def _fetch(self) -> Mapping[TopicPartition, int] | None:
        request = messages.OffsetFetchRequest(group_id=self._links.group_id, topics=None)
        response = await self._links.ask("OffsetFetch", request, 7)
        if response is None or response.error_code != NONE:
            self._links.forget_coordinator()
            await self._links.pause(BACKOFF_MS)
            return None
        return {
            TopicPartition(topic.name, row.partition_index): row.committed_offset
            for topic in response.topics
            for row in topic.partitions
        }
