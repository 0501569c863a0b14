"""A batch of one record that this broker builds itself, as `BatchBuilder` would.

```
OFFSET · LENGTH · LEADER EPOCH · magic · CRC | no attributes, one record · TIME, twice · no producer · SEQUENCE
                                             | SIZE · no attributes, no deltas · key · value · no headers
```

What coordinators write are such batches: offset and leader's epoch are set by the log that takes
it, with one call, and nothing in it needs a check.

Source: `MemoryRecordsBuilder`, `DefaultRecord.writeTo`.
"""  # noqa: E501 - prose

from __future__ import annotations

from struct import Struct
from typing import Final

from engine.records.batch_header import LENGTH_OVERHEAD_BYTES, MAGIC
from engine.records.crc import crc32c
from engine.records.varint import write_varint

#: The sizes whose varints are kept, one's complement of null among them: of keys and values.
_KEPT_SIZES: Final = 1024
#: Length, attributes and both deltas of 0, and the count of no headers.
_FIXED_BYTES: Final = 4
_ATTRIBUTES_AND_DELTAS: Final = bytes(3)
_NO_HEADERS: Final = b"\0"
_NULL: Final = b"\1"

#: Base offset 0, length, leader's epoch −1, magic, checksum.
_PROLOGUE: Final = Struct(">qiibI").pack
#: Attributes, last offset delta, first and largest time, producer id and epoch, sequence, count.
_CHECKED: Final = Struct(">hiqqqhii").pack
_CHECKED_BYTES: Final = Struct(">hiqqqhii").size
_PROLOGUE_REST_BYTES: Final = Struct(">qiibI").size - LENGTH_OVERHEAD_BYTES
#: Sets base offset, length and leader's epoch: `set_place(batch, 0, offset, length, epoch)`.
set_place: Final = Struct(">qii").pack_into


def _varint(number: int) -> bytes:
    out = bytearray()
    write_varint(out, number)
    return bytes(out)


_VARINTS: Final = tuple(map(_varint, range(_KEPT_SIZES)))


def one_record_batch(
    time_ms: int, key: bytes, value: bytes | None, base_sequence: int
) -> bytearray:
    """Return a batch of one record without a codec and a producer, at offset 0.

    `time_ms` is 0 or more; the sequence is an int32. Errors: none for what fits a batch.
    """
    key_bytes = len(key)
    key_varint = _VARINTS[key_bytes] if key_bytes < _KEPT_SIZES else _varint(key_bytes)
    if value is None:
        value_varint, value = _NULL, b""
    else:
        size = len(value)
        value_varint = _VARINTS[size] if size < _KEPT_SIZES else _varint(size)
    body_bytes = len(key_varint) + key_bytes + len(value_varint) + len(value) + _FIXED_BYTES
    checked = b"".join(
        (
            _CHECKED(0, 0, time_ms, time_ms, -1, -1, base_sequence, 1),
            _VARINTS[body_bytes] if body_bytes < _KEPT_SIZES else _varint(body_bytes),
            _ATTRIBUTES_AND_DELTAS,
            key_varint,
            key,
            value_varint,
            value,
            _NO_HEADERS,
        )
    )
    batch = bytearray(_PROLOGUE(0, len(checked) + _PROLOGUE_REST_BYTES, -1, MAGIC, crc32c(checked)))
    batch += checked
    return batch
