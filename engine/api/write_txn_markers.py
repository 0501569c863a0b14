"""WriteTxnMarkers (27): a coordinator ends transactions in the partitions that this broker leads.

1. Each marker is one control record for each of its partitions, appended with acks=-1.
2. Markers in `__consumer_offsets` commit or drop their transaction's offsets in groups.
3. The response has a code for each partition, once all markers are replicated. A coordinator of the
   same process sends markers and receives codes as values.

Source: KafkaApis.handleWriteTxnMarkersRequest of 3.9.1; TXN-5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

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
from engine.replication.delayed_produce import ProduceResult, ProduceResults
from engine.replication.partition import ACKS_ALL
from engine.replication.replica_manager import ReplicaManager
from engine.transactions.ports import Marker, MarkerCodes
from engine.wire import messages

_Request = messages.WriteTxnMarkersRequest
_Response = messages.WriteTxnMarkersResponse
_Answer = TypeVar("_Answer")


class WriteTxnMarkers:
    """Answers WriteTxnMarkers."""

    def __init__(
        self,
        replica_manager: ReplicaManager,
        commits: OffsetCommits,
        clock: Clock,
        timeout_ms: int,
    ) -> None:
        """Create the handler; in-sync replicas are waited for up to `timeout_ms`."""
        self._replica_manager = replica_manager
        self._commits = commits
        self._clock = clock
        self._timeout_ms = timeout_ms

    def handle(self, request: _Request, _exchange: Exchange) -> Promise[_Response]:
        """Append the transaction markers of a coordinator.

        Promises an error code for each partition.
        """
        return self._write_all(
            list(map(_make_marker, request.markers)), partial(_response, request)
        )

    def handle_local(
        self, markers: Sequence[Marker], _exchange: Exchange
    ) -> Promise[list[MarkerCodes]]:
        """Append the markers of a coordinator of this process; promise the codes of each."""
        return self._write_all(markers, list)

    def _write_all(
        self, markers: Sequence[Marker], answer: Callable[[list[MarkerCodes]], _Answer]
    ) -> Promise[_Answer]:
        """Append markers; promise what `answer` makes of the codes of each marker."""
        try:
            written = [self._write(marker) for marker in markers]
        except BatchRefused:
            # An invalid marker, for instance without an epoch: no marker of the request gets
            # success.
            written = [
                Promise.of(dict.fromkeys(marker.partitions, UNKNOWN_SERVER_ERROR))
                for marker in markers
            ]
        # 3
        return when_all(written, answer)

    def _write(self, marker: Marker) -> Promise[MarkerCodes]:
        """Append one marker to its partitions; return a promise of each partition's error code."""
        # 1
        here = self._replica_manager.partitions
        codes = dict.fromkeys(marker.partitions, UNKNOWN_TOPIC_OR_PARTITION)
        known = [key for key in codes if key in here]
        if not known:
            return Promise.of(codes)
        kind = ControlType.COMMIT if marker.is_commit else ControlType.ABORT
        batch = build_marker(
            EndTransactionMarker(kind, marker.coordinator_epoch),
            producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch,
            timestamp_ms=self._clock.wall_ms(),
        )
        appended = self._append(known, batch)

        def settle_commits(results: ProduceResults) -> MarkerCodes:
            """Return a code per partition; commit or drop offsets where the marker is written."""
            for key, result in results.items():
                codes[key] = 0 if result.error is None else result.error.code
            self._decide_commits(marker, codes)
            return codes

        if isinstance(appended, Promise):
            return appended.then(settle_commits)
        return Promise.of(settle_commits(appended))

    def _append(
        self, keys: list[TopicPartition], batch: bytearray
    ) -> ProduceResults | Promise[ProduceResults]:
        """Append a marker's batch to partitions with acks=all; return or promise the results."""
        if len(keys) == 1:
            appended = self._replica_manager.append_records_fast(
                keys[0],
                memoryview(batch),
                ACKS_ALL,
                self._timeout_ms,
                origin=AppendOrigin.COORDINATOR,
                is_internal_allowed=True,
            )
            if appended is not None:
                return {keys[0]: appended} if isinstance(appended, ProduceResult) else appended
        return self._replica_manager.append_records(
            {key: memoryview(bytearray(batch)) for key in keys},
            ACKS_ALL,
            self._timeout_ms,
            origin=AppendOrigin.COORDINATOR,
        )

    # 2
    def _decide_commits(self, marker: Marker, codes: MarkerCodes) -> None:
        """Commit or drop the offsets that are pending in the partitions with the marker.

        Only partitions of `__consumer_offsets` without an error count.
        """
        ended = {
            key.partition
            for key, code in codes.items()
            if key.topic == CONSUMER_OFFSETS and not code
        }
        if ended:
            self._commits.complete_transaction(
                marker.producer_id, ended, is_commit=marker.is_commit
            )


def _make_marker(row: _Request.WritableTxnMarker) -> Marker:
    """Convert a request's row to a marker."""
    partitions = tuple(
        TopicPartition(topic.name, index)
        for topic in row.topics
        for index in topic.partition_indexes
    )
    return Marker(
        row.producer_id,
        row.producer_epoch,
        row.transaction_result,
        row.coordinator_epoch,
        partitions,
    )


def _response(request: _Request, written: list[MarkerCodes]) -> _Response:
    """Return one result per marker, in the request's order."""
    return _Response(
        markers=[
            _Response.WritableTxnMarkerResult(
                producer_id=marker.producer_id, topics=_topic_rows(codes)
            )
            for marker, codes in zip(request.markers, written, strict=True)
        ]
    )


def _topic_rows(codes: MarkerCodes) -> list[_Response.WritableTxnMarkerTopicResult]:
    """Return the codes of a marker's partitions by topic, in the order of Java's hash maps."""
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
