"""The line of a batch, from its header only.

Fields of a version 2 header, in the order in which they are unpacked (61 bytes, big-endian):

```
 0 base_offset  8 length  12 leader_epoch  16 magic  17 crc  21 attributes  23 last_offset_delta
27 base_timestamp  35 max_timestamp  43 producer_id  51 producer_epoch  53 base_sequence  57 count
```

Kafka prints a batch in two steps: an error in the second leaves the first one printed.

Source: DumpLogSegments.printBatchLevel of 3.9.1 and 4.3.0 (they agree).
"""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

from engine.dump.plain_lines import BatchNumbers
from engine.errors import CorruptRecord
from engine.records.batch_header import HEADER_BYTES, LENGTH_OVERHEAD_BYTES, read_header
from engine.records.crc import crc32c
from engine.records.record import increment_sequence

_HEADER_V0 = struct.Struct(">qiIbb")
_HEADER_V1 = struct.Struct(">qiIbbq")

_CODECS = (b"none", b"gzip", b"snappy", b"lz4", b"zstd")
_TIMES = _CREATE_TIME, _APPEND_TIME = b"CreateTime", b"LogAppendTime"
_NO_TIME = b"NoTimestampType"
_BOOLS = (b"false", b"true")

_V2_FIRST = (
    b"baseOffset: %d lastOffset: %d count: %d baseSequence: %d lastSequence: %d producerId: %d"
    b" producerEpoch: %d partitionLeaderEpoch: %d isTransactional: %b isControl: %b"
    b" deleteHorizonMs: %b"
)
_TAIL = b" position: %d %b: %d size: %d magic: %d compresscodec: %b crc: %d isvalid: %b\n"


class ShallowBatch(NamedTuple):
    """The header fields of a batch; `first` and `format_tail` are the two parts of its line."""

    base_offset: int
    last_offset: int
    size_bytes: int
    magic: int
    codec: int
    time_label: bytes
    max_timestamp_ms: int
    producer_id: int
    base_sequence: int
    is_control: bool
    first: bytes
    base_timestamp_ms: int = -1
    record_count: int = -1

    @property
    def appended(self) -> bool:
        """Return True if the broker set the records' timestamp (LogAppendTime)."""
        return self.time_label == _APPEND_TIME

    def format_tail(self, position: int, crc: int, is_valid: bool) -> bytes:
        """Return the second part of the line; raises CorruptRecord for an unknown codec."""
        if self.codec >= len(_CODECS):
            raise CorruptRecord("a compression type from 0 to 4", self.codec)
        return _TAIL % (
            position,
            self.time_label,
            self.max_timestamp_ms,
            self.size_bytes,
            self.magic,
            _CODECS[self.codec],
            crc,
            _BOOLS[is_valid],
        )


def _int64(value: int) -> int:
    """Return a number wrapped to signed 64 bits, as Java's long overflows."""
    return (value + (1 << 63) & (1 << 64) - 1) - (1 << 63)


def parse_v2_header(header: memoryview) -> tuple[ShallowBatch, int]:
    """Parse a version 2 batch header of 61 bytes; return its fields and the stored CRC."""
    (base, length, epoch, magic, crc, attributes, delta, base_time, max_time, pid, pepoch, seq,
     count) = read_header(header)  # fmt: skip
    last = _int64(base + delta)
    horizon = b"OptionalLong[%d]" % base_time if attributes & 0x40 else b"OptionalLong.empty"
    control = bool(attributes & 0x20)
    first = _V2_FIRST % (
        base,
        last,
        count,
        seq,
        -1 if seq == -1 else increment_sequence(seq, delta),
        pid,
        pepoch,
        epoch,
        _BOOLS[(attributes & 0x10) >> 4],
        _BOOLS[control],
        horizon,
    )
    label = _TIMES[(attributes & 0x08) >> 3]
    size = LENGTH_OVERHEAD_BYTES + length
    shallow = ShallowBatch(
        base, last, size, magic, attributes & 7, label, max_time, pid, seq, control, first,
        base_time, count,
    )  # fmt: skip
    return shallow, crc


def batch_numbers(batch: ShallowBatch) -> BatchNumbers:
    """Return the header fields that the lines of a batch's records need."""
    append_ms = batch.max_timestamp_ms if batch.appended else -1
    return BatchNumbers(
        batch.base_offset,
        batch.base_timestamp_ms,
        append_ms,
        batch.base_sequence,
        batch.record_count,
        batch.time_label,
    )


def is_valid_v2(batch: memoryview, crc: int) -> bool:
    """Return True if a version 2 batch is no shorter than its header and has the CRC `crc`."""
    return len(batch) >= HEADER_BYTES and crc32c(batch[21:]) == crc


def parse_legacy_header(header: memoryview, magic: int) -> tuple[ShallowBatch, int]:
    """Parse the header of a message, 18 bytes for magic 0, 26 for magic 1; also return its CRC."""
    if magic == 0:
        offset, length, crc, _, attributes = _HEADER_V0.unpack_from(header)
        label, time = _NO_TIME, -1
    else:
        offset, length, crc, _, attributes, time = _HEADER_V1.unpack_from(header)
        label = _TIMES[(attributes & 0x08) >> 3]
    first = b"offset: %d" % offset
    size = LENGTH_OVERHEAD_BYTES + length
    shallow = ShallowBatch(
        offset, offset, size, magic, attributes & 7, label, time, -1, -1, False, first
    )
    return shallow, crc


def is_valid_legacy(message: memoryview, crc: int) -> bool:
    """Return True if the bytes of a message of magic 0 or 1 have the CRC `crc`."""
    return zlib.crc32(message[16:]) == crc
