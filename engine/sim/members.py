"""Members of a group in the simulated cluster that commit offsets.

A member consumes nothing: each committed offset is a number that increases over all commits of the
run, so that it identifies its commit. A member that pauses may be removed from its group meanwhile,
and then commit for an old generation.

Source: ConsumerCoordinator of 3.9.1; `memberships.py` implements joining and leaving.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Protocol

from engine.kafka_errors import NONE, UNKNOWN_MEMBER_ID
from engine.model import TopicPartition
from engine.sim.clients import BACKOFF_MS
from engine.sim.memberships import (
    HEARTBEAT_MS,
    REJOINS,
    SESSION_TIMEOUT_MS,
    GroupRequests,
    Membership,
    MembershipEvents,
)
from engine.wire import messages

#: States of a group without members, or of an unknown group.
_EMPTY_STATES = frozenset(("Empty", "Dead"))
#: Probabilities that a member leaves, or vanishes, between two heartbeats.
_LEAVE_SHARE, _VANISH_SHARE = 0.02, 0.02
_COMMIT_SHARE = 0.4
#: Probability that a member pauses for longer than its session, and then continues.
_STILL_SHARE = 0.02


class Commit:
    """One offset commit of a member; `code` is None until there is a response."""

    __slots__ = ("code", "ended_at", "is_outdated", "number", "partition", "sent_at")

    def __init__(
        self, partition: TopicPartition, number: int, sent_at: int, *, is_outdated: bool = False
    ) -> None:
        """Create a commit.

        `number` and `sent_at` increase with each one, `sent_at` counts events.
        """
        self.partition = partition
        self.number = number
        #: Event numbers of the request and of the response (None before).
        self.sent_at = sent_at
        self.ended_at: int | None = None
        #: Whether a later generation was known when the commit was sent.
        self.is_outdated = is_outdated
        self.code: int | None = None


class MemberEvents(MembershipEvents, Protocol):
    """Receives the commits of group members."""

    def record_commit(
        self, group_id: str, partition: TopicPartition, generation_id: int, member_id: str
    ) -> Commit:
        """Record that a member sends an offset commit now; return its numbered record."""
        ...

    def record_response(self, commit: Commit, code: int) -> None:
        """Record the response to an offset commit, and check it."""
        ...


class SimulatedMember:
    """One client that joins a group repeatedly."""

    def __init__(
        self,
        requests: GroupRequests,
        partitions: Sequence[TopicPartition],
        random: Random,
        events: MemberEvents,
    ) -> None:
        """Create a client; `run` works until `finish` is called, then sets `is_done`."""
        self.name = requests.name
        #: Whether the client sends nothing more.
        self.is_done = False
        self._requests = requests
        self._membership = Membership(requests, partitions, events)
        self._random = random
        self._events = events
        self._is_finishing = False

    def finish(self) -> None:
        """Make the client end its membership: it leaves, or vanishes."""
        self._is_finishing = True

    async def run(self) -> None:
        """Join the group repeatedly until `finish`."""
        membership = self._membership
        while not self._is_finishing:
            assigned = await membership.join()
            if assigned is not None and not await self._stay(assigned):
                membership.forget()
                await self._requests.pause(self._random.randrange(1, 2 * SESSION_TIMEOUT_MS))
        if membership.member_id and self._draws(0.5):
            await membership.leave()
        self.is_done = True

    def _draws(self, share: float) -> bool:
        """Return True with the probability `share`."""
        return self._random.random() < share

    async def _stay(self, assigned: list[TopicPartition]) -> bool:
        """Send heartbeats and commits in a generation; return True to join again at once.

        False after the member has left or vanished.
        """
        while not self._is_finishing:
            await self._requests.pause(self._random.randrange(1, 2 * HEARTBEAT_MS))
            if self._draws(_STILL_SHARE):
                still_ms = self._random.randrange(SESSION_TIMEOUT_MS, 3 * SESSION_TIMEOUT_MS)
                await self._requests.pause(still_ms)
            if self._draws(_VANISH_SHARE):
                self._events.record(self.name, "vanishes")
                return False
            if self._draws(_LEAVE_SHARE):
                await self._membership.leave()
                return False
            if assigned and self._draws(_COMMIT_SHARE):
                code = await self._commit(self._random.choice(assigned))
            else:
                code = await self._membership.heartbeat()
            if code in REJOINS:
                if code == UNKNOWN_MEMBER_ID:
                    self._membership.forget()
                return True
        return True

    async def _commit(self, partition: TopicPartition) -> int | None:
        """Commit the next number as the offset of a partition.

        Returns the error code, None without a response.
        """
        membership = self._membership
        commit = self._events.record_commit(
            membership.group_id, partition, membership.generation_id, membership.member_id
        )
        of = messages.OffsetCommitRequest
        row = of.OffsetCommitRequestPartition(
            partition_index=partition.partition,
            committed_offset=commit.number,
            committed_metadata="",
        )
        request = of(
            group_id=membership.group_id,
            generation_id_or_member_epoch=membership.generation_id,
            member_id=membership.member_id,
            group_instance_id=None,
            topics=[of.OffsetCommitRequestTopic(name=partition.topic, partitions=[row])],
        )
        response = await self._requests.send("OffsetCommit", request, 7)
        if response is None:
            return None
        ((code,),) = ([int(p.error_code) for p in topic.partitions] for topic in response.topics)
        self._events.record_response(commit, code)
        return membership.check_code("OffsetCommit", code)


class GroupReader:
    """Waits for the end of a group's members, then reads its offsets."""

    def __init__(self, requests: GroupRequests) -> None:
        """Create a reader without offsets."""
        self._requests = requests
        #: The committed offsets of the group; None until they were read.
        self.offsets: Mapping[TopicPartition, int] | None = None

    async def run(self) -> None:
        """Repeat DescribeGroups until the group is empty, then fetch its stable offsets."""
        while not await self._is_empty():
            await self._requests.pause(BACKOFF_MS)
        while self.offsets is None:
            self.offsets = await self._fetch()

    async def _is_empty(self) -> bool:
        """Return True if DescribeGroups shows a group without members; False after errors."""
        request = messages.DescribeGroupsRequest(groups=[self._requests.group_id])
        response = await self._requests.send("DescribeGroups", request, 5)
        if response is None:
            return False
        (group,) = response.groups
        if group.error_code != NONE:
            self._requests.forget_coordinator()
            return False
        return group.group_state in _EMPTY_STATES

    async def _fetch(self) -> Mapping[TopicPartition, int] | None:
        """Fetch all committed offsets of the group; None, after a back-off, on any error."""
        request = messages.OffsetFetchRequest(
            group_id=self._requests.group_id, topics=None, require_stable=True
        )
        response = await self._requests.send("OffsetFetch", request, 7)
        if (
            response is None
            or response.error_code != NONE
            or any(row.error_code != NONE for of in response.topics for row in of.partitions)
        ):
            self._requests.forget_coordinator()
            await self._requests.pause(BACKOFF_MS)
            return None
        return {
            TopicPartition(topic.name, row.partition_index): row.committed_offset
            for topic in response.topics
            for row in topic.partitions
        }
