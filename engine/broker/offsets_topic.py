"""The partitions of `__consumer_offsets` on this broker, as the coordinator of groups uses them.

Records of a transaction count once its marker is there, and in the order of the markers.

Source: GroupMetadataManager.appendForGroup, doLoadGroupsAndOffsets of 3.9.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from engine.admin.auto_creation import CONSUMER_OFFSETS
from engine.config.broker_config import BrokerConfig
from engine.errors import ApiError
from engine.groups.ports import GroupRecord, Written
from engine.host.ports import Clock
from engine.host.promise import Promise
from engine.kafka_errors import NOT_LEADER_OR_FOLLOWER
from engine.log.producer_state import AppendOrigin
from engine.model import TopicPartition
from engine.records.batch import BatchView
from engine.records.builder import BatchSettings, build_batch
from engine.records.codec import Codec
from engine.records.control import ControlType, control_type
from engine.records.record import NO_SEQUENCE, Record, TimestampType
from engine.records.view import RecordBatch, batches_in
from engine.replication.delayed_produce import ProduceResults
from engine.replication.metadata_cache import MetadataCache
from engine.replication.replica_manager import ReplicaManager

_NumberedRecord = tuple[int, GroupRecord]


class OffsetsTopic:
    """Appends to `__consumer_offsets`, and reads it; see `engine.groups.ports.GroupLog`."""

    def __init__(
        self,
        replica_manager: ReplicaManager,
        metadata_cache: MetadataCache,
        clock: Clock,
        config: BrokerConfig,
    ) -> None:
        self._replica_manager = replica_manager
        self._metadata_cache = metadata_cache
        self._clock = clock
        self._config = config

    def partition_count(self) -> int:
        """Return the number of partitions that the topic has, or will have."""
        known = self._metadata_cache.topics.get(CONSUMER_OFFSETS)
        return len(known) if known else self._config.offsets_topic_num_partitions

    def append(
        self, partition: int, records: Sequence[GroupRecord], *, base_sequence: int = NO_SEQUENCE
    ) -> Promise[Written]:
        """Append records as one batch; kept once the in-sync replicas have it, or with an error."""
        key = TopicPartition(CONSUMER_OFFSETS, partition)
        now_ms = self._clock.wall_ms()
        batch = build_batch(
            (
                Record(offset, now_ms, TimestampType.CREATE_TIME, record.key, record.value)
                for offset, record in enumerate(records)
            ),
            BatchSettings(
                codec=Codec(self._config.offsets_topic_compression_codec),
                base_sequence=base_sequence,
            ),
        )
        appended = self._replica_manager.append_records(
            {key: memoryview(batch)},
            self._config.offsets_commit_required_acks,
            self._config.offsets_commit_timeout_ms,
            origin=AppendOrigin.COORDINATOR,
        )

        def written(results: ProduceResults) -> Written:
            result = results[key]
            code = 0 if result.error is None else result.error.code
            return Written(code, result.base_offset)

        if isinstance(appended, Promise):
            return appended.then(written)
        return Promise.of(written(appended))

    def read(self, partition: int) -> Iterator[_NumberedRecord]:
        """Read all records with their offsets, in order; committed transactions among them.

        Raises ApiError or StorageError if the log cannot be read.
        """
        undecided: dict[int, list[_NumberedRecord]] = {}
        for batch in self._batches(TopicPartition(CONSUMER_OFFSETS, partition)):
            if isinstance(batch, BatchView) and batch.is_control:
                decided = undecided.pop(batch.producer_id, [])
                if any(control_type(mark) is ControlType.COMMIT for mark in batch.records()):
                    yield from decided
                continue
            numbered = (
                (record.offset, GroupRecord(record.key, record.value))
                for record in batch.records()
                if record.key is not None
            )
            if isinstance(batch, BatchView) and batch.is_transactional:
                undecided.setdefault(batch.producer_id, []).extend(numbered)
            else:
                yield from numbered

    def _batches(self, key: TopicPartition) -> Iterator[RecordBatch]:
        partition = self._replica_manager.partitions.get(key)
        if partition is None:
            raise ApiError(NOT_LEADER_OR_FOLLOWER, f"{key} is not on this broker")
        log = partition.log
        offset, end = log.log_start_offset, log.log_end_offset
        while offset < end:
            piece = log.read(offset, self._config.offsets_load_buffer_size)
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
