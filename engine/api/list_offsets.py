"""ListOffsets (2): the start and end of a log, and its offset at a time.

| requested time | from version | response |
|---|---|---|
| ≥ 0 | 0 | the first visible record with this time or a later one |
| −1 latest | 0 | the end that the reader sees |
| −2 earliest | 0 | the log's start |
| −3 max timestamp | 7 | the first record with the largest time |
| −4 earliest local | 8 | the log's start, as nothing is in tiered storage |
| −5 latest tiered | 9 | −1, for the same reason |

| versions | difference |
|---|---|
| 0 | a list of offsets where segments begin, newest first, by the times of their files |
| 1 | one offset and its time |
| 2 | isolation level |
| 4 | leader epochs in requests and responses |
| 5 | OFFSET_NOT_AVAILABLE, before it LEADER_NOT_AVAILABLE |

Replica −1 is a consumer, −2 a debugger that reads any replica; all but consumers see the log's end.
Source: KafkaApis.handleListOffsetRequest, UnifiedLog.legacyFetchOffsetsBefore; KIP-79, KIP-734.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from engine.api.admission import AclOperation, AclResource
from engine.api.exchange import Exchange
from engine.errors import ApiError, StorageError
from engine.host.ports import Clock
from engine.kafka_errors import (
    INVALID_REQUEST,
    LEADER_NOT_AVAILABLE,
    OFFSET_NOT_AVAILABLE,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_SERVER_ERROR,
    UNSUPPORTED_VERSION,
)
from engine.log.local_log import LocalLog
from engine.log.log_reader import EARLIEST, EARLIEST_LOCAL, LATEST, LATEST_TIERED, MAX_TIMESTAMP
from engine.model import TopicPartition
from engine.replication.partition_types import CONSUMER_ID
from engine.replication.replica_manager import ReplicaManager
from engine.replication.watermark import READ_COMMITTED, READ_UNCOMMITTED, Isolation
from engine.wire import messages

_DEBUGGER_ID = -2
_NO_EPOCH = -1
_FIRST_WITH_EPOCHS = 4
_FIRST_WITH_NOT_AVAILABLE = 5
_FIRST_VERSIONS = {
    LATEST: 0,
    EARLIEST: 0,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
}


_Requested: TypeAlias = "messages.ListOffsetsRequest.ListOffsetsPartition"
_Row: TypeAlias = "messages.ListOffsetsResponse.ListOffsetsPartitionResponse"


class _SegmentStart(NamedTuple):
    offset: int
    modified_ms: int


class ListOffsets:
    """Answers ListOffsets; `clock` is used only for version 0."""

    def __init__(self, replica_manager: ReplicaManager, clock: Clock) -> None:
        self._replica_manager = replica_manager
        self._clock = clock

    def handle(
        self, request: messages.ListOffsetsRequest, exchange: Exchange
    ) -> messages.ListOffsetsResponse:
        """Return the offset of each partition at its requested timestamp, or an error code.

        Topics that are denied to the client come last.
        """
        repeated = _repeated_partitions(request)
        topics: list[messages.ListOffsetsResponse.ListOffsetsTopicResponse] = []
        denied: list[messages.ListOffsetsResponse.ListOffsetsTopicResponse] = []
        for topic in request.topics:
            rows = []
            may_describe = exchange.session.may(
                AclOperation.DESCRIBE, AclResource.TOPIC, topic.name
            )
            for requested in topic.partitions:
                topic_partition = TopicPartition(topic.name, requested.partition_index)
                version = exchange.api_version
                if not may_describe:
                    rows.append(self._row_without_offset(requested, TOPIC_AUTHORIZATION_FAILED))
                elif version > 0 and topic_partition in repeated:
                    rows.append(self._row_without_offset(requested, INVALID_REQUEST))
                elif requested.timestamp < 0 and version < _FIRST_VERSIONS.get(
                    requested.timestamp, 99
                ):
                    rows.append(self._row_without_offset(requested, UNSUPPORTED_VERSION))
                else:
                    rows.append(self._find_offset(topic_partition, requested, request, version))
            (topics if may_describe else denied).append(
                messages.ListOffsetsResponse.ListOffsetsTopicResponse(
                    name=topic.name, partitions=rows
                )
            )
        return messages.ListOffsetsResponse(topics=[*topics, *denied])

    def _row_without_offset(self, requested: _Requested, code: int) -> _Row:
        """Return a partition's row with an error code and no offset.

        With code 0 the caller adds it.
        """
        return messages.ListOffsetsResponse.ListOffsetsPartitionResponse(
            partition_index=requested.partition_index, error_code=code
        )

    def _find_offset(
        self,
        topic_partition: TopicPartition,
        requested: _Requested,
        request: messages.ListOffsetsRequest,
        version: int,
    ) -> _Row:
        """Return the row of one partition.

        It has the offset at the requested timestamp, or an error code.
        """
        is_leader_required = request.replica_id != _DEBUGGER_ID
        is_consumer = request.replica_id == CONSUMER_ID
        if is_consumer and request.isolation_level not in (READ_UNCOMMITTED, READ_COMMITTED):
            return self._row_without_offset(requested, UNKNOWN_SERVER_ERROR)
        try:
            partition = self._replica_manager.find(topic_partition)
            if version == 0:
                partition.ensure_serves(None, is_leader_required=is_leader_required)
                if requested.max_num_offsets < 0:
                    return self._row_without_offset(requested, UNKNOWN_SERVER_ERROR)
                offsets = _offsets_before(partition.log, requested.timestamp, self._clock.wall_ms())
                if is_consumer:
                    offsets = _below_high_watermark(offsets, partition.high_watermark)
                row = self._row_without_offset(requested, 0)
                row.old_style_offsets = offsets[: requested.max_num_offsets]
                return row
            epoch = requested.current_leader_epoch
            result = partition.find_offset(
                requested.timestamp,
                _offset_limit(request),
                current_leader_epoch=None if epoch == _NO_EPOCH else epoch,
                is_leader_required=is_leader_required,
            )
        except (ApiError, StorageError) as failure:
            return self._row_without_offset(
                requested, self._code_of(topic_partition, failure, version)
            )
        row = self._row_without_offset(requested, 0)
        if result is not None:
            row.timestamp = result.timestamp_ms
            row.offset = result.offset
            if result.leader_epoch is not None and version >= _FIRST_WITH_EPOCHS:
                row.leader_epoch = result.leader_epoch
        return row

    def _code_of(
        self, topic_partition: TopicPartition, failure: ApiError | StorageError, version: int
    ) -> int:
        """Return the error code for the version of a request.

        Before version 5 OFFSET_NOT_AVAILABLE is LEADER_NOT_AVAILABLE.
        """
        code = self._replica_manager.answer_to(topic_partition, failure).code
        if code == OFFSET_NOT_AVAILABLE and version < _FIRST_WITH_NOT_AVAILABLE:
            return LEADER_NOT_AVAILABLE
        return code


def _repeated_partitions(request: messages.ListOffsetsRequest) -> set[TopicPartition]:
    """Return the partitions that occur more than once in the request."""
    seen: set[TopicPartition] = set()
    repeated: set[TopicPartition] = set()
    for topic in request.topics:
        for requested in topic.partitions:
            topic_partition = TopicPartition(topic.name, requested.partition_index)
            (repeated if topic_partition in seen else seen).add(topic_partition)
    return repeated


def _offset_limit(request: messages.ListOffsetsRequest) -> Isolation:
    """Return up to where the client may see offsets: the log end for replicas and debuggers.

    For consumers it is the high watermark, or the last stable offset if read_committed.
    """
    if request.replica_id != CONSUMER_ID:
        return Isolation.LOG_END
    if request.isolation_level == READ_COMMITTED:
        return Isolation.COMMITTED
    return Isolation.HIGH_WATERMARK


def _offsets_before(log: LocalLog, timestamp_ms: int, now_ms: int) -> list[int]:
    """Return the offsets for a version 0 request: base offsets of segments last modified by a time.

    The newest comes first. The log end offset is one of them if the active segment has records.
    """
    starts = [
        _SegmentStart(max(segment.base_offset, log.log_start_offset), segment.modified_ms())
        for segment in log.segments
    ]
    if log.active_segment.size_bytes:
        starts.append(_SegmentStart(log.log_end_offset, now_ms))
    if timestamp_ms == EARLIEST:
        return [starts[0].offset]
    newest = len(starts) - 1
    if timestamp_ms != LATEST:
        while newest >= 0 and starts[newest].modified_ms > timestamp_ms:
            newest -= 1
    return sorted((offset for offset, _ in starts[: newest + 1]), reverse=True)


def _below_high_watermark(offsets: list[int], high_watermark: int) -> list[int]:
    """Return the offsets up to the high watermark, which replaces those above it."""
    visible = [offset for offset in offsets if offset <= high_watermark]
    return offsets if len(visible) == len(offsets) else [high_watermark, *visible]
