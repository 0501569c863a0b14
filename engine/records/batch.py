"""Record batches of magic 2, read in place: header fields, checksum, patches, records.

```
fields       see `batch_header.py`
attributes: bits 0–2 codec, 3 append time, 4 transactional, 5 control, 6 delete horizon
```

The first 21 bytes are outside of the checksum, so base offset and leader epoch can be set without
computing it again. A damaged header is returned unchanged: CorruptRecord is raised only for fields
that cannot be returned (an unknown codec, bytes beyond the data). Source: `DefaultRecordBatch`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from engine.errors import CorruptRecord, InvariantBroken
from engine.limits import DECOMPRESSED_BATCH_BYTES_MAX
from engine.records.batch_header import (
    APPEND_TIME_FLAG,
    CHECKED_FROM,
    CONTROL_FLAG,
    CRC_AT,
    DELETE_HORIZON_FLAG,
    HEADER_BYTES,
    KNOWN_FLAGS,
    LEADER_EPOCH_AT,
    LENGTH_OVERHEAD_BYTES,
    TRANSACTIONAL_FLAG,
    read_header,
    set_attributes,
    set_base_offset,
    set_crc,
    set_leader_epoch,
    set_max_timestamp,
)
from engine.records.codec import Codec, DeflatedDataBroken, codec_of
from engine.records.compression import decompress, decompress_prefix
from engine.records.crc import crc32c
from engine.records.decode import Origin, decode_records, int64, skim_records
from engine.records.record import (
    NO_SEQUENCE,
    Record,
    TimestampType,
    increment_sequence,
)

_INT64_MAX = (1 << 63) - 1
_INFLATED_STEP_BYTES = 16 * 1024


class BatchView:
    """A view of one batch inside a buffer, without copies; only `patch` changes bytes.

    The buffer must contain the header; `records`, `raw` and the checksum need all bytes.

    Source: D5.
    """

    __slots__ = ("_buffer", "_header", "_position")

    def __init__(self, buffer: memoryview, position: int = 0) -> None:
        """Read the header. Raises CorruptRecord if the buffer ends inside it."""
        try:
            self._header: tuple[int, ...] = read_header(buffer, position)
        except struct.error as error:
            left = len(buffer) - position
            raise CorruptRecord(
                f"a batch header of {HEADER_BYTES} bytes", f"{left} bytes", position=position
            ) from error
        self._buffer = buffer
        self._position = position

    @property
    def position(self) -> int:
        """Return the position of the batch's first byte in its buffer."""
        return self._position

    @property
    def base_offset(self) -> int:
        """Return the base offset: that of the first record at the time of writing."""
        return self._header[0]

    @property
    def batch_length(self) -> int:
        """Return the length field: the number of bytes of the batch after that field."""
        return self._header[1]

    @property
    def size_bytes(self) -> int:
        """Return the size of the complete batch, with its header."""
        return self._header[1] + LENGTH_OVERHEAD_BYTES

    @property
    def leader_epoch(self) -> int:
        """Return the epoch of the leader that appended the batch, −1 before an append."""
        return self._header[2]

    @property
    def magic(self) -> int:
        """Return the magic byte unchanged; above 2 only in damaged data."""
        return self._header[3]

    @property
    def crc(self) -> int:
        """Return the stored CRC-32C, unsigned."""
        return self._header[4]

    @property
    def attributes(self) -> int:
        """Return the attribute bits; see the module's table."""
        return self._header[5]

    @property
    def codec(self) -> Codec:
        """Return the codec of the records; raises CorruptRecord for an unknown one."""
        try:
            return codec_of(self._header[5])
        except CorruptRecord as error:
            raise error.at(None, self._position + CHECKED_FROM) from None

    @property
    def is_compressed(self) -> bool:
        """Return True if the records are compressed; raises CorruptRecord for an unknown codec."""
        return self.codec is not Codec.NONE

    @property
    def timestamp_type(self) -> TimestampType:
        """Return LOG_APPEND_TIME if the broker set the records' timestamps, else CREATE_TIME."""
        if self._header[5] & APPEND_TIME_FLAG:
            return TimestampType.LOG_APPEND_TIME
        return TimestampType.CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        """Return True if the batch belongs to a transaction; True for its marker too."""
        return self._header[5] & TRANSACTIONAL_FLAG != 0

    @property
    def is_control(self) -> bool:
        """Return True if the records are control records."""
        return self._header[5] & CONTROL_FLAG != 0

    @property
    def has_delete_horizon(self) -> bool:
        """Return True if the cleaner has set the removal time of the batch's tombstones."""
        return self._header[5] & DELETE_HORIZON_FLAG != 0

    @property
    def delete_horizon_ms(self) -> int | None:
        """Return the time from which tombstones and markers may be removed.

        None: unset (KIP-534).
        """
        return self._header[7] if self.has_delete_horizon else None

    @property
    def last_offset_delta(self) -> int:
        """Return the difference of last offset and base offset."""
        return self._header[6]

    @property
    def last_offset(self) -> int:
        """Return the last offset (inclusive), which compaction keeps even without its record."""
        offset = self._header[0] + self._header[6]
        return offset if -_INT64_MAX <= offset <= _INT64_MAX else int64(offset)

    @property
    def next_offset(self) -> int:
        """Return the offset after the last offset."""
        offset = self._header[0] + self._header[6] + 1
        return offset if -_INT64_MAX <= offset <= _INT64_MAX else int64(offset)

    @property
    def base_timestamp_ms(self) -> int:
        """Return the timestamp to which the records' timestamp deltas are added."""
        return self._header[7]

    @property
    def max_timestamp_ms(self) -> int:
        """Return the largest timestamp of the records; with append time, the timestamp of all."""
        return self._header[8]

    @property
    def producer_id(self) -> int:
        """Return the producer's id, −1 for none."""
        return self._header[9]

    @property
    def has_producer_id(self) -> bool:
        """Return True if an idempotent or transactional producer wrote the batch."""
        return self._header[9] > -1

    @property
    def producer_epoch(self) -> int:
        """Return the producer's epoch, −1 for none."""
        return self._header[10]

    @property
    def base_sequence(self) -> int:
        """Return the sequence of the first record, −1 for none."""
        return self._header[11]

    @property
    def last_sequence(self) -> int:
        """Return the sequence of the last record, −1 for none; wraps after 2^31 − 1."""
        base = self._header[11]
        return base if base == NO_SEQUENCE else increment_sequence(base, self._header[6])

    @property
    def record_count(self) -> int:
        """Return the stored number of records.

        0 for a batch that only keeps its producer's state.
        """
        return self._header[12]

    @property
    def raw(self) -> memoryview:
        """Return the bytes of the whole batch."""
        self._require_whole()
        return self._buffer[self._position : self._position + self.size_bytes]

    @property
    def payload(self) -> memoryview:
        """Return the bytes of the records, compressed or not."""
        self._require_whole()
        self.ensure_size()
        return self._buffer[self._position + HEADER_BYTES : self._position + self.size_bytes]

    def is_crc_valid(self) -> bool:
        """Return True if the stored checksum equals the computed one.

        False for a truncated batch.
        """
        return self.size_bytes >= HEADER_BYTES and self.crc == self.computed_crc()

    def computed_crc(self) -> int:
        """Return the CRC-32C of the bytes that the checksum covers."""
        return crc32c(self.raw[CHECKED_FROM:])

    def ensure_size(self) -> None:
        """Raise CorruptRecord if the length field is too small for a header."""
        if self.size_bytes < HEADER_BYTES:
            raise CorruptRecord(
                f"a batch of at least {HEADER_BYTES} bytes",
                self.size_bytes,
                position=self._position,
            )

    def ensure_valid(self, computed_crc: int | None = None) -> None:
        """Raise CorruptRecord if the batch is too short or its checksum is wrong.

        `computed_crc` is the result of `computed_crc()`, for a caller that has it.
        """
        self.ensure_size()
        computed = self.computed_crc() if computed_crc is None else computed_crc
        if computed != self.crc:
            raise CorruptRecord(f"CRC {computed}", self.crc, position=self._position + CRC_AT)

    def records(self, *, limit_bytes: int = DECOMPRESSED_BATCH_BYTES_MAX) -> Iterator[Record]:
        """Yield the records as Kafka's `iterator` does; the checksum is not verified.

        Uncompressed records are yielded up to the damaged one; of a compressed batch with a damaged
        record, none is yielded. Raises CorruptRecord, DecompressedTooLarge. Source:
        `DefaultRecordBatch.iterator`.
        """
        if self.record_count == 0:
            return
        if self.codec is Codec.NONE:
            yield from decode_records(
                bytes(self.payload), self._decoding_origin(is_decompressed=False)
            )
        else:
            yield from self.read_records(limit_bytes=limit_bytes)

    def read_records(self, *, limit_bytes: int = DECOMPRESSED_BATCH_BYTES_MAX) -> list[Record]:
        """Return all records, or raise the errors of `records`."""
        return (
            self.records_in(self.decompress_records(limit_bytes=limit_bytes))
            if self.record_count
            else []
        )

    def decompress_records(self, *, limit_bytes: int = DECOMPRESSED_BATCH_BYTES_MAX) -> bytes:
        """Return the decompressed bytes of the records, or raise the errors of `records`."""
        if self.codec is Codec.NONE:
            return bytes(self.payload)
        try:
            return decompress(self.codec, self.payload, limit_bytes=limit_bytes)
        except CorruptRecord as error:
            raise error.at(None, self._position + HEADER_BYTES) from error

    def records_in(self, opened: bytes) -> list[Record]:
        """Return all records decoded from `opened`, the result of `decompress_records`.

        Raises CorruptRecord.
        """
        origin = self._decoding_origin(is_decompressed=self.codec is not Codec.NONE)
        return list(decode_records(opened, origin))

    def salvage_records(
        self, *, limit_bytes: int = DECOMPRESSED_BATCH_BYTES_MAX
    ) -> Iterator[Record]:
        """Yield every record before the first damage, also of compressed batches, then raise.

        The data that can be decompressed before damage is decoded. Source:
        `DefaultRecordBatch.streamingIterator`.
        """
        if self.record_count == 0:
            return
        data, fault = self._decompress_prefix(limit_bytes)
        origin = self._decoding_origin(is_decompressed=self.codec is not Codec.NONE)
        yield from decode_records(data, origin, fault)

    def records_for_leader(
        self,
        opened: tuple[bytes | memoryview, CorruptRecord | None] | None,
        *,
        is_skimmed: bool,
    ) -> Iterator[Record]:
        """Yield the records as a leader validates them; raise at the first damaged one.

        `opened` are the decompressed records up to a fault, and the fault that ended
        decompression. With `is_skimmed` keys and values of compressed records are left out: they
        are empty or null.

        Source: `DefaultRecordBatch`'s skipKeyValueIterator, streamingIterator.
        """
        if self.record_count == 0:
            return
        if self.codec is Codec.NONE:
            yield from self.read_records()
            return
        assert opened is not None
        data, fault = opened
        if isinstance(fault, DeflatedDataBroken):
            # Java inflates in steps of this size, and loses a complete step with wrong data.
            data = data[: len(data) - len(data) % _INFLATED_STEP_BYTES]
        read = skim_records if is_skimmed else decode_records
        yield from read(bytes(data), self._decoding_origin(is_decompressed=True), fault)

    def _decompress_prefix(self, limit_bytes: int) -> tuple[bytes, CorruptRecord | None]:
        """Decompress the records up to a fault; return them and the fault, None without one."""
        data, fault = decompress_prefix(self.codec, self.payload, limit_bytes=limit_bytes)
        if fault is not None:
            fault = fault.at(None, self._position + HEADER_BYTES)
        return data, fault

    def patch(
        self,
        *,
        base_offset: int | None = None,
        leader_epoch: int | None = None,
        timestamp_type: TimestampType | None = None,
        max_timestamp_ms: int | None = None,
    ) -> None:
        """Set header fields in the buffer, which must be writable.

        The checksum is computed again only if the timestamp's type or maximum changes. The records
        keep their offset deltas, so their offsets change with the base offset.
        """
        buffer, start = self._buffer, self._position
        if buffer.readonly:
            raise InvariantBroken("a batch can be patched only in a writable buffer")
        if base_offset is not None:
            set_base_offset(buffer, start, base_offset)
        if leader_epoch is not None:
            set_leader_epoch(buffer, start + LEADER_EPOCH_AT, leader_epoch)
        if timestamp_type is not None or max_timestamp_ms is not None:
            self._patch_timestamp(
                self.timestamp_type if timestamp_type is None else timestamp_type,
                self.max_timestamp_ms if max_timestamp_ms is None else max_timestamp_ms,
            )
        self._header = read_header(buffer, start)

    def _patch_timestamp(self, kind: TimestampType, max_timestamp_ms: int) -> None:
        """Set timestamp type and maximum timestamp, and renew the CRC, if either differs."""
        if kind is self.timestamp_type and max_timestamp_ms == self.max_timestamp_ms:
            return
        is_append_time = kind is TimestampType.LOG_APPEND_TIME
        attributes = self.attributes & KNOWN_FLAGS & ~APPEND_TIME_FLAG
        buffer, start = self._buffer, self._position
        set_attributes(buffer, start, attributes | APPEND_TIME_FLAG * is_append_time)
        set_max_timestamp(buffer, start, max_timestamp_ms)
        set_crc(buffer, start, self.computed_crc())

    def _decoding_origin(self, *, is_decompressed: bool) -> Origin:
        """Return the header fields that the decoding of the records needs."""
        if self.record_count < 0:
            raise CorruptRecord("a record count from 0", self.record_count, position=self._position)
        is_append_time = self.timestamp_type is TimestampType.LOG_APPEND_TIME
        return Origin(
            record_count=self.record_count,
            base_offset=self.base_offset,
            base_timestamp_ms=self.base_timestamp_ms,
            base_sequence=self.base_sequence,
            append_time_ms=self.max_timestamp_ms if is_append_time else None,
            place=self._position + HEADER_BYTES,
            is_decompressed=is_decompressed,
        )

    def _require_whole(self) -> None:
        """Raise CorruptRecord if the buffer ends before the batch does."""
        left = len(self._buffer) - self._position
        if self.size_bytes > left:
            raise CorruptRecord(
                f"a batch of {self.size_bytes} bytes", f"{left} bytes", position=self._position
            )
