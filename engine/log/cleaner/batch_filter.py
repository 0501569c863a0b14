"""Decide which records of a batch are kept when its log is cleaned.

| record                                               | kept                                   |
|------------------------------------------------------|----------------------------------------|
| after the offset map's latest offset                 | yes                                    |
| without a key                                        | no                                     |
| with an offset below its key's in the map            | no                                     |
| otherwise, without a value (a tombstone)             | until the batch's delete horizon;      |
|                                                      | magic 0, 1: until its segment is old   |
| of an aborted transaction                            | no                                     |
| marker of a transaction with records in the log      | yes                                    |
| marker of a transaction without records in the log   | until the batch's delete horizon       |

| batch                                                | becomes                                |
|------------------------------------------------------|----------------------------------------|
| all records kept, no delete horizon to set           | the same bytes                         |
| some records kept                                    | a batch with the same header except    |
|                                                      | count, times, length and checksum      |
| a tombstone or empty transaction's marker kept, and  | a batch with the horizon now +         |
| the batch has no delete horizon                      | delete.retention.ms (KIP-534)          |
| no record kept, last batch of an active producer     | an empty batch                         |
| no record kept, any other batch                      | nothing                                |

Source: CMP-1, CMP-4, CMP-5, CMP-7, CMP-8, REPL-13; Kafka's Cleaner.cleanInto,
MemoryRecords.filterTo.
Differs: a batch with a wrong checksum is not trusted, and ends the cleaning of its log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from engine.host.ports import Buffer
from engine.limits import DECOMPRESSED_BATCH_BYTES_MAX, UNCOMPRESSED_BATCH_FACTOR
from engine.log.cleaner.cleaning_facts import ProducerEnd
from engine.log.cleaner.offset_map import OffsetMap
from engine.log.cleaner.transactions import CleanedTransactions
from engine.log.log_config import LogConfig
from engine.native.clean_records import CompiledCleaner, KeptRecords
from engine.records.batch import BatchView
from engine.records.batch_header import CODEC_BITS
from engine.records.builder import BatchBuilder, build_batch_like, build_empty_batch, settings_of
from engine.records.decode import PLAIN_BASE_MAX
from engine.records.legacy import LegacyBatch
from engine.records.legacy_builder import LegacySettings, build_messages
from engine.records.record import Record, TimestampType
from engine.records.record_spans import RecordSpan, copy_spans, find_spans_fast
from engine.records.view import RecordBatch


class KeptBatch(NamedTuple):
    """The kept part of a batch, with the values for the new segment's indexes.

    `last_offset` is the last offset of the original batch, even if its last records are removed.
    """

    content: Buffer
    record_count: int
    last_offset: int
    max_timestamp_ms: int


class CleaningTime(NamedTuple):
    """The time of a cleaning, and delete.retention.ms, for which tombstones are kept."""

    now_ms: int
    delete_retention_ms: int


class BatchFilter:
    """Decides which records are kept, for the batches of consecutive segments."""

    def __init__(
        self,
        offsets: OffsetMap,
        transactions: CleanedTransactions,
        producers: Mapping[int, ProducerEnd],
        moment: CleaningTime,
        compiled: CompiledCleaner | None = None,
        *,
        config: LogConfig,
    ) -> None:
        """`compiled` is native code over the memory of `offsets`, None without native code."""
        self._config = config
        self._offsets = offsets
        self._compiled = compiled
        self._transactions = transactions
        self._producers = producers
        self._moment = moment
        #: Whether tombstones of magic 0 and 1 are kept; set for each source segment.
        self.keeps_legacy_tombstones = True
        #: Number of records of all filtered batches, kept or not; for the cleaning's statistics.
        self.records_read = 0

    def filter_batch(self, batch: RecordBatch) -> KeptBatch | None:
        """Return the part of a batch that the cleaned segment keeps, None if it keeps nothing.

        Tries compiled code first, then record positions, then parsed records: all three give the
        same batch. Raises CorruptRecord.
        """
        if isinstance(batch, LegacyBatch):
            return self._filter_legacy(batch)
        is_discarded = may_discard = self._transactions.may_discard(batch)
        is_control = batch.is_control
        if is_control and may_discard:
            horizon_ms = batch.delete_horizon_ms
            is_discarded = horizon_ms is not None and horizon_ms <= self._moment.now_ms
        stays_empty = batch.has_producer_id and self._is_last_of_producer(batch)
        if is_discarded and not stays_empty:
            return None
        opened = opened_records(batch, self._config)
        is_judged = not (is_discarded or is_control)
        if is_judged:
            fast = self._choose_records_fast(batch, opened)
            if fast is not None:
                return self._build_from_fast(batch, fast, stays_empty=stays_empty)
        data = bytes(opened)
        if is_judged:
            spans = fast_spans(batch, data)
            if spans is not None:
                return self._filter_spans(batch, data, spans, stays_empty=stays_empty)
        records = batch.records_in(data) if batch.record_count else []
        self.records_read += len(records)
        kept = [] if is_discarded else self._kept_records(batch, records)
        if not kept:
            return _build_empty(batch) if stays_empty else None
        return self._rebuild_if_changed(batch, len(records), kept, is_empty_marker=may_discard)

    def _kept_records(self, batch: BatchView, records: Sequence[Record]) -> Sequence[Record]:
        """Return the records of a batch that cleaning keeps.

        A control batch keeps all of its records: its removal is decided for the whole batch.
        """
        if batch.is_control:
            return records
        return self._latest_records(records, batch.delete_horizon_ms)

    def _rebuild_if_changed(
        self,
        batch: BatchView,
        record_count: int,
        kept: Sequence[Record],
        *,
        is_empty_marker: bool,
    ) -> KeptBatch:
        """Return the batch with its kept records: unchanged if all are kept, else rebuilt.

        A batch with a tombstone, or a marker of an empty transaction, is also rebuilt to get a
        delete horizon if it has none. `is_empty_marker`: no records of the transaction remain.
        """
        horizon_ms = batch.delete_horizon_ms
        has_tombstone = any(record.value is None for record in kept)
        ends_in_time = has_tombstone or (is_empty_marker and batch.is_control)
        if horizon_ms is None and ends_in_time:
            horizon_ms = self._moment.now_ms + self._moment.delete_retention_ms
        elif len(kept) == record_count:
            return _whole(batch, len(kept))
        return _rebuild(batch, kept, horizon_ms)

    def _choose_records_fast(self, batch: BatchView, opened: Buffer) -> KeptRecords | None:
        """Choose the records to keep by compiled code; return None if the compiled code cannot."""
        if self._compiled is None or not has_plain_numbers(batch):
            return None
        horizon_ms, moment = batch.delete_horizon_ms, self._moment
        return self._compiled.keep_records(
            opened,
            batch.record_count,
            base_offset=batch.base_offset,
            latest_offset=self._offsets.latest_offset,
            base_ms=batch.base_timestamp_ms,
            keeps_tombstones=horizon_ms is None or moment.now_ms < horizon_ms,
            horizon_ms=horizon_ms,
            new_horizon_ms=moment.now_ms + moment.delete_retention_ms,
        )

    def _build_from_fast(
        self, batch: BatchView, kept: KeptRecords, *, stays_empty: bool
    ) -> KeptBatch | None:
        """Return the batch with the records that compiled code kept, None if nothing is kept.

        `stays_empty`: the header is kept even without records.
        """
        self.records_read += batch.record_count
        if not kept.record_count:
            return _build_empty(batch) if stays_empty else None
        if kept.payload is None:
            return _whole(batch, kept.record_count)
        horizon_ms = batch.delete_horizon_ms
        if horizon_ms is None and kept.has_tombstone:
            horizon_ms = self._moment.now_ms + self._moment.delete_retention_ms
        content = build_batch_like(
            batch,
            kept.payload,
            delete_horizon_ms=horizon_ms,
            base_timestamp_ms=kept.base_ms,
            max_timestamp_ms=kept.max_ms,
            record_count=kept.record_count,
        )
        return KeptBatch(content, kept.record_count, batch.last_offset, kept.max_ms)

    def _filter_spans(
        self, batch: BatchView, data: bytes, spans: Sequence[RecordSpan], *, stays_empty: bool
    ) -> KeptBatch | None:
        """Choose the records to keep by their positions in `data`; return the batch with them.

        `spans` are the positions. None if nothing is kept; `stays_empty`: the header is kept even
        without records.
        """
        self.records_read += len(spans)
        horizon_ms = batch.delete_horizon_ms
        keeps_tombstones = horizon_ms is None or self._moment.now_ms < horizon_ms
        latest = self._offsets.latest_offset - batch.base_offset
        base, offset_of = batch.base_offset, self._offsets.get
        kept = [
            span
            for span in spans
            if span.offset_delta > latest
            or (
                span.key is not None
                and (keeps_tombstones or span.has_value)
                and base + span.offset_delta >= offset_of(span.key)
            )
        ]
        if not kept:
            return _build_empty(batch) if stays_empty else None
        if horizon_ms is None and not all(span.has_value for span in kept):
            horizon_ms = self._moment.now_ms + self._moment.delete_retention_ms
        elif len(kept) == len(spans):
            return _whole(batch, len(kept))
        return _rebuild_from_spans(batch, data, kept, horizon_ms)

    def _is_last_of_producer(self, batch: BatchView) -> bool:
        """Return True if a batch or marker is the last of its producer, so that its header is kept.

        Without the header, the broker would forget the producer's sequence or epoch after a
        restart.
        """
        end = self._producers.get(batch.producer_id)
        if end is None:
            return False
        if end.last_offset is None:
            return batch.is_control and batch.producer_epoch == end.epoch
        return batch.last_offset == end.last_offset

    def _latest_records(
        self, records: Sequence[Record], horizon_ms: int | None
    ) -> Sequence[Record]:
        """Return the records that are the latest of their keys, without expired tombstones.

        The map of keys ends at its latest offset: all records after that offset are kept.
        `horizon_ms` is the batch's delete horizon, None if it has none yet.
        """
        keeps_tombstones = horizon_ms is None or self._moment.now_ms < horizon_ms
        latest, offset_of = self._offsets.latest_offset, self._offsets.get
        return [
            record
            for record in records
            if record.offset > latest
            or (
                record.key is not None
                and (keeps_tombstones or record.value is not None)
                and record.offset >= offset_of(record.key)
            )
        ]

    def _filter_legacy(self, batch: LegacyBatch) -> KeptBatch | None:
        """Return a batch of magic 0 or 1 with the kept records; None if none are kept."""
        limit_bytes = opened_bytes_max(batch.size_bytes, self._config)
        messages = list(batch.iter_messages(limit_bytes=limit_bytes))
        self.records_read += len(messages)
        records = [message.to_record() for message in messages]
        horizon_ms = None if self.keeps_legacy_tombstones else self._moment.now_ms
        kept = self._latest_records(records, horizon_ms)
        if not kept:
            return None
        is_of_one_magic = all(message.magic == batch.magic for message in messages)
        if len(kept) == len(records) and is_of_one_magic:
            return _whole(batch, len(kept))
        settings = LegacySettings(
            magic=batch.magic,
            codec=batch.codec,
            timestamp_type=batch.timestamp_type,
            append_time_ms=batch.max_timestamp_ms,
            base_offset=kept[0].offset,
        )
        max_ms = max(record.timestamp_ms for record in kept)
        return KeptBatch(build_messages(kept, settings), len(kept), kept[-1].offset, max_ms)


def _whole(batch: RecordBatch, record_count: int) -> KeptBatch:
    """Return a batch unchanged, byte for byte."""
    return KeptBatch(batch.raw, record_count, batch.last_offset, batch.max_timestamp_ms)


def _build_empty(batch: BatchView) -> KeptBatch:
    """Return the batch without records: its header keeps producer id, epoch and sequence.

    A compacted log keeps such a header, so that the producer state survives a restart.
    """
    last_offset, max_ms = batch.last_offset, batch.max_timestamp_ms
    content = build_empty_batch(
        settings_of(batch), last_offset=last_offset, max_timestamp_ms=max_ms
    )
    return KeptBatch(content, 0, last_offset, max_ms)


def _rebuild(batch: BatchView, kept: Sequence[Record], horizon_ms: int | None) -> KeptBatch:
    """Return a new batch of the kept records, with the old `last_offset` and delete horizon."""
    builder = BatchBuilder(settings_of(batch)._replace(delete_horizon_ms=horizon_ms))
    for record in kept:
        builder.append_record(record)
    content = builder.build(last_offset=batch.last_offset)
    max_ms = BatchView(memoryview(content)).max_timestamp_ms
    return KeptBatch(content, len(kept), batch.last_offset, max_ms)


def opened_bytes_max(size_bytes: int, config: LogConfig) -> int:
    """Return the largest decompressed size that the cleaner allows for a batch of `size_bytes`.

    A leader may have accepted such a batch under an earlier, larger max.message.bytes, and the
    cleaner must not stop at it.
    """
    taken_bytes_max = UNCOMPRESSED_BATCH_FACTOR * size_bytes
    return max(config.opened_batch_bytes_max, taken_bytes_max, DECOMPRESSED_BATCH_BYTES_MAX)


def opened_records(batch: BatchView, config: LogConfig) -> Buffer:
    """Return the decompressed records of a batch, or its own buffer if they are uncompressed.

    Raises CorruptRecord if they exceed the cleaner's limit of decompressed bytes.
    """
    if not batch.record_count:
        return b""
    if not batch.attributes & CODEC_BITS:
        return batch.payload
    return batch.decompress_records(limit_bytes=opened_bytes_max(batch.size_bytes, config))


def has_plain_numbers(batch: BatchView) -> bool:
    """Return True if compiled code with 64-bit numbers can read the batch without an overflow.

    False too for an empty batch and for log append times, which the general path handles.
    """
    if batch.record_count < 1 or batch.timestamp_type is TimestampType.LOG_APPEND_TIME:
        return False
    return (
        -PLAIN_BASE_MAX < batch.base_offset < PLAIN_BASE_MAX
        and -PLAIN_BASE_MAX < batch.base_timestamp_ms < PLAIN_BASE_MAX
    )


def fast_spans(batch: BatchView, opened: bytes) -> list[RecordSpan] | None:
    """Return the byte spans of a batch's records in `opened`, its decompressed records.

    None if the records must be parsed one by one: for extreme offsets, for log append times, and
    for records of a form that the fast search does not support.
    """
    if not has_plain_numbers(batch):
        return None
    return find_spans_fast(opened, batch.record_count)


def _rebuild_from_spans(
    batch: BatchView, data: bytes, kept: Sequence[RecordSpan], horizon_ms: int | None
) -> KeptBatch:
    """Return a batch of magic 2 whose kept records are copied as bytes out of `data`.

    `horizon_ms` is the new delete horizon, which then becomes the base timestamp; None for none.
    """
    base_ms = batch.base_timestamp_ms
    new_base_ms = base_ms + kept[0].time_delta if horizon_ms is None else horizon_ms
    max_ms = base_ms + max([span.time_delta for span in kept])
    content = build_batch_like(
        batch,
        copy_spans(data, kept, base_ms - new_base_ms),
        delete_horizon_ms=horizon_ms,
        base_timestamp_ms=new_base_ms,
        max_timestamp_ms=max_ms,
        record_count=len(kept),
    )
    return KeptBatch(content, len(kept), batch.last_offset, max_ms)
