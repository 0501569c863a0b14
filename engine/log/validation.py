"""Validate a producer's batches, and set the leader's fields. Pure except for the caller's buffer.

A produce request has for each partition one batch of magic 2, or messages of magic 0 and 1. The log
always gets one batch of magic 2:

| received                              | what is done                                           |
|---------------------------------------|--------------------------------------------------------|
| magic 2 with the topic's codec        | base offset and epoch are set in place                 |
| the same, topic with LogAppendTime    | timestamp and checksum are set in place, too           |
| magic 2 with another codec            | the records are recompressed                           |
| magic 0 and 1                         | one batch is built of all messages                     |

| refused                                              | error                             |
|------------------------------------------------------|-----------------------------------|
| wrong checksum, size or magic, also of an inner      | CorruptMessage 2                  |
| message                                              |                                   |
| a batch above max.message.bytes, before or after     | MessageTooLarge 10                |
| more batches than one; wrong offsets or count;       | InvalidRecord 87                  |
| control records or no sequence from a client; no key |                                   |
| in a compacted topic; records that violate their     |                                   |
| format                                               |                                   |
| no batch at all                                      | NoBatch 87                        |
| an unknown codec, compressed data that cannot be     | UnreadableRecords −1, as Kafka    |
| decompressed, records that cannot be rewritten;      | has no code for it                |
| sizes of magic 0 and 1 beyond their message; an      |                                   |
| unterminated varint of magic 2                       |                                   |
| a timestamp outside of the topic's limits;           | InvalidTimestamp 32               |
| LogAppendTime set by a producer                      |                                   |

Every record of every batch is checked. Records of nearly all batches are checked on the fast path
(`record_walk.py`), for which `LeaderRules.largest_time_fast` is the complete check. Other records
are decoded one by one in `prepare_batch`, which alone raises the errors. Results of earlier checks
are in the `CheckedBatch`, and not computed again. The strictness depends on the use of the records,
as in Kafka:

| records                        | decoded                                                   |
|--------------------------------|-----------------------------------------------------------|
| uncompressed, in every case    | strictly; offset deltas are not checked                   |
| compressed, stored unchanged   | skimmed: lengths of records are not checked;              |
|                                | offset deltas other than 0, 1, 2 … end in −1, because     |
|                                | Kafka then wants to rewrite records that it has skipped   |
| compressed, rewritten          | strictly; offset deltas are not checked                   |

The batch's largest timestamp is set from the records, not taken from the producer's header.

Source: Kafka's UnifiedLog.analyzeAndValidateRecords and LogValidator; LOG-8.
Differs: a record's length is compared with the remaining bytes before memory is allocated for it,
where Kafka may run out of memory (−1, here 87). Compressed records beyond
`LogConfig.opened_batch_bytes_max` are refused (87); Kafka has no limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from engine.errors import ApiError, CorruptRecord
from engine.kafka_errors import (
    CORRUPT_MESSAGE,
    INVALID_RECORD,
    INVALID_TIMESTAMP,
    MESSAGE_TOO_LARGE,
    UNKNOWN_SERVER_ERROR,
)
from engine.log.checked_batch import CheckedBatch
from engine.log.conversion import batch_settings_for, build_batch
from engine.log.log_config import LONG_MAX, LogConfig
from engine.log.producer_state import AppendOrigin
from engine.log.record_errors import (
    RecordError,
    append_time_sent_message,
    key_missing,
    records_refused_message,
    time_out_of_range_message,
    times_refused,
)
from engine.model import TopicPartition
from engine.native.record_walk import Walked
from engine.records.batch import BatchView
from engine.records.batch_header import CODEC_BITS, HEADER_BYTES, MAGIC, MAGIC_AT, PROLOGUE_BYTES
from engine.records.builder import BatchRefused
from engine.records.codec import (
    Codec,
    CompressedDataCorrupt,
    UnknownCodec,
)
from engine.records.decode import int64
from engine.records.legacy import InnerMessageTooSmall, LegacyBatch, LegacyMessage
from engine.records.record import NO_TIMESTAMP, Record, TimestampType
from engine.records.varint import VarintTooLong
from engine.records.view import RecordBatch, batches_in

_Validated = TypeVar("_Validated", Record, LegacyMessage)
_UNREADABLE = (
    BatchRefused,
    CompressedDataCorrupt,
    UnknownCodec,
    VarintTooLong,
)


class CorruptMessage(ApiError):
    """CORRUPT_MESSAGE: the sent bytes do not form batches, or a checksum is wrong."""

    def __init__(self, reason: str) -> None:
        super().__init__(CORRUPT_MESSAGE, reason)
        self.reason = reason


class MessageTooLarge(ApiError):
    """MESSAGE_TOO_LARGE: a batch is larger than the topic's max.message.bytes."""

    def __init__(self, size_bytes: int, max_bytes: int) -> None:
        super().__init__(
            MESSAGE_TOO_LARGE, f"a batch of {size_bytes} bytes, {max_bytes} are allowed"
        )
        self.size_bytes = size_bytes
        self.max_bytes = max_bytes


