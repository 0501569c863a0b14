"""Build record batches of magic 2, byte for byte as Kafka's own builder does.

The layout is shown in `batch.py` and `decode.py`. Rules of the header:

- base timestamp: that of the first record, or the delete horizon if one is set
- maximum timestamp: the largest of the records, or the append time
- last offset: that of the last record, unless `build` gets another (compaction keeps it)

Source: `MemoryRecordsBuilder`, `DefaultRecord.writeTo`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from engine.errors import EngineError
from engine.host.ports import Buffer
from engine.records.batch import BatchView
from engine.records.batch_header import (
    APPEND_TIME_FLAG,
    CHECKED_FROM,
    CODEC_BITS,
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    HEADER_BYTES,
    LENGTH_OVERHEAD_BYTES,
    MAGIC,
    TRANSACTIONAL_FLAG,
    write_header,
)
from engine.records.codec import Codec
from engine.records.compression import compress
from engine.records.crc import crc32c
from engine.records.fast_records import FastRun, encode_fast
from engine.records.record import (
    NO_SEQUENCE,
    NO_TIMESTAMP,
    Header,
    Record,
    TimestampType,
)
from engine.records.varint import size_of_varint, write_varint

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_LEADER_EPOCH = -1

_CRC_AT = 17
_CRC = struct.Struct(">I")
_INT32_MAX = 0x7FFFFFFF
#: Zigzag varints of numbers from 0 to below this take one byte.
_ONE_BYTE = 64
# Attributes that `build_batch_like` keeps; the delete horizon is a parameter.
_KEPT_FLAGS = CODEC_BITS | APPEND_TIME_FLAG | TRANSACTIONAL_FLAG | CONTROL_FLAG

# Largest sizes of length, attributes, timestamp delta and offset delta together.
_RECORD_OVERHEAD_BYTES_MAX = 5 + 1 + 10 + 5


class BatchRefused(EngineError):
    """Records or settings cannot form a batch."""

    def __init__(self, rule: str, got: object) -> None:
        super().__init__(f"no record batch: {rule}, got {got}")
        self.rule = rule
        self.got = got


class BatchSettings(NamedTuple):
    """Fields of a batch's header that do not depend on its records.

    `level` None is the codec's default level. `append_time_ms` is used only with append time.
    """

    base_offset: int = 0
    codec: Codec = Codec.NONE
    level: int | None = None
    timestamp_type: TimestampType = TimestampType.CREATE_TIME
    append_time_ms: int = NO_TIMESTAMP
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    base_sequence: int = NO_SEQUENCE
    is_transactional: bool = False
    is_control: bool = False
    delete_horizon_ms: int | None = None
    leader_epoch: int = NO_LEADER_EPOCH

    @property
    def attributes(self) -> int:
        """Return the attribute bits of a header with these settings."""
        return (
            self.codec
            | APPEND_TIME_FLAG * (self.timestamp_type is TimestampType.LOG_APPEND_TIME)
            | TRANSACTIONAL_FLAG * self.is_transactional
            | CONTROL_FLAG * self.is_control
            | DELETE_HORIZON_FLAG * (self.delete_horizon_ms is not None)
        )

    def check(self) -> None:
        """Raise BatchRefused for settings that contradict each other."""
        if self.timestamp_type is TimestampType.NONE:
            raise BatchRefused("records need create or append time", self.timestamp_type.label)
        if self.is_transactional and self.producer_id == NO_PRODUCER_ID:
            raise BatchRefused("a transaction needs a producer id", self.producer_id)
        if self.producer_id == NO_PRODUCER_ID:
            return
        if self.producer_epoch == NO_PRODUCER_EPOCH:
            raise BatchRefused("a producer needs an epoch", self.producer_epoch)
        if self.base_sequence < 0 and not self.is_control:
            raise BatchRefused("a producer needs a sequence", self.base_sequence)


def settings_of(batch: BatchView) -> BatchSettings:
    """Return the settings of an existing batch, to build one with other records."""
    return BatchSettings(
        base_offset=batch.base_offset,
        codec=batch.codec,
        timestamp_type=batch.timestamp_type,
        append_time_ms=batch.max_timestamp_ms,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        is_transactional=batch.is_transactional,
        is_control=batch.is_control,
        delete_horizon_ms=batch.delete_horizon_ms,
        leader_epoch=batch.leader_epoch,
    )


class BatchBuilder:
    """Collects records and builds one batch of them."""

    __slots__ = (
        "_base_timestamp_ms",
        "_last_offset",
        "_max_timestamp_ms",
        "_payload",
        "record_count",
        "settings",
    )

    def __init__(self, settings: BatchSettings | None = None) -> None:
        """Start without records. Raises BatchRefused for settings that contradict each other."""
        self.settings = settings or BatchSettings()
        self.settings.check()
        self.record_count = 0
        #: Encoded records without the header.
        self._payload = bytearray()
        #: Base timestamp of the records' deltas: the delete horizon, else the first record's
        #: timestamp. None before the first record.
        self._base_timestamp_ms = self.settings.delete_horizon_ms
        self._max_timestamp_ms = NO_TIMESTAMP
        #: Offset of the last record; one below the base offset before the first.
        self._last_offset = self.settings.base_offset - 1

    @property
    def next_offset(self) -> int:
        """Return the offset after the last record; the base offset without records."""
        return self._last_offset + 1

    @property
    def uncompressed_size_bytes(self) -> int:
        """Return the batch's size before compression; exact if it is not compressed."""
        return HEADER_BYTES + len(self._payload)

    def append(
        self,
        timestamp_ms: int,
        key: Buffer | None,
        value: Buffer | None,
        headers: Iterable[Header] = (),
        *,
        offset: int | None = None,
    ) -> None:
        """Add a record at the next offset, or at a given higher one.

        Raises BatchRefused for a timestamp below −1, and for an offset that does not rise or does
        not fit the batch.
        """
        last_offset = self._last_offset
        if offset is None:
            offset = last_offset + 1
        offset_delta = offset - self.settings.base_offset
        if offset <= last_offset or offset_delta > _INT32_MAX:
            raise BatchRefused(f"an offset from {self.next_offset}, 2^31 at most", offset)
        if timestamp_ms < NO_TIMESTAMP:
            raise BatchRefused("a time from 0, or -1 for none", timestamp_ms)
        base_ms = timestamp_ms if self._base_timestamp_ms is None else self._base_timestamp_ms
        size_bytes = len(self._payload)
        try:
            write_record(self._payload, timestamp_ms - base_ms, offset_delta, key, value, headers)
        except BaseException:
            # Of a record that cannot be written nothing is left among the others.
            del self._payload[size_bytes:]
            raise
        self._base_timestamp_ms = base_ms
        self.record_count += 1
        self._last_offset = offset
        self._max_timestamp_ms = max(self._max_timestamp_ms, timestamp_ms)

    def append_fast(self, timestamp_ms: int, run: FastRun, start: int, *, limit_bytes: int) -> int:
        """Add records of a run from `start` on while the batch stays within the limit.

        Returns the number of added records. Equals `append` after `has_room_for` for each record,
        except that even the first record must be within the limit.
        """
        base_ms = timestamp_ms if self._base_timestamp_ms is None else self._base_timestamp_ms
        taken = 0
        while start + taken < len(run.values):
            count, payload = encode_fast(
                run,
                start + taken,
                timestamp_delta=timestamp_ms - base_ms,
                first_delta=self.next_offset - self.settings.base_offset,
                room_bytes=limit_bytes - self.uncompressed_size_bytes,
            )
            if not count:
                break
            self._payload += payload
            self._base_timestamp_ms = base_ms
            self._last_offset += count
            self._max_timestamp_ms = max(self._max_timestamp_ms, timestamp_ms)
            self.record_count += count
            taken += count
        return taken

    def append_record(self, record: Record) -> None:
        """Add a record at its own offset; its sequence is derived from the base sequence."""
        self.append(
            record.timestamp_ms, record.key, record.value, record.headers, offset=record.offset
        )

    def has_room_for(
        self,
        timestamp_ms: int,
        key: Buffer | None,
        value: Buffer | None,
        headers: Iterable[Header] = (),
        *,
        limit_bytes: int,
    ) -> bool:
        """Return True if the uncompressed batch stays within the limit with one more record.

        True for the first record.
        """
        if self.record_count == 0:
            return True
        base = self._base_timestamp_ms or 0
        delta = self.next_offset - self.settings.base_offset
        size = record_size_bytes(timestamp_ms - base, delta, key, value, headers)
        return self.uncompressed_size_bytes + size <= limit_bytes

    def build(self, *, last_offset: int | None = None) -> bytearray:
        """Return the batch; empty bytes if there are no records.

        `last_offset` (inclusive) is above the last record if a cleaning removed later records.
        """
        if self.record_count == 0:
            return bytearray()
        settings = self.settings
        payload: Buffer = self._payload
        if settings.codec is not Codec.NONE:
            payload = compress(settings.codec, payload, settings.level)
        is_append_time = settings.timestamp_type is TimestampType.LOG_APPEND_TIME
        return assemble_batch(
            settings,
            last_offset=self._last_offset if last_offset is None else last_offset,
            base_timestamp_ms=self._base_timestamp_ms or 0,
            max_timestamp_ms=settings.append_time_ms if is_append_time else self._max_timestamp_ms,
            record_count=self.record_count,
            payload=payload,
        )


