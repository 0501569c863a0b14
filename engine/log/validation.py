"""What a leader takes into its log, and what it sets in it. Pure but for the caller's buffer.

A produce request brings for each partition one batch of magic 2, or messages of magic 0 and 1.
What goes into the log is always one batch of magic 2:

| what came                             | what is done                                           |
|---------------------------------------|--------------------------------------------------------|
| magic 2, the codec the topic wants    | base offset and epoch are set in place, the rest stays |
| the same, topic with append time      | its time is set in place too, and the checksum         |
| magic 2, another codec                | the records are compressed anew                        |
| magic 0 and 1                         | one batch is built of all messages                     |

| refused                                              | error                             |
|------------------------------------------------------|-----------------------------------|
| wrong checksum, size or magic                        | CorruptMessage 2                  |
| a batch above max.message.bytes, before or after     | MessageTooLarge 10                |
| more batches than one; offsets or count that do not  | InvalidRecord 87                  |
| fit; control records or no sequence from a client;   |                                   |
| no key in a compacted topic; records that do not     |                                   |
| follow their format                                  |                                   |
| no batch at all                                      | NoBatch 87                        |
| a codec that does not exist, compressed data that    | UnreadableRecords −1, as Kafka    |
| cannot be opened, what cannot be written anew        | has no code for it                |
| a time outside of the topic's bounds; append time    | InvalidTimestamp 32               |
| set by a producer                                    |                                   |

Records are read only where a rule needs them: keys of a compacted topic, bounds on times, another
codec or format, or `is_deep_validation`.

Source: Kafka's UnifiedLog.analyzeAndValidateRecords and LogValidator; LOG-8.
Differs: without deep validation records inside of a good checksum are not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from engine.errors import ApiError, CorruptRecord
from engine.log.conversion import rebuilt, settings_for
from engine.log.log_config import LONG_MAX, LogConfig
from engine.log.producer_state import AppendOrigin
from engine.records.batch import HEADER_BYTES, MAGIC, BatchView
from engine.records.builder import BatchRefused
from engine.records.codec import (
    Codec,
    CompressedDataCorrupt,
    UnknownCodec,
)
from engine.records.legacy import LegacyBatch
from engine.records.record import NO_TIMESTAMP, Record, TimestampType
from engine.records.varint import VarintTooLong
from engine.records.view import PROLOGUE_BYTES, RecordBatch, batches_in

_MAGIC_AT = 16
_UNREADABLE = (
    BatchRefused,
    CompressedDataCorrupt,
    UnknownCodec,
    VarintTooLong,
)


class CorruptMessage(ApiError):
    """What was sent does not form batches, or its checksum is wrong."""

    def __init__(self, reason: str) -> None:
        super().__init__(2, "CORRUPT_MESSAGE", reason)
        self.reason = reason


class MessageTooLarge(ApiError):
    """A batch is larger than the topic allows."""

    def __init__(self, size_bytes: int, max_bytes: int) -> None:
        super().__init__(
            10, "MESSAGE_TOO_LARGE", f"a batch of {size_bytes} bytes, {max_bytes} are allowed"
        )
        self.size_bytes = size_bytes
        self.max_bytes = max_bytes


class RecordError(NamedTuple):
    """Why one record was refused, by its place in the batch."""

    batch_index: int
    message: str


class RecordsRefused(ApiError):
    """Records break a rule; `record_errors` says which, if single ones are to blame."""

    def __init__(
        self, code: int, name: str, reason: str, record_errors: Sequence[RecordError] = ()
    ) -> None:
        super().__init__(code, name, reason)
        self.reason = reason
        self.record_errors = tuple(record_errors)


class InvalidRecord(RecordsRefused):
    """A batch, or a record in it, breaks a rule of the format or the topic."""

    def __init__(self, reason: str, record_errors: Sequence[RecordError] = ()) -> None:
        super().__init__(87, "INVALID_RECORD", reason, record_errors)


class NoBatch(InvalidRecord):
    """What was sent holds no whole batch."""


class UnreadableRecords(ApiError):
    """Records cannot be opened or written anew. Source: what Kafka does not catch by name."""

    def __init__(self, reason: str) -> None:
        super().__init__(-1, "UNKNOWN_SERVER_ERROR", reason)
        self.reason = reason


class InvalidTimestamp(RecordsRefused):
    """Records have times that the topic does not allow."""

    def __init__(self, reason: str, record_errors: Sequence[RecordError] = ()) -> None:
        super().__init__(32, "INVALID_TIMESTAMP", reason, record_errors)


class LeaderBatch(NamedTuple):
    """The one batch that goes into the log; `batch` is a view of it with everything set.

    `log_append_time_ms` is −1 unless the broker sets times. `is_rewritten` tells that the bytes
    are not the producer's buffer.
    """

    batch: BatchView
    log_append_time_ms: int
    is_rewritten: bool


class LeaderRules:
    """The rules of one topic, worked out once from its settings."""

    __slots__ = ("_codec", "_config", "_has_bounds", "_limit_bytes", "is_plain")

    def __init__(self, config: LogConfig) -> None:
        self._config = config
        self._codec = config.compression_type
        self._limit_bytes = config.opened_batch_bytes_max
        self._has_bounds = (
            config.message_timestamp_before_max_ms < LONG_MAX
            or config.message_timestamp_after_max_ms < LONG_MAX
        )
        #: Whether a batch with a good header and checksum needs its offset and epoch set alone.
        self.is_plain = not (
            config.is_deep_validation
            or config.is_compacted
            or self._has_bounds
            or config.message_timestamp_type is TimestampType.LOG_APPEND_TIME
            or config.compression_type is not None
        )

    def accept(
        self,
        data: memoryview,
        *,
        base_offset: int,
        leader_epoch: int,
        now_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
    ) -> LeaderBatch:
        """Return the batch to append at `base_offset`; `data` must be writable, and is patched.

        Bytes of a last batch that is cut short are left out. Errors: see the module's table.
        """
        is_current = len(data) > PROLOGUE_BYTES and data[_MAGIC_AT] == MAGIC
        batches = self._checked(data, origin)
        first = batches[0]
        if isinstance(first, BatchView) and is_current:
            if len(batches) > 1:
                raise InvalidRecord("more than one batch for a partition")
            _check_header(first, origin)
        elif len(batches) > 1 and any(batch.is_compressed for batch in batches):
            raise InvalidRecord("more than one compressed message for a partition")
        try:
            taken = self._taken(first, batches, base_offset, leader_epoch, now_ms)
        except _UNREADABLE as error:
            raise UnreadableRecords(f"records that cannot be opened: {error}") from error
        except CorruptRecord as error:
            raise InvalidRecord(f"records that cannot be read: {error}") from error
        if taken.is_rewritten and taken.batch.size_bytes > self._config.max_message_bytes:
            raise MessageTooLarge(taken.batch.size_bytes, self._config.max_message_bytes)
        return taken

    def _checked(self, data: memoryview, origin: AppendOrigin) -> list[RecordBatch]:
        """Return the batches, each with a good size and checksum, at least one."""
        found: list[RecordBatch] = []
        try:
            for batch in batches_in(data, allow_partial_tail=True):
                if found and batch.magic != found[0].magic:
                    raise InvalidRecord(f"batches of magic {found[0].magic} and {batch.magic}")
                is_new = batch.magic >= MAGIC and origin is AppendOrigin.CLIENT
                if is_new and batch.base_offset != 0:
                    raise InvalidRecord(f"a base offset of {batch.base_offset}, not 0")
                if batch.size_bytes > self._config.max_message_bytes:
                    raise MessageTooLarge(batch.size_bytes, self._config.max_message_bytes)
                batch.ensure_valid()
                found.append(batch)
        except CorruptRecord as error:
            raise CorruptMessage(f"expected {error.expected}, got {error.got}") from error
        if not found:
            raise NoBatch("no batch")
        return found

    def _taken(
        self,
        first: RecordBatch,
        batches: list[RecordBatch],
        base_offset: int,
        leader_epoch: int,
        now_ms: int,
    ) -> LeaderBatch:
        config = self._config
        source = first.codec
        target = source if self._codec is None else self._codec
        # Markers of transactions are never compressed.
        is_kept = source is target or (first.is_control and source is Codec.NONE)
        is_kept = is_kept and isinstance(first, BatchView)
        is_append_time = config.message_timestamp_type is TimestampType.LOG_APPEND_TIME
        has_rules = config.is_deep_validation or config.is_compacted or self._has_bounds
        records = None
        # A producer that sets append time breaks a rule in most topics: its records say which.
        if has_rules or not is_kept or first.timestamp_type is TimestampType.LOG_APPEND_TIME:
            records = self._records(batches, now_ms)
        if is_kept and isinstance(first, BatchView):
            max_ms = None
            if records is not None:
                latest_ms = max(record.timestamp_ms for record in records)
                max_ms = max(NO_TIMESTAMP, latest_ms)
            first.patch(
                base_offset=base_offset,
                leader_epoch=leader_epoch,
                timestamp_type=config.message_timestamp_type,
                max_timestamp_ms=now_ms if is_append_time else max_ms,
            )
            return LeaderBatch(first, now_ms if is_append_time else NO_TIMESTAMP, False)
        settings = settings_for(
            first,
            base_offset=base_offset,
            codec=target,
            level=config.compression_level,
            leader_epoch=leader_epoch,
            append_time_ms=now_ms if is_append_time else None,
        )
        built = rebuilt(records or (), settings)
        view = BatchView(memoryview(built))
        return LeaderBatch(view, now_ms if is_append_time else NO_TIMESTAMP, True)

    def _records(self, batches: list[RecordBatch], now_ms: int) -> list[Record]:
        """Return all records, each of which keeps the topic's rules."""
        found: list[Record] = []
        for batch in batches:
            errors: list[RecordError] = []
            is_time_wrong = False
            for index, record in enumerate(self._decoded(batch)):
                if self._config.is_compacted and record.key is None:
                    errors.append(RecordError(index, "no key, in a compacted topic"))
                elif problem := self._time_problem(batch, record, now_ms):
                    errors.append(RecordError(index, problem))
                    is_time_wrong = True
                found.append(record)
            if is_time_wrong:
                raise InvalidTimestamp("records with times that are not allowed", errors)
            if errors:
                raise InvalidRecord(f"{len(errors)} records break a rule", errors)
        if not found:
            raise InvalidRecord("no records")
        return found

    def _decoded(self, batch: RecordBatch) -> Iterator[Record]:
        if isinstance(batch, LegacyBatch):
            if batch.codec is Codec.ZSTD:
                raise InvalidRecord(f"zstd in magic {batch.magic}")
            for message in batch.messages(limit_bytes=self._limit_bytes):
                if message.magic != batch.magic:
                    raise InvalidRecord(f"magic {message.magic} inside of magic {batch.magic}")
                if not message.is_crc_valid():
                    raise CorruptMessage("the checksum of an inner message is wrong")
                yield message.to_record()
        else:
            yield from batch.read_records(limit_bytes=self._limit_bytes)

    def _time_problem(self, batch: RecordBatch, record: Record, now_ms: int) -> str | None:
        config = self._config
        time_ms = record.timestamp_ms
        if config.message_timestamp_type is TimestampType.CREATE_TIME and time_ms != NO_TIMESTAMP:
            earliest = now_ms - config.message_timestamp_before_max_ms
            latest = now_ms + config.message_timestamp_after_max_ms
            if not earliest <= time_ms <= latest:
                return f"time {time_ms} is not within {earliest} and {latest}"
        elif batch.timestamp_type is TimestampType.LOG_APPEND_TIME:
            return "append time, which producers do not set"
        return None


def _check_header(batch: BatchView, origin: AppendOrigin) -> None:
    if batch.size_bytes < HEADER_BYTES:
        raise CorruptMessage(f"a batch of {batch.size_bytes} bytes")
    if origin is not AppendOrigin.CLIENT:
        return
    count = batch.record_count
    if count <= 0:
        raise InvalidRecord(f"a record count of {count}")
    if batch.last_offset_delta + 1 != count:
        raise InvalidRecord(f"{count} records with offsets up to {batch.last_offset_delta}")
    if batch.is_control:
        raise InvalidRecord("control records from a client")
    if batch.has_producer_id and batch.base_sequence < 0:
        raise InvalidRecord(f"sequence {batch.base_sequence} of producer {batch.producer_id}")