class RecordsRefused(ApiError):
    """Records violate a rule.

    `record_errors` lists the refused records, empty for a whole batch.
    """

    def __init__(self, code: int, reason: str, record_errors: Sequence[RecordError] = ()) -> None:
        super().__init__(code, reason)
        self.reason = reason
        self.record_errors = tuple(record_errors)
        #: Numbers of records without a key in a compacted topic, and of records with another magic
        #: than their batch, for metrics.
        self.missing_keys = 0
        self.invalid_magics = 0


class InvalidRecord(RecordsRefused):
    """INVALID_RECORD: a batch, or a record in it, violates a rule of the format or the topic."""

    def __init__(self, reason: str, record_errors: Sequence[RecordError] = ()) -> None:
        super().__init__(INVALID_RECORD, reason, record_errors)


class InvalidHeader(InvalidRecord):
    """The header of a client's batch has a wrong count, offset or sequence, or a control flag."""


class NoBatch(InvalidRecord):
    """The sent bytes contain no complete batch."""


class UnreadableRecords(ApiError):
    """Records cannot be decoded or rewritten. Source.

    Exceptions that Kafka does not map to a code.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(UNKNOWN_SERVER_ERROR, reason)
        self.reason = reason


class InvalidTimestamp(RecordsRefused):
    """INVALID_TIMESTAMP: records have timestamps that the topic does not allow."""

    def __init__(self, reason: str, record_errors: Sequence[RecordError] = ()) -> None:
        super().__init__(INVALID_TIMESTAMP, reason, record_errors)


class LeaderBatch(NamedTuple):
    """The batch to append to the log; `batch` is a view of it with all fields set.

    `log_append_time_ms` is −1 unless the broker sets timestamps. `is_rewritten` is True if the
    bytes are not in the producer's buffer.
    """

    batch: BatchView
    log_append_time_ms: int
    is_rewritten: bool


class LeaderRules:
    """The validation rules of one partition, derived from its topic's settings."""

    __slots__ = (
        "_after_max_ms",
        "_before_max_ms",
        "_codec",
        "_config",
        "_has_rules",
        "_topic_partition",
        "is_fast_path_topic",
        "kept_codecs",
        "limit_bytes",
    )

    def __init__(self, config: LogConfig, topic_partition: TopicPartition) -> None:
        """Derive the rules from a topic's settings; create another object after a change."""
        self._config = config
        self._topic_partition = topic_partition
        #: The topic's codec. None is `compression.type=producer`: batches keep theirs.
        self._codec = config.compression_type
        #: Largest decompressed size of a batch's records, in bytes.
        self.limit_bytes = config.opened_batch_bytes_max
        self._before_max_ms = config.message_timestamp_before_max_ms
        self._after_max_ms = config.message_timestamp_after_max_ms
        has_bounds = self._before_max_ms < LONG_MAX or self._after_max_ms < LONG_MAX
        #: Whether each record must be looked at: for its time, or because compaction refuses
        #: records without a key (CMP-1).
        self._has_rules = has_bounds or config.is_compacted
        #: Whether a batch needs only its base offset and leader epoch set, given that its codec is
        #: in `kept_codecs`. Append times would change more of the header.
        self.is_fast_path_topic = config.message_timestamp_type is TimestampType.CREATE_TIME
        self.kept_codecs = frozenset(Codec if self._codec is None else (self._codec,))

    def largest_time_fast(self, walked: Walked, base_ms: int, now_ms: int) -> int | None:
        """Return the largest timestamp of records that violate no rule, if a walk can decide that.

        `walked` has the common values of records with CreateTime, whose timestamps count from
        `base_ms`. None if the records must be decoded one by one.
        """
        if walked is None:
            return None
        least, greatest, has_null_key = walked
        largest_ms = base_ms + greatest
        # Java's sums wrap around; deltas of a walk are below 2^55.
        if largest_ms > LONG_MAX or base_ms + least < -LONG_MAX:
            return None
        if self._has_rules:
            if has_null_key and self._config.is_compacted:
                return None
            # Records without a time have no bounds: those are read one by one.
            if (
                base_ms + least < max(now_ms - self._before_max_ms, 0)
                or largest_ms - now_ms > self._after_max_ms
            ):
                return None
        return largest_ms if largest_ms > NO_TIMESTAMP else NO_TIMESTAMP

    def prepare_batch(
        self,
        checked: CheckedBatch,
        *,
        base_offset: int,
        leader_epoch: int,
        now_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
    ) -> LeaderBatch:
        """Return the batch to append at `base_offset`; it must be writable, and is patched.

        Bytes of an incomplete last batch are left out. Raises the errors of the module's table.
        """
        data = checked.data
        is_current = len(data) > PROLOGUE_BYTES and data[MAGIC_AT] == MAGIC
        batches = self._parse_batches(checked, origin)
        first = batches[0]
        if first.size_bytes != len(data):
            checked = CheckedBatch(first.raw)
        if isinstance(first, BatchView) and is_current:
            if len(batches) > 1:
                raise InvalidRecord("more than one batch for a partition")
            _check_header(first, origin)
        elif len(batches) > 1 and any(batch.is_compressed for batch in batches):
            raise InvalidRecord("more than one compressed message for a partition")
        try:
            taken = self._prepare(checked, batches, base_offset, leader_epoch, now_ms)
        except _UNREADABLE as error:
            raise UnreadableRecords(f"records that cannot be opened: {error}") from error
        except InnerMessageTooSmall as error:
            raise CorruptMessage(f"an inner message of {error.got} bytes") from error
        except CorruptRecord as error:
            raise InvalidRecord(f"records that cannot be read: {error}") from error
        if taken.is_rewritten and taken.batch.size_bytes > self._config.max_message_bytes:
            raise MessageTooLarge(taken.batch.size_bytes, self._config.max_message_bytes)
        return taken

    def _parse_batches(self, checked: CheckedBatch, origin: AppendOrigin) -> list[RecordBatch]:
        """Return the batches, at least one, each with a valid size and checksum."""
        batches: list[RecordBatch] = []
        try:
            for batch in batches_in(checked.data, allow_partial_tail=True):
                if batches and batch.magic != batches[0].magic:
                    raise InvalidRecord(f"batches of magic {batches[0].magic} and {batch.magic}")
                is_new = batch.magic >= MAGIC and origin is AppendOrigin.CLIENT
                if is_new and batch.base_offset != 0:
                    raise InvalidRecord(f"a base offset of {batch.base_offset}, not 0")
                if batch.size_bytes > self._config.max_message_bytes:
                    raise MessageTooLarge(batch.size_bytes, self._config.max_message_bytes)
                if isinstance(batch, BatchView) and batch.size_bytes == len(checked.data):
                    checked.ensure_valid(batch)
                else:
                    batch.ensure_valid()
                if batch.attributes & CODEC_BITS > Codec.ZSTD:
                    # Kafka finds this out before it checks what kind of batch it is.
                    raise UnreadableRecords(f"a batch of codec {batch.attributes & CODEC_BITS}")
                batches.append(batch)
        except CorruptRecord as error:
            raise CorruptMessage(f"expected {error.expected}, got {error.got}") from error
        if not batches:
            raise NoBatch("no batch")
        return batches

    def _prepare(
        self,
        checked: CheckedBatch,
        batches: list[RecordBatch],
        base_offset: int,
        leader_epoch: int,
        now_ms: int,
    ) -> LeaderBatch:
        """Return the batch to append: patched in place, or rebuilt if codec or format differ."""
        config, first = self._config, batches[0]
        source = first.codec
        target = source if self._codec is None else self._codec
        # Transaction markers are never compressed.
        is_kept = source is target or (first.is_control and source is Codec.NONE)
        is_append_time = config.message_timestamp_type is TimestampType.LOG_APPEND_TIME
        append_time_ms = now_ms if is_append_time else NO_TIMESTAMP
        if is_kept and isinstance(first, BatchView):
            max_ms = self._check_largest_time(checked, first, now_ms)
            first.patch(
                base_offset=base_offset,
                leader_epoch=leader_epoch,
                timestamp_type=config.message_timestamp_type,
                max_timestamp_ms=now_ms if is_append_time else max_ms,
            )
            return LeaderBatch(first, append_time_ms, False)
        settings = batch_settings_for(
            first,
            base_offset=base_offset,
            codec=target,
            level=config.compression_level,
            leader_epoch=leader_epoch,
            append_time_ms=now_ms if is_append_time else None,
        )
        built = build_batch(self._check_records(checked, batches, now_ms), settings)
        return LeaderBatch(BatchView(memoryview(built)), append_time_ms, True)

    def _check_largest_time(self, checked: CheckedBatch, batch: BatchView, now_ms: int) -> int:
        """Check records that are stored unchanged; return their largest timestamp."""
        if batch.timestamp_type is TimestampType.CREATE_TIME and batch.record_count > 0:
            walked = checked.walk(self.limit_bytes)
            largest_ms = self.largest_time_fast(walked, batch.base_timestamp_ms, now_ms)
            if largest_ms is not None:
                return largest_ms
        is_compressed = batch.codec is not Codec.NONE
        is_in_order, largest_ms = True, NO_TIMESTAMP
        opened = checked.open(self.limit_bytes) if is_compressed else None
        records = batch.records_for_leader(opened, is_skimmed=True)
        for index, record in enumerate(self._check_each(batch, records, now_ms, is_compressed)):
            is_in_order = is_in_order and record.offset == index
            largest_ms = max(largest_ms, record.timestamp_ms)
        if not is_in_order and is_compressed:
            raise UnreadableRecords("compressed records with offsets other than 0, 1, 2 …")
        return largest_ms

    def _check_records(
        self, checked: CheckedBatch, batches: list[RecordBatch], now_ms: int
    ) -> list[Record]:
        """Return all records, after checking that each meets the topic's rules."""
        accepted: list[Record] = []
        if self._codec in (None, Codec.NONE):
            # Kafka computes the size of messages before it reads their content.
            for batch in batches:
                if isinstance(batch, LegacyBatch) and not batch.is_compressed:
                    _to_record(batch)
        for batch in batches:
            if isinstance(batch, LegacyBatch):
                accepted += self._check_messages(batch, now_ms)
            else:
                is_compressed = batch.codec is not Codec.NONE
                opened = checked.open(self.limit_bytes) if is_compressed else None
                # Of two faults the first one counts: records before it, then the unopened rest.
                records = batch.records_for_leader(opened, is_skimmed=False)
                accepted += self._check_each(batch, records, now_ms)
        if not accepted:
            raise InvalidRecord("no records")
        return accepted

    def _check_messages(self, batch: LegacyBatch, now_ms: int) -> list[Record]:
        """Return the messages of magic 0 or 1 as records; raise InvalidRecord for zstd."""
        if batch.codec is Codec.ZSTD:
            raise InvalidRecord(f"zstd in magic {batch.magic}")
        messages = batch.iter_messages(limit_bytes=self.limit_bytes)
        return [_to_record(message) for message in list(self._check_each(batch, messages, now_ms))]

    def _check_each(
        self,
        batch: RecordBatch,
        records: Iterable[_Validated],
        now_ms: int,
        is_skimmed: bool = False,
    ) -> Iterator[_Validated]:
        """Yield a batch's records; after the last one raise if some violate a rule of the topic.

        The error names every refused record, as ProduceResponse.recordErrors does. `is_skimmed`:
        the records are stored unchanged, and their keys and values are not parsed.
        """
        errors: list[RecordError] = []
        is_time_wrong = False
        missing_keys = invalid_magics = 0
        for index, record in enumerate(records):
            if isinstance(record, LegacyMessage) and (problem := _check_message(batch, record)):
                errors.append(RecordError(index, problem))
                invalid_magics += 1
            elif self._config.is_compacted and record.key_size < 0:
                errors.append(RecordError(index, key_missing(self._topic_partition)))
                missing_keys += 1
            elif problem := self._check_time(batch, record, now_ms, is_skimmed):
                errors.append(RecordError(index, problem))
                is_time_wrong = True
            yield record
        if not errors:
            return
        refused: RecordsRefused = InvalidRecord(records_refused_message(errors), errors)
        if is_time_wrong:
            refused = InvalidTimestamp(times_refused(), errors)
        refused.missing_keys, refused.invalid_magics = missing_keys, invalid_magics
        raise refused

    def _check_time(
        self,
        batch: RecordBatch,
        record: Record | LegacyMessage,
        now_ms: int,
        is_skimmed: bool,
    ) -> str | None:
        """Return why the topic refuses a record's timestamp, None if it accepts it.

        `is_skimmed`: the broker does not parse key and value, which changes Kafka's message.
        """
        config, time_ms = self._config, record.timestamp_ms
        if config.message_timestamp_type is TimestampType.CREATE_TIME and time_ms != NO_TIMESTAMP:
            # As in Java, differences beyond int64 wrap around, and may pass the check.
            past_ms = int64(now_ms - time_ms)
            if past_ms > self._before_max_ms or int64(-past_ms) > self._after_max_ms:
                return time_out_of_range_message(
                    record, now_ms, self._before_max_ms, self._after_max_ms
                )
        elif batch.timestamp_type is TimestampType.LOG_APPEND_TIME:
            return append_time_sent_message(record, is_skimmed=is_skimmed)
        return None