def build_batch(records: Iterable[Record], settings: BatchSettings | None = None) -> bytearray:
    """Return one batch of these records at their offsets; empty bytes without records.

    Without settings, the first record's offset is the base offset.
    """
    batch_records = list(records)
    if settings is None and batch_records:
        settings = BatchSettings(base_offset=batch_records[0].offset)
    builder = BatchBuilder(settings)
    for record in batch_records:
        builder.append_record(record)
    return builder.build()


def build_empty_batch(
    settings: BatchSettings, *, last_offset: int, max_timestamp_ms: int
) -> bytearray:
    """Return a batch without records, which keeps its producer's last sequence in the log.

    Written by a cleaning that removes a producer's last records. The batch has no codec and no
    delete horizon.

    Source: `DefaultRecordBatch.writeEmptyHeader`.
    """
    return assemble_batch(
        settings._replace(codec=Codec.NONE, delete_horizon_ms=None),
        last_offset=last_offset,
        base_timestamp_ms=NO_TIMESTAMP,
        max_timestamp_ms=max_timestamp_ms,
        record_count=0,
        payload=b"",
    )


def build_batch_like(
    batch: BatchView,
    payload: Buffer,
    *,
    delete_horizon_ms: int | None,
    base_timestamp_ms: int,
    max_timestamp_ms: int,
    record_count: int,
) -> bytearray:
    """Return a batch with the header fields of an existing batch and other, encoded records.

    The records' deltas are relative to its base offset and the given base timestamp. Raises
    BatchRefused for settings that contradict each other.
    """
    old, producer_id = batch.attributes, batch.producer_id
    # A batch without producer id and transaction always passes the check.
    if producer_id != NO_PRODUCER_ID or old & TRANSACTIONAL_FLAG:
        settings_of(batch).check()
    codec = batch.codec
    if codec is not Codec.NONE:
        payload = compress(codec, payload, None)
    attributes = old & _KEPT_FLAGS
    if delete_horizon_ms is not None:
        attributes |= DELETE_HORIZON_FLAG
    content = bytearray(HEADER_BYTES)
    content += payload
    write_header(
        content,
        0,
        batch.base_offset,
        len(content) - LENGTH_OVERHEAD_BYTES,
        batch.leader_epoch,
        MAGIC,
        0,
        attributes,
        batch.last_offset_delta,
        base_timestamp_ms,
        max_timestamp_ms,
        producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        record_count,
    )
    _CRC.pack_into(content, _CRC_AT, crc32c(memoryview(content)[CHECKED_FROM:]))
    return content


