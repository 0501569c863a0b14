"""The header of a record batch: functions that read or set its fields.

```
 0 int64 baseOffset        16 int8  magic (2)             35 int64 maxTimestamp
 8 int32 batchLength       17 int32 crc (unsigned)        43 int64 producerId
12 int32 leaderEpoch       21 int16 attributes            51 int16 producerEpoch
                           23 int32 lastOffsetDelta       53 int32 baseSequence
                           27 int64 baseTimestamp         57 int32 records count     61 records
```

The length counts the bytes after it, so a batch is 12 bytes larger. The checksum covers all bytes
from the attributes on. Base offset, length and magic are at the same positions in older formats.

The functions read at a position of a buffer and create no object, because logs are scanned with
them. `batch.BatchView` names the fields.
"""

from __future__ import annotations

import struct
from typing import Final

MAGIC: Final = 2
#: Bytes before and including the length field, which the length does not count.
LENGTH_OVERHEAD_BYTES: Final = 12
#: Bytes up to and including the magic, which determine a batch's size and format.
PROLOGUE_BYTES: Final = 17
#: Bytes up to and including the last offset delta.
HEADER_UP_TO_DELTA_BYTES: Final = 27
HEADER_BYTES: Final = 61

LENGTH_AT: Final = 8
LEADER_EPOCH_AT: Final = 12
MAGIC_AT: Final = 16
CRC_AT: Final = 17
CHECKED_FROM: Final = 21

CODEC_BITS: Final = 0x07
APPEND_TIME_FLAG: Final = 0x08
TRANSACTIONAL_FLAG: Final = 0x10
CONTROL_FLAG: Final = 0x20
DELETE_HORIZON_FLAG: Final = 0x40
KNOWN_FLAGS: Final = 0x7F

_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
_INT32: Final = struct.Struct(">i")
_DELTA_AT: Final = 23

#: Base offset, length, leader epoch, magic, crc, attributes, last offset delta, base timestamp,
#: max timestamp, producer id, producer epoch, base sequence, count of records.
read_header: Final = _HEADER.unpack_from
#: Packs the same fields in the same order.
write_header: Final = _HEADER.pack_into
#: The same up to the last offset delta.
read_header_start: Final = struct.Struct(">qiibIhi").unpack_from
#: Base offset, length, leader epoch, magic, attributes, last offset delta, count of records.
read_counts: Final = struct.Struct(">qiib4xhi30xi").unpack_from
#: Base offset, length and magic.
read_prologue: Final = struct.Struct(">qi4xb").unpack_from
#: Base offset and length.
read_offset_and_length: Final = struct.Struct(">qi").unpack_from
#: Length, magic and the lower byte of the attributes.
read_kind: Final = struct.Struct(">8xi4xb5xB").unpack_from

_pack_int16 = struct.Struct(">h").pack_into
_pack_uint32 = struct.Struct(">I").pack_into
_pack_int64 = struct.Struct(">q").pack_into
_unpack_int32 = _INT32.unpack_from
_Read = bytes | bytearray | memoryview
_Written = bytearray | memoryview

#: Sets the base offset of the batch at a position: `set_base_offset(buffer, position, offset)`.
set_base_offset: Final = _pack_int64
#: Sets the leader epoch: `set_leader_epoch(buffer, position + LEADER_EPOCH_AT, epoch)`. This and
#: `set_base_offset` run for every produced batch, so they avoid the cost of a Python function.
set_leader_epoch: Final = _INT32.pack_into
#: Sets base offset, length and leader epoch at once, for a batch whose length is known:
#: `set_place(buffer, position, base_offset, length, leader_epoch)`.
set_place: Final = struct.Struct(">qii").pack_into


def read_length(buffer: _Read, position: int) -> int:
    """Return the length field of the batch at a position."""
    length: int
    (length,) = _unpack_int32(buffer, position + LENGTH_AT)
    return length


def read_last_offset_delta(buffer: _Read, position: int) -> int:
    """Return the last offset delta of the batch of magic 2 at a position."""
    delta: int
    (delta,) = _unpack_int32(buffer, position + _DELTA_AT)
    return delta


def set_crc(buffer: _Written, position: int, crc: int) -> None:
    """Set the checksum of the batch at a position, unsigned."""
    _pack_uint32(buffer, position + CRC_AT, crc)


def set_attributes(buffer: _Written, position: int, attributes: int) -> None:
    """Set the attributes of the batch at a position; the checksum must be set again."""
    _pack_int16(buffer, position + CHECKED_FROM, attributes)


def set_max_timestamp(buffer: _Written, position: int, timestamp_ms: int) -> None:
    """Set the largest timestamp of the batch at a position; the checksum must be set again."""
    _pack_int64(buffer, position + 35, timestamp_ms)
