"""A batch of one record that this broker builds itself, as `BatchBuilder` would.

```
OFFSET · LENGTH · LEADER EPOCH · magic · CRC | no attributes, one record · TIME, twice · no producer · SEQUENCE
                                             | SIZE · no attributes, no deltas · key · value · no headers
```

Coordinators write such batches: the log that takes one gives it its place, and nothing in it needs
a check.

Source: `MemoryRecordsBuilder`, `DefaultRecord.writeTo`.
"""  # noqa: E501 - prose

from __future__ import annotations

from struct import Struct
from typing import Final

from engine.records.batch_header import LENGTH_OVERHEAD_BYTES, MAGIC
from engine.records.crc import crc32c
from engine.records.varint import write_varint

#: Varints of key and value sizes below this are computed in advance.
_KEPT_SIZES: Final = 1024
#: Length, attributes and both deltas of 0, and the count of no headers.
_FIXED_BYTES: Final = 4
_ATTRIBUTES_AND_DELTAS: Final = bytes(3)
_NO_HEADERS: Final = b"\0"
_NULL: Final = b"\1"

#: Packs base offset, length, leader epoch, magic, checksum.
_PROLOGUE: Final = Struct(">qiibI")
_PROLOGUE_BYTES: Final = _PROLOGUE.size
_pack_prologue: Final = _PROLOGUE.pack
_PROLOGUE_REST_BYTES: Final = _PROLOGUE_BYTES - LENGTH_OVERHEAD_BYTES
#: Packs attributes, last offset delta, base and maximum timestamp, producer id and epoch, sequence,
#: record count.
_pack_checked: Final = Struct(">hiqqqhii").pack


def _varint(number: int) -> bytes:
    """Return a number as a zigzag varint; for sizes too large for the table `_VARINTS`."""
    out = bytearray()
    write_varint(out, number)
    return bytes(out)


_VARINTS: Final = tuple(map(_varint, range(_KEPT_SIZES)))


def encode_record(time_ms: int, key: bytes, value: bytes | None, base_sequence: int) -> bytes:
    """Return the checksummed bytes of a batch with one record, without codec and producer.

    `time_ms` is 0 or more; the sequence is an int32. The record must fit into a batch.
    """
    key_bytes = len(key)
    key_varint = _VARINTS[key_bytes] if key_bytes < _KEPT_SIZES else _varint(key_bytes)
    if value is None:
        value_varint, value = _NULL, b""
    else:
        size = len(value)
        value_varint = _VARINTS[size] if size < _KEPT_SIZES else _varint(size)
    body_bytes = len(key_varint) + key_bytes + len(value_varint) + len(value) + _FIXED_BYTES
    return b"".join(
        (
            _pack_checked(0, 0, time_ms, time_ms, -1, -1, base_sequence, 1),
            _VARINTS[body_bytes] if body_bytes < _KEPT_SIZES else _varint(body_bytes),
            _ATTRIBUTES_AND_DELTAS,
            key_varint,
            key,
            value_varint,
            value,
            _NO_HEADERS,
        )
    )


def one_record_batch(base_offset: int, leader_epoch: int, record: bytes) -> bytes:
    """Return a complete batch: the prologue with its CRC-32C, then `encode_record`'s bytes."""
    length = len(record) + _PROLOGUE_REST_BYTES
    return _pack_prologue(base_offset, length, leader_epoch, MAGIC, crc32c(record)) + record


def batch_bytes(record: bytes) -> int:
    """Return the size in bytes that `one_record_batch` makes of the bytes of `encode_record`."""
    return len(record) + _PROLOGUE_BYTES
