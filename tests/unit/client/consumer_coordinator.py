"""Fake of the coordinator of one group of the consumer protocol, behind `send_to_coordinator`.

It shares the partitions of each topic among its members, and moves a partition only after its owner
has given it up. Requests are kept. Everything but the group is the cluster's of the client.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from engine.client.blocking import KafkaClient
from engine.client.connection import Response
from engine.client.errors import NoCommonVersion
from engine.errors import EngineError
from engine.kafka_errors import (
    FENCED_MEMBER_EPOCH,
    STALE_MEMBER_EPOCH,
    UNKNOWN_MEMBER_ID,
    UNRELEASED_INSTANCE_ID,
)
from engine.model import TopicPartition
from engine.wire.structs import message_class

INTERVAL_MS = 500
Part = tuple[bytes, int]


@dataclass
class Member:
    """What the coordinator knows of a member."""

    instance_id: str | None = None
    epoch: int = 0
    topics: list[str] = field(default_factory=list)
    pattern: str | None = None
    #: What it was told to own, and what it may still have.
    told: set[Part] = field(default_factory=set)
    owned: set[Part] = field(default_factory=set)
    has_left: bool = False


class ConsumerCoordinator:
    """The group; `topics` has the ids and counts of partitions, a version below 0 is none."""

    def __init__(self, topics: dict[str, tuple[bytes, int]], highest_version: int = 1) -> None:
        self.topics = topics
        self.highest_version = highest_version
        self.members: dict[str, Member] = {}
        self.group_epoch = 0
        self.offsets: dict[TopicPartition, int] = {}
        self.requests: list[Any] = []
        #: Whether a heartbeat with the epoch before is one whose response was lost.
        self.takes_epoch_before = False
        #: Errors of the next heartbeats, in their order; 0 is none.
        self.codes: deque[int | EngineError] = deque()
        #: Errors of the next commits, as those of heartbeats.
        self.commit_codes: deque[int] = deque()

    @property
    def heartbeats(self) -> list[Any]:
        return [r for r in self.requests if r.message_name == "ConsumerGroupHeartbeatRequest"]

    def expire(self, member_id: str) -> None:
        """Remove a member that was silent for its session."""
        del self.members[member_id]
        self.group_epoch += 1

    def grow(self, topic: str, count: int) -> None:
        self.topics[topic] = (self.topics[topic][0], count)
        self.group_epoch += 1

    def heartbeat(self, request: Any) -> Any:
        response = message_class("ConsumerGroupHeartbeatResponse", "4.3.0")
        code = self.codes.popleft() if self.codes else 0
        if isinstance(code, EngineError):
            raise code
        code = code or self._code(request)
        if code:
            return response(error_code=code, error_message=f"refused by {code}")
        if request.member_epoch < 0:
            self._leave(request)
            return response(member_id=request.member_id, member_epoch=request.member_epoch)
        if request.member_epoch == 0:
            self._join(request)
        member = self.members[request.member_id]
        if request.subscribed_topic_names is not None:
            if set(request.subscribed_topic_names) != set(member.topics):
                self.group_epoch += 1
            member.topics = list(request.subscribed_topic_names)
        if request.subscribed_topic_regex is not None:
            member.pattern = request.subscribed_topic_regex or None
        if request.topic_partitions is not None:
            member.owned = {(t.topic_id, n) for t in request.topic_partitions for n in t.partitions}
        return self._answer(request, member, response)

    def _code(self, request: Any) -> int:
        member = self.members.get(request.member_id)
        if request.member_epoch == 0:
            taken = self._of_instance(request.instance_id)
            return UNRELEASED_INSTANCE_ID if taken and not self.members[taken].has_left else 0
        if member is None:
            return UNKNOWN_MEMBER_ID
        known = (member.epoch, member.epoch - 1 if self.takes_epoch_before else member.epoch)
        if request.member_epoch > 0 and request.member_epoch not in known:
            return FENCED_MEMBER_EPOCH
        return 0

    def _of_instance(self, instance_id: str | None) -> str | None:
        return next(
            (k for k, m in self.members.items() if instance_id and m.instance_id == instance_id),
            None,
        )

    def _join(self, request: Any) -> None:
        left = self._of_instance(request.instance_id)
        if left is not None:
            self.members[request.member_id] = self.members.pop(left)
            self.members[request.member_id].has_left = False
            self.members[request.member_id].told = set()
            return
        names = list(request.subscribed_topic_names or ())
        self.members[request.member_id] = Member(request.instance_id, topics=names)
        self.group_epoch += 1

    def _leave(self, request: Any) -> None:
        if request.member_epoch == -2:
            self.members[request.member_id].has_left = True
            self.members[request.member_id].owned = set()
        else:
            self.expire(request.member_id)

    def _target(self, wanted_id: str) -> set[Part]:
        found: set[Part] = set()
        for name, (topic_id, count) in self.topics.items():
            readers = sorted(
                m for m, row in self.members.items() if name in row.topics or row.pattern
            )
            for number in range(count) if readers else ():
                if readers[number % len(readers)] == wanted_id:
                    found.add((topic_id, number))
        return found

    def _answer(self, request: Any, member: Member, response: Any) -> Any:
        target = self._target(request.member_id)
        of_others = {
            part
            for other_id, other in self.members.items()
            if other_id != request.member_id
            for part in other.owned | other.told
        }
        told = (target & member.owned) if member.owned - target else target - of_others
        assignment = None
        if told != member.told or request.member_epoch == 0:
            by_id: dict[bytes, list[int]] = {}
            for topic_id, number in sorted(told):
                by_id.setdefault(topic_id, []).append(number)
            rows = [response.TopicPartitions(topic_id=k, partitions=n) for k, n in by_id.items()]
            assignment = response.Assignment(topic_partitions=rows)
        member.told = told
        if not member.owned - target:
            member.epoch = self.group_epoch
        return response(
            # Brokers name it as a member joins.
            member_id=None if request.member_epoch else request.member_id,
            member_epoch=member.epoch,
            heartbeat_interval_ms=INTERVAL_MS,
            assignment=assignment,
        )

    def commit(self, request: Any) -> Any:
        of = message_class("OffsetCommitResponse")
        member = self.members.get(request.member_id)
        code = self.commit_codes.popleft() if self.commit_codes else 0
        if code:
            pass
        elif member is None:
            code = UNKNOWN_MEMBER_ID
        elif member.epoch != request.generation_id_or_member_epoch:
            code = STALE_MEMBER_EPOCH
        topics = []
        for topic in request.topics:
            rows = []
            for row in topic.partitions:
                if not code:
                    key = TopicPartition(topic.name, row.partition_index)
                    self.offsets[key] = row.committed_offset
                rows.append(
                    of.OffsetCommitResponsePartition(
                        partition_index=row.partition_index, error_code=code
                    )
                )
            topics.append(of.OffsetCommitResponseTopic(name=topic.name, partitions=rows))
        return of(topics=topics)

    def fetch(self, request: Any) -> Any:
        of = message_class("OffsetFetchResponse")
        (group,) = request.groups
        topics = [
            of.OffsetFetchResponseTopics(
                name=topic.name,
                partitions=[
                    of.OffsetFetchResponsePartitions(
                        partition_index=n,
                        committed_offset=self.offsets.get(TopicPartition(topic.name, n), -1),
                    )
                    for n in topic.partition_indexes
                ],
            )
            for topic in group.topics
        ]
        member = self.members.get(group.member_id or "")
        code = 0
        if member is None:
            code = UNKNOWN_MEMBER_ID if group.member_id else 0
        elif member.epoch != group.member_epoch:
            code = STALE_MEMBER_EPOCH
        row = of.OffsetFetchResponseGroup(group_id="g", topics=topics, error_code=code)
        return of(groups=[row])


class GroupClient:
    """A client whose requests about groups go to a `ConsumerCoordinator`."""

    def __init__(self, client: KafkaClient, coordinator: ConsumerCoordinator) -> None:
        self._client = client
        self._coordinator = coordinator

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def send_to_coordinator(
        self, key: str, api_name: str, message: Any, *, lowest: int = 0, **_: Any
    ) -> Response:
        highest = {"OffsetFetch": 9, "OffsetCommit": 9}.get(
            api_name, self._coordinator.highest_version
        )
        if lowest > highest:
            theirs = None if highest < 0 else (0, highest)
            raise NoCommonVersion(api_name, ours=(lowest, 1), theirs=theirs)
        request = message(highest) if callable(message) else message
        self._coordinator.requests.append(request)
        answer = {
            "ConsumerGroupHeartbeat": self._coordinator.heartbeat,
            "OffsetCommit": self._coordinator.commit,
            "OffsetFetch": self._coordinator.fetch,
        }[api_name]
        return Response(None, highest, answer(request))
