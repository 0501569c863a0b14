"""WriteTxnMarkers (27): a coordinator ends transactions in the partitions that this broker leads.

1. Each marker is one control record for each of its partitions, appended with acks=-1.
2. Markers in `__consumer_offsets` commit or drop their transaction's offsets in groups.
3. The response has a code for each partition, once all are kept.

Source: KafkaApis.handleWriteTxnMarkersRequest of 3.9.1; TXN-5.
"""

from __future__ import annotations

from functools import partial

from engine.api.exchange import Exchange
from engine.api.promised import when_all
from engine.groups.offset_commits import OffsetCommits
from engine.hash_order import in_java_hash_order, partitions_in_java_hash_order
from engine.host.ports import Clock
from engine.host.promise import Promise
from engine.kafka_errors import UNKNOWN_SERVER_ERROR, UNKNOWN_TOPIC_OR_PARTITION
from engine.log.producer_state import AppendOrigin
from engine.model import TopicPartition
from engine.naming import CONSUMER_OFFSETS
from engine.records.builder import BatchRefused
from engine.records.control import ControlType, EndTransactionMarker, build_marker
from engine.replication.delayed_produce import ProduceResults
from engine.replication.partition import ACKS_ALL
from engine.replication.replica_manager import ReplicaManager
from engine.wire import messages

_Request = messages.WriteTxnMarkersRequest
_Response = messages.WriteTxnMarkersResponse
_Codes = dict[TopicPartition, int]


class WriteTxnMarkers:
    """Answers WriteTxnMarkers."""

    def __init__(
        self,
        replica_manager: ReplicaManager,
        commits: OffsetCommits,
        clock: Clock,
        timeout_ms: int,
    ) -> None:
        """`timeout_ms` is how long in-sync replicas are waited for."""
        self._replica_manager = replica_manager
        self._commits = commits
        self._clock = clock
        self._timeout_ms = timeout_ms

    def handle(self, request: _Request, _exchange: Exchange) -> Promise[_Response]:
        """Append the markers; promises an error code for each partition."""
        try:
            written = [self._write(marker) for marker in request.markers]
        except BatchRefused:
            # No epoch, for one: nothing of the request is answered with success.
            written = [
                Promise.of(dict.fromkeys(_partitions(marker), UNKNOWN_SERVER_ERROR))
                for marker in request.markers
            ]
        # 3
        return when_all(written, partial(_response, request))

    def _write(self, marker: _Request.WritableTxnMarker) -> Promise[_Codes]:
        """Append one marker to its partitions; return a promise of each partition's error code."""
        # 1
        partitions = _partitions(marker)
        known = [key for key in partitions if key in self._replica_manager.partitions]
        codes: _Codes = {key: UNKNOWN_TOPIC_OR_PARTITION for key in partitions if key not in known}
        if not known:
            return Promise.of(codes)
        kind = ControlType.COMMIT if marker.transaction_result else ControlType.ABORT
        batch = build_marker(
            EndTransactionMarker(kind, marker.coordinator_epoch),
            producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch,
            timestamp_ms=self._clock.wall_ms(),
        )
        appended = self._replica_manager.append_records(
            {key: memoryview(bytearray(batch)) for key in known},
            ACKS_ALL,
            self._timeout_ms,
            origin=AppendOrigin.COORDINATOR,
        )

        def taken(results: ProduceResults) -> _Codes:
            for key, result in results.items():
                codes[key] = 0 if result.error is None else result.error.code
            self._decide_commits(marker, codes)
            return codes

        if isinstance(appended, Promise):
            return appended.then(taken)
        return Promise.of(taken(appended))

    # 2
    def _decide_commits(self, marker: _Request.WritableTxnMarker, codes: _Codes) -> None:
        ended = {
            key.partition
            for key, code in codes.items()
            if key.topic == CONSUMER_OFFSETS and not code
        }
        if ended:
            self._commits.complete_transaction(
                marker.producer_id, ended, is_commit=marker.transaction_result
            )


def _partitions(marker: _Request.WritableTxnMarker) -> list[TopicPartition]:
    return [
        TopicPartition(topic.name, index)
        for topic in marker.topics
        for index in topic.partition_indexes
    ]


def _response(request: _Request, written: list[_Codes]) -> _Response:
    return _Response(
        markers=[
            _Response.WritableTxnMarkerResult(producer_id=marker.producer_id, topics=_topics(codes))
            for marker, codes in zip(request.markers, written, strict=True)
        ]
    )


def _topics(codes: _Codes) -> list[_Response.WritableTxnMarkerTopicResult]:
    """Return the codes by topic; Kafka keeps topics and partitions in hash maps."""
    topics: dict[str, list[_Response.WritableTxnMarkerPartitionResult]] = {}
    for key in partitions_in_java_hash_order(codes):
        row = _Response.WritableTxnMarkerPartitionResult(
            partition_index=key.partition, error_code=codes[key]
        )
        topics.setdefault(key.topic, []).append(row)
    return [
        _Response.WritableTxnMarkerTopicResult(name=name, partitions=topics[name])
        for name in in_java_hash_order(topics)
    ]