def _check_message(batch: RecordBatch, message: LegacyMessage) -> str | None:
    """Return why an inner message is invalid, None if valid; raises CorruptMessage for its CRC."""
    if message.magic != batch.magic:
        _to_record(message)
        return f"magic {message.magic} inside of magic {batch.magic}"
    if batch.is_compressed and not message.is_crc_valid():
        raise CorruptMessage("the checksum of an inner message is wrong")
    return None


def _to_record(message: LegacyMessage) -> Record:
    """Return a message as a record; raise UnreadableRecords if it cannot be decoded."""
    try:
        return message.to_record()
    except CorruptRecord as error:
        raise UnreadableRecords(f"a message that cannot be read: {error}") from error


def _check_header(batch: BatchView, origin: AppendOrigin) -> None:
    """Raise if the header's size, count, offsets, control flag or sequence is invalid."""
    if batch.size_bytes < HEADER_BYTES:
        raise CorruptMessage(f"a batch of {batch.size_bytes} bytes")
    if origin is not AppendOrigin.CLIENT:
        return
    count = batch.record_count
    if count <= 0:
        raise InvalidHeader(f"a record count of {count}")
    if batch.last_offset_delta + 1 != count:
        raise InvalidHeader(f"{count} records with offsets up to {batch.last_offset_delta}")
    if batch.is_control:
        raise InvalidHeader("control records from a client")
    if batch.has_producer_id and batch.base_sequence < 0:
        raise InvalidHeader(f"sequence {batch.base_sequence} of producer {batch.producer_id}")
