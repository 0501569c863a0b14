"""The recorded calls of kafka-consumer-groups: the topic, the consumers and what they committed."""

from __future__ import annotations

import re
from collections.abc import Callable

from engine.client.blocking import KafkaClient
from engine.client.group_admin import MemberToRemove, remove_members, set_offsets
from engine.client.settings import ClientSettings
from engine.model import TopicPartition
from engine.wire import messages
from engine.wire.codec import message_codec
from engine.wire.structs import Message
from tests.unit.kctl.played_tools import Ended, PlayedTools, Recorded
from tests.unit.reassign.memory_streams import MemoryStreams, client_of

_CLICKS = [TopicPartition("clicks", index) for index in range(3)]
_LEADERS = {key: key.partition + 1 for key in _CLICKS}
_SESSION_TIMEOUT_MS = 600_000


class PlayedGroups(PlayedTools):
    """A topic of three partitions, a group that has read it and one that has a member."""

    def __init__(self, recorded: Recorded) -> None:
        super().__init__(
            recorded,
            offsets_topic_num_partitions="4",
            offsets_topic_replication_factor="3",
            group_initial_rebalance_delay_ms="0",
        )
        self._member_id = ""

    def run(self, tool: str, words: list[str]) -> Ended:
        """Run a tool of ours; addresses are as long as those that were recorded."""
        ended = super().run(tool, words)
        text = re.sub(r"here:(\d{5})  \((\d)\) {5}", r"127.0.0.1:\1  (\2)", ended.stdout)
        return ended._replace(stdout=re.sub(r"/memory\S* *", "/127.0.0.1      ", text))

    def prepare(self, name: str) -> None:
        """Do what a step of another tool did."""
        _PREPARATIONS[name](self)

    # What the other tools did

    def create_clicks(self) -> None:
        """Create the topic."""
        self.cluster.create_topic("clicks", ((1, 2), (2, 3), (3, 1)))

    def produce(self, *counts: int) -> None:
        """Write so many records to each partition."""
        for key, count in zip(_CLICKS, counts, strict=True):
            for _ in range(count):
                self.cluster.produce(_LEADERS[key], 1, key=key)

    def commit(self, group_id: str, *offsets: int) -> None:
        """Have a group without members commit for all partitions."""
        with client_of(self.cluster, MemoryStreams(self.cluster)) as client:
            set_offsets(client, group_id, dict(zip(_CLICKS, offsets, strict=True)))

    def join(self) -> None:
        """Have the consumer reader-1 join the group live, take all partitions and commit."""
        with client_of(self.cluster, MemoryStreams(self.cluster)) as client:
            client.settings = ClientSettings(client_id="reader-1")
            joined = join_group(client, "live", "clicks")
            self._member_id = joined.member_id
            _commit(client, joined, (15, 15, 6))

    def leave(self) -> None:
        """Have the member commit what it has read since, and leave."""
        with client_of(self.cluster, MemoryStreams(self.cluster)) as client:
            remove_members(client, "live", [MemberToRemove(self._member_id)])
            set_offsets(client, "live", dict(zip(_CLICKS, (16, 15, 8), strict=True)))


def join_group(client: KafkaClient, group_id: str, topic: str) -> messages.JoinGroupResponse:
    """Have a member join a group that has none, and give it all three partitions of a topic."""
    subscription = messages.ConsumerProtocolSubscription(topics=[topic])
    row = messages.JoinGroupRequest.JoinGroupRequestProtocol(
        name="range", metadata=b"\0\0" + message_codec(_SUBSCRIPTION, 0).encode(subscription)
    )
    request = messages.JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=_SESSION_TIMEOUT_MS,
        rebalance_timeout_ms=_SESSION_TIMEOUT_MS,
        protocol_type="consumer",
        protocols=[row],
    )
    response = client.send_to_coordinator(group_id, "JoinGroup", request, retriable_code=_code)
    request.member_id = response.message.member_id
    response = client.send_to_coordinator(group_id, "JoinGroup", request, retriable_code=_code)
    joined: messages.JoinGroupResponse = response.message
    _sync(client, group_id, topic, joined)
    return joined


def _sync(
    client: KafkaClient, group_id: str, topic: str, joined: messages.JoinGroupResponse
) -> None:
    partitions = messages.ConsumerProtocolAssignment.TopicPartition(
        topic=topic, partitions=[0, 1, 2]
    )
    assignment = messages.ConsumerProtocolAssignment(assigned_partitions=[partitions])
    row = messages.SyncGroupRequest.SyncGroupRequestAssignment(
        member_id=joined.member_id,
        assignment=b"\0\0" + message_codec(_ASSIGNMENT, 0).encode(assignment),
    )
    request = messages.SyncGroupRequest(
        group_id=group_id,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[row],
    )
    client.send_to_coordinator(group_id, "SyncGroup", request, retriable_code=_code)


def _commit(
    client: KafkaClient, joined: messages.JoinGroupResponse, offsets: tuple[int, ...]
) -> None:
    of = messages.OffsetCommitRequest
    rows = [
        of.OffsetCommitRequestPartition(partition_index=index, committed_offset=offset)
        for index, offset in enumerate(offsets)
    ]
    request = of(
        group_id="live",
        generation_id_or_member_epoch=joined.generation_id,
        member_id=joined.member_id,
        topics=[of.OffsetCommitRequestTopic(name="clicks", partitions=rows)],
    )
    client.send_to_coordinator("live", "OffsetCommit", request, retriable_code=lambda _: 0)


def _code(message: Message) -> int:
    return int(message.error_code)


_SUBSCRIPTION = "ConsumerProtocolSubscription"
_ASSIGNMENT = "ConsumerProtocolAssignment"
_PREPARATIONS: dict[str, Callable[[PlayedGroups], None]] = {
    "groups-topic": lambda it: it.create_clicks(),
    "produce-clicks": lambda it: it.produce(15, 15, 6),
    "consume-group-audit": lambda it: it.commit("audit", 15, 15, 6),
    "groups-live-start": lambda it: it.join(),
    "produce-live-more": lambda it: it.produce(1, 0, 2),
    "groups-live-stop": lambda it: it.leave(),
}
