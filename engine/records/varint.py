"""Zig-zag variable-length integers, as record batches of magic 2 use them.

```
byte      1 b b b b b b b   seven bits, low group first; the high bit says that more follow
varint    at most 5 bytes, an int32;  varlong  at most 10 bytes, an int64
zig-zag   0 → 0, -1 → 1, 1 → 2, -2 → 3, …
```

Bits above the width are dropped, as Kafka does. Source: `ByteUtils`.
"""

from __future__ import annotations

from engine.errors import CorruptRecord
from engine.host.ports import Buffer

_VARINT_BYTES = 5
_VARLONG_BYTES = 10


class VarintTruncated(CorruptRecord):
    """The bytes end inside a variable-length integer."""


class VarintTooLong(CorruptRecord):
    """A variable-length integer continues after its largest number of bytes."""


def read_varint(buffer: Buffer, position: int) -> tuple[int, int]:
    """Decode the zigzag varint of an int32 at a position; return it and the position after it.

    Raises VarintTruncated and VarintTooLong.
    """
    raw, end = _read_unsigned(buffer, position, _VARINT_BYTES)
    value = ((raw & 0xFFFFFFFF) >> 1) ^ -(raw & 1)
    return value, end


def read_varlong(buffer: Buffer, position: int) -> tuple[int, int]:
    """Decode the zigzag varint of an int64 at a position; return it and the position after it.

    Raises VarintTruncated and VarintTooLong.
    """
    raw, end = _read_unsigned(buffer, position, _VARLONG_BYTES)
    value = ((raw & 0xFFFFFFFFFFFFFFFF) >> 1) ^ -(raw & 1)
    return value, end


def _read_unsigned(buffer: Buffer, position: int, length_max: int) -> tuple[int, int]:
    """Read an unsigned varint of at most `length_max` bytes; return it and the next position."""
    value = 0
    size = len(buffer)
    for index in range(length_max):
        at = position + index
        if at >= size:
            raise VarintTruncated("a variable-length integer", "the end of the data", position=at)
        byte = buffer[at]
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value, at + 1
    raise VarintTooLong(
        f"an integer of at most {length_max} bytes", "one that goes on", position=position
    )


def write_varint(out: bytearray, value: int) -> None:
    """Append an int32 or int64 as a zigzag varint; the encoding of both is the same."""
    raw = (value << 1) ^ (value >> 63)
    while raw >= 0x80:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)


def size_of_varint(value: int) -> int:
    """Return the number of bytes that `write_varint` appends for the value."""
    raw = (value << 1) ^ (value >> 63)
    return (raw.bit_length() + 6) // 7 or 1
