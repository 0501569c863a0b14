"""Checks runs of records of the same form by columns of bytes, not record by record.

Producers often send records of one size. Their lengths and attributes then stand at the same
distance from each other, and a slice with that step takes one such byte out of every record:

```
record 7   len len attr TIME off key value value … 0
record 8   len len attr TIME off key value value … 0
           └── alike ─┘      └ the next index        └ no headers, alike
```

A run has equal bytes in these places, times of one or two bytes, and offset deltas that count up.
All other records are left to the walk over single records, which calls this (`record_walk.py`). It
is up to 50 times as fast.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from engine.host.ports import Buffer
from engine.limits import UNIFORM_BLOCKS_KEPT, UNIFORM_RUN_MIN

#: The number of records in a run, and their least and greatest timestamp delta.
UniformRun: TypeAlias = tuple[int, int, int]

#: How many indexes one table of expected bytes covers; deltas of three bytes begin with a table.
_BLOCK = 4096
#: After how many indexes the second byte of a delta changes, and the first index of two bytes.
_STEP = 64
_LOW = bytes(range(0, 2 * _STEP, 2))
_LOW_GOES_ON = bytes(low | 0x80 for low in _LOW)
_ENDS_HERE = bytes(range(0x80))
_GOES_ON = bytes(range(0x80, 0x100))
#: The position of the low byte in a number of two bytes.
_LOW_AT = 0 if sys.byteorder == "little" else 1


class _Shape(NamedTuple):
    """Positions of the fields in a record, from its start on."""

    #: The parts that must be equal in all records of a run.
    alike: tuple[int, ...]
    time_at: int
    time_bytes: int
    offset_at: int
    offset_bytes: int


def find_uniform_run(
    data: Buffer, start: int, size: int, index: int, count: int
) -> UniformRun | None:
    """Return how many records after the one at `start` have its form, and their time deltas.

    `size` is that record's size in bytes, `index` that of the record after it, `count` how many
    more records the batch has. None if too few have that form.
    """
    search_end = start + size * (UNIFORM_RUN_MIN + 1)
    if count < UNIFORM_RUN_MIN or len(data) < search_end:
        return None
    lengths = bytes(data[start:search_end:size])
    if lengths.count(lengths[:1]) != len(lengths):
        return None
    shape = _find_shape(data, start, size)
    if shape is None or _delta_width(index) != shape.offset_bytes:
        return None
    block_end = _STEP if index < _STEP else (index // _BLOCK + 1) * _BLOCK
    count = min(count, block_end - index, (len(data) - start) // size - 1)
    for at in shape.alike:
        # The first of the column is that of the record itself.
        column = bytes(data[start + at : start + at + size * (count + 1) : size])
        count = _prefix(column, column[:1]) - 1
    if count <= 0:
        return None
    expected = _delta_bytes(index // _BLOCK)
    first = index % _BLOCK
    for n in range(shape.offset_bytes):
        at = start + size + shape.offset_at + n
        if bytes(data[at : at + size * count : size]) != expected[n][first : first + count]:
            return None
    return _cut_at_times(data, start + size + shape.time_at, size, count, shape.time_bytes)


def _prefix(column: bytes, allowed: bytes) -> int:
    """Return how many bytes at the start of a column are all among the allowed ones."""
    return len(column) - len(column.lstrip(allowed))


def _cut_at_times(data: Buffer, at: int, size: int, count: int, width: int) -> UniformRun | None:
    """Return the run up to the first timestamp delta whose varint is not `width` (1, 2) bytes long.

    `at` is the position of the first delta, `size` the distance to the next one. None if the first
    one has another width.
    """
    last = bytes(data[at + width - 1 : at + width - 1 + size * count : size])
    count = _prefix(last, _ENDS_HERE)
    if width == 1:
        raw = {last[0]} if count and last.count(last[:1], 0, count) == count else set(last[:count])
    else:
        first = bytes(data[at : at + size * count : size])
        count = _prefix(first, _GOES_ON)
        raw = _extremes(first[:count], last[:count])
    if not raw:
        return None
    deltas = [(value >> 1) ^ -(value & 1) for value in raw]
    return count, min(deltas), max(deltas)


def _extremes(first: bytes, last: bytes) -> set[int]:
    """Return a set of raw two-byte varints that has those of the least and the greatest delta.

    `first` has the first byte of each number, `last` the second.
    """
    joined = bytearray(2 * len(first))
    joined[_LOW_AT::2], joined[1 - _LOW_AT :: 2] = first, last
    numbers = memoryview(joined).cast("H")
    # Zigzag numbers: the even ones are the deltas from 0 up, in the same order.
    is_even = not first.translate(None, _LOW_GOES_ON)
    extremes = {min(numbers), max(numbers)} if is_even and first else set(numbers)
    return {number & 0x7F | number >> 8 << 7 for number in extremes}


def _find_shape(data: Buffer, start: int, size: int) -> _Shape | None:
    """Return the field positions of a valid record, None with headers or a wide time delta."""
    time_at = _after_varint(data, start) + 1
    offset_at = _after_varint(data, time_at)
    key_at = _after_varint(data, offset_at)
    value_at = _after_content(data, key_at)
    end = start + size
    if offset_at - time_at > 2 or _after_content(data, value_at) != end - 1 or data[end - 1]:
        return None
    alike = (
        *range(start, time_at - 1),
        *range(key_at, _after_varint(data, key_at)),
        *range(value_at, _after_varint(data, value_at)),
        end - 1,
    )
    return _Shape(
        tuple(at - start for at in alike),
        time_at - start,
        offset_at - time_at,
        offset_at - start,
        key_at - offset_at,
    )


def _after_varint(data: Buffer, at: int) -> int:
    """Return the position after the varint at `at`."""
    while data[at] > 0x7F:
        at += 1
    return at + 1


def _after_content(data: Buffer, at: int) -> int:
    """Return the position after a length varint and its content; a length of −1 has no content."""
    raw, shift = data[at] & 0x7F, 0
    while data[at] > 0x7F:
        at += 1
        shift += 7
        raw |= (data[at] & 0x7F) << shift
    return at + 1 + (0 if raw & 1 else raw >> 1)


def _delta_width(index: int) -> int:
    """Return the number of bytes in the varint of an offset delta."""
    return max((2 * index).bit_length() + 6, 7) // 7


@lru_cache(maxsize=UNIFORM_BLOCKS_KEPT)
def _delta_bytes(block: int) -> tuple[bytes, ...]:
    """Return the varints of a block's offset deltas as columns: all first bytes, all second, …"""
    start = block * _BLOCK
    end = start + _BLOCK
    first = (_LOW_GOES_ON if start else _LOW) + _LOW_GOES_ON * (_BLOCK // _STEP - 1)
    columns = [first]
    for n in range(1, _delta_width(end - 1)):
        steps = (
            (2 * index >> 7 * n) & 0x7F | (0x80 if n + 1 < _delta_width(index) else 0)
            for index in range(start, end, _STEP)
        )
        columns.append(b"".join(bytes((byte,)) * _STEP for byte in steps))
    return tuple(columns)
