"""OffsetCommit (8): the positions of a group's consumers.

| versions | difference |
|---|---|
| 0 | not served: Kafka keeps these in znodes, where no client of today looks |
| 1 | each partition has a time of its own |
| 2 … 4 | a retention, in place of the broker's |
| 6 | leader epochs |
| 7 | static members |

Source: KafkaApis.handleOffsetCommitRequest; GRP-13, GRP-16; KIP-211, KIP-320.
"""

from __future__ import annotations

from collections.abc import Collection

from engine.api.admission import AclOperation, AclResource
from engine.api.commit_order import answered_rows
from engine.api.exchange import Exchange
from engine.groups.group_offsets import CommittedOffset
from engine.groups.offset_commits import Codes, OffsetCommits
from engine.groups.requests import MemberRequest
from engine.host.ports import Clock
from engine.host.promise import Promise
from engine.kafka_errors import (
    GROUP_AUTHORIZATION_FAILED,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSUPPORTED_VERSION,
)
from engine.model import TopicPartition
from engine.records.decode import int64
from engine.replication.metadata_cache import MetadataCache
from engine.wire import messages

_DEFAULT = -1
_WITH_TIMES = 1


class OffsetCommit:
    """Answers OffsetCommit."""

    def __init__(self, commits: OffsetCommits, metadata_cache: MetadataCache, clock: Clock) -> None:
        self._commits = commits
        self._metadata_cache = metadata_cache
        self._clock = clock

    def handle(
        self, request: messages.OffsetCommitRequest, exchange: Exchange
    ) -> messages.OffsetCommitResponse | Promise[messages.OffsetCommitResponse]:
        """Promise an error code for each partition."""
        session = exchange.session
        if not session.may(AclOperation.READ, AclResource.GROUP, request.group_id):
            return _refused(request, GROUP_AUTHORIZATION_FAILED)
        if exchange.api_version < _WITH_TIMES:
            return _refused(request, UNSUPPORTED_VERSION)
        refused: Codes = {}
        refused_topics: set[str] = set()
        offsets: dict[TopicPartition, CommittedOffset] = {}
        now_ms = self._clock.wall_ms()
        retention_ms = request.retention_time_ms
        expire_ms = None if retention_ms == _DEFAULT else int64(now_ms + retention_ms)
        for topic in request.topics:
            may_read = session.may(AclOperation.READ, AclResource.TOPIC, topic.name)
            if not may_read or topic.name not in self._metadata_cache.topics:
                refused_topics.add(topic.name)
            for row in topic.partitions:
                partition = TopicPartition(topic.name, row.partition_index)
                if not may_read:
                    refused[partition] = TOPIC_AUTHORIZATION_FAILED
                elif not self._metadata_cache.is_known(partition):
                    refused[partition] = UNKNOWN_TOPIC_OR_PARTITION
                else:
                    offsets[partition] = _committed(row, now_ms, expire_ms)
        if not offsets:
            return _response(request, refused, {}, refused_topics)
        member = MemberRequest(
            request.group_id,
            request.generation_id_or_member_epoch,
            request.member_id,
            request.group_instance_id,
        )
        committed = self._commits.commit(member, offsets)
        return committed.then(lambda written: _response(request, refused, written, refused_topics))


def _committed(
    row: messages.OffsetCommitRequest.OffsetCommitRequestPartition,
    now_ms: int,
    expire_ms: int | None,
) -> CommittedOffset:
    has_time = row.commit_timestamp != _DEFAULT
    return CommittedOffset(
        row.committed_offset,
        row.committed_leader_epoch,
        row.committed_metadata or "",
        row.commit_timestamp if has_time else now_ms,
        expire_ms,
    )


def _refused(request: messages.OffsetCommitRequest, code: int) -> messages.OffsetCommitResponse:
    keys = (
        TopicPartition(topic.name, row.partition_index)
        for topic in request.topics
        for row in topic.partitions
    )
    names = {topic.name for topic in request.topics}
    return _response(request, dict.fromkeys(keys, code), {}, names)


def _response(
    request: messages.OffsetCommitRequest,
    refused: Codes,
    written: Codes,
    refused_topics: Collection[str],
) -> messages.OffsetCommitResponse:
    response = messages.OffsetCommitResponse
    return response(
        topics=[
            response.OffsetCommitResponseTopic(
                name=name,
                partitions=[
                    response.OffsetCommitResponsePartition(partition_index=index, error_code=code)
                    for index, code in rows
                ],
            )
            for name, rows in answered_rows(request.topics, refused, written, refused_topics)
        ]
    )