def assemble_batch(
    settings: BatchSettings,
    *,
    last_offset: int,
    base_timestamp_ms: int,
    max_timestamp_ms: int,
    record_count: int,
    payload: Buffer,
) -> bytearray:
    """Return a complete batch: header, payload and CRC-32C.

    Raises BatchRefused if a number does not fit into its field.
    """
    batch = bytearray(HEADER_BYTES)
    batch += payload
    try:
        write_header(
            batch,
            0,
            settings.base_offset,
            len(batch) - LENGTH_OVERHEAD_BYTES,
            settings.leader_epoch,
            MAGIC,
            0,
            settings.attributes,
            last_offset - settings.base_offset,
            base_timestamp_ms,
            max_timestamp_ms,
            settings.producer_id,
            settings.producer_epoch,
            settings.base_sequence,
            record_count,
        )
    except struct.error as error:
        raise BatchRefused("header fields within their widths", error) from error
    _CRC.pack_into(batch, _CRC_AT, crc32c(memoryview(batch)[CHECKED_FROM:]))
    return batch


def write_record(
    out: bytearray,
    timestamp_delta: int,
    offset_delta: int,
    key: Buffer | None,
    value: Buffer | None,
    headers: Iterable[Header] = (),
) -> int:
    """Append one encoded record to `out` and return its size; see `decode.py` for the layout."""
    if 0 <= timestamp_delta < _ONE_BYTE and 0 <= offset_delta < _ONE_BYTE:
        # The most frequent case: the first 64 records of a batch.
        body = bytearray((0, timestamp_delta << 1, offset_delta << 1))
    else:
        body = bytearray(1)
        write_varint(body, timestamp_delta)
        write_varint(body, offset_delta)
    if key is None:
        body.append(1)
    else:
        write_varint(body, len(key))
        body += key
    if value is None:
        body.append(1)
    else:
        write_varint(body, len(value))
        body += value
    if headers:
        _write_headers(body, tuple(headers))
    else:
        body.append(0)
    before = len(out)
    write_varint(out, len(body))
    out += body
    return len(out) - before


