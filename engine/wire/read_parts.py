"""Functions that compiled decoders call for rare cases: long varints, nulls, skipped tags.

Each takes the buffer, the position, and what was read last, and returns the value and the new
position. They refuse without saying where: see `read_source`.
"""

from __future__ import annotations

from typing import TypeAlias

from engine.errors import EngineError
from engine.wire.reader import STRING_BYTES_MAX

Buffer: TypeAlias = bytes | memoryview


class Refused(EngineError):
    """A decoder met a length, count or tag that cannot be right; `Reader` knows which."""


def long_varint(buffer: Buffer, position: int, first: int) -> tuple[int, int]:
    """Finish an unsigned varint whose first byte (≥ 128) is already read."""
    value = first & 0x7F
    for shift in (7, 14, 21, 28):
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise Refused


def array_count(buffer: Buffer, position: int) -> tuple[int, int]:
    """Return the count of a compact array that must not be null, and where its items start."""
    count = buffer[position]
    position += 1
    if count > 127:
        count, position = long_varint(buffer, position, count)
    if not count:
        raise Refused
    return count - 1, position


def compact_string(buffer: Buffer, position: int, end: int, first: int) -> tuple[str, int]:
    """Read a compact string to which the generated fast path does not apply.

    `first` is the first byte of its length: the length may have more bytes, be null or be invalid.
    """
    length = first
    if first > 127:
        length, position = long_varint(buffer, position, first)
    return _string(buffer, position, end, length - 1)


def _string(buffer: Buffer, position: int, end: int, length: int) -> tuple[str, int]:
    """Take a string of a length."""
    stop = position + length
    if not 0 <= length <= STRING_BYTES_MAX or stop > end:
        raise Refused
    return str(buffer[position:stop], "utf-8"), stop


def nullable_compact_string(
    buffer: Buffer, position: int, end: int, first: int
) -> tuple[str | None, int]:
    """Finish a compact string that is null, long, or wrong."""
    length = first
    if first > 127:
        # The shortest form is not asked for: a zero may take several bytes.
        length, position = long_varint(buffer, position, first)
    if length == 0:
        return None, position
    return _string(buffer, position, end, length - 1)


def skip_tags(buffer: Buffer, position: int, end: int, first: int) -> int:
    """Pass over a tagged section of which the struct knows no tag."""
    count = first
    if first > 127:
        count, position = long_varint(buffer, position, first)
    for _ in range(count):
        tag, size = buffer[position], buffer[position + 1]
        position += 1
        if tag > 127:
            tag, position = long_varint(buffer, position, tag)
            size = buffer[position]
        position += 1
        if size > 127:
            size, position = long_varint(buffer, position, size)
        position += size
        if position > end:
            raise Refused
    return position
