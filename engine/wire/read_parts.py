"""Functions that generated decoders call for rare cases: long varints, nulls, skipped tags.

Each takes the buffer, the position and the last byte read, and returns the value and the new
position. They raise Refused without a position: see `read_source`.
"""

from __future__ import annotations

from typing import TypeAlias

from engine.errors import EngineError
from engine.wire.reader import STRING_BYTES_MAX

Buffer: TypeAlias = bytes | memoryview


class Refused(EngineError):
    """A decoder met an impossible length, count or tag; `Reader` then raises the exact error."""


def long_varint(buffer: Buffer, position: int, first: int) -> tuple[int, int]:
    """Decode an unsigned varint whose first byte (≥ 128), before `position`, is `first`.

    Returns the value and the position after it; raises Refused after five bytes.
    """
    value = first & 0x7F
    for shift in (7, 14, 21, 28):
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise Refused


def array_count(buffer: Buffer, position: int) -> tuple[int, int]:
    """Return the count of a compact array, and the position of its items.

    Raise Refused for null.
    """
    count = buffer[position]
    position += 1
    if count > 127:
        count, position = long_varint(buffer, position, count)
    if not count:
        raise Refused
    return count - 1, position


def compact_string(buffer: Buffer, position: int, end: int, first: int) -> tuple[str, int]:
    """Decode a compact string for which the generated code has no fast path.

    `first` is the first byte of its length: the length may have more bytes, be null or be invalid.
    Returns the string and the position after it; raises Refused.
    """
    length = first
    if first > 127:
        length, position = long_varint(buffer, position, first)
    return _string(buffer, position, end, length - 1)


def _string(buffer: Buffer, position: int, end: int, length: int) -> tuple[str, int]:
    """Return the string of `length` bytes at a position, and the position after it.

    Raises Refused for a length that is impossible, or beyond `end`.
    """
    stop = position + length
    if not 0 <= length <= STRING_BYTES_MAX or stop > end:
        raise Refused
    return str(buffer[position:stop], "utf-8"), stop


def nullable_compact_string(
    buffer: Buffer, position: int, end: int, first: int
) -> tuple[str | None, int]:
    """Decode a compact string that may be null, long or invalid; `first` is its first byte."""
    length = first
    if first > 127:
        # Varints need not have the shortest form: a zero may take several bytes.
        length, position = long_varint(buffer, position, first)
    if length == 0:
        return None, position
    return _string(buffer, position, end, length - 1)


def skip_tags(buffer: Buffer, position: int, end: int, first: int) -> int:
    """Return the position after a tagged section whose tags are all unknown.

    `first` is the first byte of the count of tags. Raises Refused.
    """
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