def prepare_run(
    values: Sequence[bytes],
    *,
    keys: Sequence[bytes] | None = None,
    key: bytes | None = None,
    headers: Iterable[Header] = (),
) -> FastRun:
    """Return records for `append_fast`, which share their headers.

    With `keys` each record has its own key, else all have `key`.
    """
    key_bytes, header_bytes = bytearray(), bytearray()
    if keys is None:
        _write_sized(key_bytes, key)
    _write_headers(header_bytes, tuple(headers))
    return FastRun(values, keys, bytes(key_bytes), bytes(header_bytes))


def _write_headers(out: bytearray, headers: tuple[Header, ...]) -> None:
    """Append the number of headers and each header's key and value."""
    write_varint(out, len(headers))
    for name, value in headers:
        _write_sized(out, _header_name(name))
        _write_sized(out, value)


def _header_name(name: str) -> bytes:
    """Return the bytes of a header's name; lone surrogates represent bytes that are no UTF-8.

    Any other surrogate becomes a question mark, as in Java (PEP 383).
    """
    try:
        return name.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return name.encode(errors="replace")


def _write_sized(out: bytearray, content: Buffer | None) -> None:
    """Append the length (zigzag varint, -1 for None) and the bytes of a key or value."""
    if content is None:
        out.append(1)
    else:
        write_varint(out, len(content))
        out += content


def record_size_bytes(
    timestamp_delta: int,
    offset_delta: int,
    key: Buffer | None,
    value: Buffer | None,
    headers: Iterable[Header] = (),
) -> int:
    """Return the size of the bytes that `write_record` would append."""
    body = 1 + size_of_varint(timestamp_delta) + size_of_varint(offset_delta)
    body += _contents_size_bytes(key, value, headers)
    return size_of_varint(body) + body


def batch_size_bytes_max(
    key: Buffer | None, value: Buffer | None, headers: Iterable[Header] = ()
) -> int:
    """Return the largest possible size of an uncompressed batch with this one record."""
    contents = _contents_size_bytes(key, value, headers)
    return HEADER_BYTES + _RECORD_OVERHEAD_BYTES_MAX + contents


def _contents_size_bytes(
    key: Buffer | None, value: Buffer | None, headers: Iterable[Header]
) -> int:
    """Return the encoded size in bytes of key, value and headers with their lengths."""
    header_list = tuple(headers)
    size = _sized_bytes(key) + _sized_bytes(value) + size_of_varint(len(header_list))
    for name, header_value in header_list:
        size += _sized_bytes(_header_name(name)) + _sized_bytes(header_value)
    return size


def _sized_bytes(content: Buffer | None) -> int:
    """Return the size of `content` with its varint length prefix; null takes one byte."""
    return 1 if content is None else size_of_varint(len(content)) + len(content)
