"""One topic of coordinators on this broker: batches are appended and read.

Source: GroupMetadataManager.appendForGroup, TransactionStateManager.appendTransactionToLog.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from engine.errors import ApiError
from engine.host.ports import Clock
from engine.host.promise import Promise
from engine.kafka_errors import NOT_LEADER_OR_FOLLOWER
from engine.log.local_log import LocalLog
from engine.log.producer_state import AppendOrigin
from engine.model import TopicPartition
from engine.records.builder import BatchBuilder, BatchSettings
from engine.records.view import RecordBatch, batches_in
from engine.replication.delayed_produce import ProduceResult, ProduceResults
from engine.replication.metadata_cache import MetadataCache
from engine.replication.replica_manager import ReplicaManager


class Waiting(NamedTuple):
    """How many replicas an append waits for, and how long."""

    required_acks: int
    timeout_ms: int


class CoordinatorTopic:
    """Appends to one topic of coordinators, and reads it."""

    def __init__(
        self,
        topic: str,
        replica_manager: ReplicaManager,
        metadata_cache: MetadataCache,
        clock: Clock,
    ) -> None:
        self._topic = topic
        self._replica_manager = replica_manager
        self._metadata_cache = metadata_cache
        self._clock = clock

    def partition_count(self) -> int | None:
        """Return the number of partitions, None if there is no such topic yet."""
        known = self._metadata_cache.topics.get(self._topic)
        return len(known) if known else None

    def append(
        self,
        partition: int,
        records: Iterable[tuple[bytes, bytes | None]],
        settings: BatchSettings,
        waiting: Waiting,
    ) -> Promise[ProduceResult]:
        """Append keys and values as one batch; kept once the in-sync replicas have it.

        Kept though the client that caused it closes its connection: a coordinator's state is
        its written records.
        """
        key = TopicPartition(self._topic, partition)
        now_ms = self._clock.wall_ms()
        builder = BatchBuilder(settings)
        for record_key, value in records:
            builder.append(now_ms, record_key, value)
        batch = memoryview(builder.build())
        written = self._replica_manager.append_records_fast(
            key,
            batch,
            waiting.required_acks,
            waiting.timeout_ms,
            origin=AppendOrigin.COORDINATOR,
            is_internal_allowed=True,
        )
        if isinstance(written, ProduceResult):
            return Promise.of(written)
        appended = written or self._replica_manager.append_records(
            {key: batch},
            waiting.required_acks,
            waiting.timeout_ms,
            origin=AppendOrigin.COORDINATOR,
        )

        def result(results: ProduceResults) -> ProduceResult:
            return results[key]

        if isinstance(appended, Promise):
            return appended.unabandonable().then(result)
        return Promise.of(result(appended))

    def batches(self, partition: int, buffer_bytes: int) -> Iterator[RecordBatch]:
        """Read all batches that a partition has now, in order.

        Raises ApiError or StorageError if the log cannot be read.
        """
        key = TopicPartition(self._topic, partition)
        log = self._log(key)
        offset, end = log.log_start_offset, log.log_end_offset
        while offset < end:
            # Between two batches the log may move to another directory: its files are closed here.
            piece = self._log(key).read(offset, buffer_bytes)
            try:
                data = memoryview(piece.read())
            finally:
                piece.release()
            before = offset
            for batch in batches_in(data, allow_partial_tail=True):
                if batch.last_offset >= offset:
                    yield batch
                    offset = batch.last_offset + 1
            if offset == before:
                # Offsets up to the end that have no records: they were cleaned away.
                return

    def end_offset(self, partition: int) -> int:
        """Return the log end offset, 0 of a partition that is not on this broker."""
        replica = self._replica_manager.partitions.get(TopicPartition(self._topic, partition))
        return 0 if replica is None else replica.log.log_end_offset

    def is_committed(self, partition: int, end_offset: int) -> bool:
        """Return whether the high watermark has reached an offset (exclusive)."""
        replica = self._replica_manager.partitions.get(TopicPartition(self._topic, partition))
        return replica is not None and replica.high_watermark >= end_offset

    def _log(self, key: TopicPartition) -> LocalLog:
        replica = self._replica_manager.partitions.get(key)
        if replica is None:
            raise ApiError(NOT_LEADER_OR_FOLLOWER, f"{key} is not on this broker")
        return replica.log
