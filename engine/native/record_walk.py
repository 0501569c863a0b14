"""Check that the records of a magic 2 batch are well-formed, without making `Record` objects.

A leader must check every record that it appends, and nearly all are valid. So this is a fast check
that only finds valid records of the common form:

```
length · attributes · timestampDelta · offsetDelta · key · value · headers     (see decode.py)

fast      the lengths fit exactly, offset deltas are 0, 1, 2 …, as many records as said, no bytes
          after them; no length above 2^27, no time delta of 2^55 or more
slow      anything else, right or wrong: `engine.log.validation` reads it record by record
```

Two versions give the same results: `walk_plainly` takes 1.4 µs a record, and a tenth of that in a
long run of records of the same form (`uniform_run.py`); code compiled from `walk_kernel.py` takes
1 µs a call and 10 ns a record, once `use_compiled` has accepted it. `WalkTier` has the one to use.
Source: `DefaultRecord.readFrom`.

Source: D16.
"""

from __future__ import annotations

from typing import Protocol, TypeAlias

from engine.host.ports import Buffer
from engine.native.multibyte_varint import VARINT_SHIFT_MAX, VARLONG_SHIFT_MAX, multibyte_varint
from engine.native.uniform_run import find_uniform_run

#: Least and greatest timestamp delta in ms, and whether a record has no key; None for records off
#: the fast path.
Walked: TypeAlias = tuple[int, int, bool] | None

_DELTA_MAX = 1 << 62
#: How many records are checked one by one after no uniform run was found, before the next attempt.
_SEARCHED_IN_VAIN = 16


class RecordWalk(Protocol):
    """A version of the check: reads `count` ≥ 1 records from `position` to the end of `data`."""

    def __call__(self, data: Buffer, position: int, count: int) -> Walked:
        """Return the walk over the records, None if they are off the fast path."""


def walk_plainly(data: Buffer, position: int, count: int) -> Walked:  # noqa: C901 (no calls)
    """Check the records in plain Python, without decoding them.

    Return the walk over them, None if a record has an uncommon form, for full decoding. Consecutive
    records of the same form are checked together, in few steps.
    """
    least, greatest, nulls = _DELTA_MAX, -_DELTA_MAX, 0
    index = size_before = search_from = 0
    try:
        while index < count:
            start = position
            raw = data[position]
            position += 1
            if raw > 0x7F:
                raw, position = multibyte_varint(data, position, raw, VARINT_SHIFT_MAX)
            end = -1 if raw & 1 else position + (raw >> 1)
            raw = data[position + 1]
            position += 2
            if raw > 0x7F:
                raw, position = multibyte_varint(data, position, raw, VARLONG_SHIFT_MAX)
            delta = (raw >> 1) ^ -(raw & 1)
            if not least <= delta <= greatest:
                least = delta if delta < least else least
                greatest = delta if delta > greatest else greatest
            raw = data[position]
            position += 1
            if raw > 0x7F:
                raw, position = multibyte_varint(data, position, raw, VARINT_SHIFT_MAX)
            # Offset deltas are compared in their zig-zag form.
            if raw != 2 * index:
                return None
            raw = data[position]
            position += 1
            if raw > 0x7F:
                raw, position = multibyte_varint(data, position, raw, VARINT_SHIFT_MAX)
            nulls |= raw & 1
            position += 0 if raw & 1 else raw >> 1
            raw = data[position]
            position += 1
            if raw > 0x7F:
                raw, position = multibyte_varint(data, position, raw, VARINT_SHIFT_MAX)
            position += 0 if raw & 1 else raw >> 1
            raw = data[position]
            position += 1
            position = _headers_end(data, position, raw) if raw else position
            if position != end:
                return None
            index += 1
            size = position - start
            if size == size_before and search_from <= index < count:
                run = find_uniform_run(data, start, size, index, count - index)
                if run is None:
                    search_from = index + _SEARCHED_IN_VAIN
                else:
                    length, run_least, run_greatest = run
                    index += length
                    position += size * length
                    least, greatest = min(least, run_least), max(greatest, run_greatest)
            size_before = size
    except IndexError:
        return None
    return (least, greatest, nulls == 1) if position == len(data) else None


def _headers_end(data: Buffer, position: int, raw: int) -> int:
    """Return the position after a record's headers; `raw` is the first byte of their number.

    Raises IndexError if the record must be decoded in full.
    """
    if raw > 0x7F:
        raw, position = multibyte_varint(data, position, raw, VARINT_SHIFT_MAX)
    if raw & 1:
        raise IndexError
    for _ in range(raw >> 1):
        raw = data[position]
        position += 1
        if raw > 0x7F:
            raw, position = multibyte_varint(data, position, raw, VARINT_SHIFT_MAX)
        if raw & 1:
            raise IndexError
        position += raw >> 1
        raw = data[position]
        position += 1
        if raw > 0x7F:
            raw, position = multibyte_varint(data, position, raw, VARINT_SHIFT_MAX)
        if not raw & 1:
            position += raw >> 1
    return position


class WalkTier:
    """The version of the check that this process uses."""

    walk: RecordWalk = staticmethod(walk_plainly)


def use_compiled(walk: RecordWalk) -> bool:
    """Use a compiled walk from now on if it is right about the samples; return True if it is."""
    is_right = is_walk_right(walk)
    if is_right:
        WalkTier.walk = staticmethod(walk)
    return is_right


# length 19, time −3, offset 0, key "k", value of 5, headers ("h", "vv") and ("", null)
_FIRST = bytes.fromhex("26 00 05 00 02 6b 0a 0102030405 04 02 68 04 7676 00 01")
# length 9, time 2^20, offset 1, no key, no value, no headers
_SECOND = bytes.fromhex("12 00 80808001 02 01 01 00")
# length 207, time 0, offset 2, an empty key, a value of 200
_THIRD = bytes.fromhex("9e03 00 00 04 00 9003") + bytes(200) + b"\x00"

#: Blocks, the count of records that is passed with them, and the expected result.
_SAMPLES: tuple[tuple[bytes, int, Walked], ...] = (
    (_FIRST, 1, (-3, -3, False)),
    (_FIRST + _SECOND, 2, (-3, 1 << 20, True)),
    (_FIRST + _SECOND + _THIRD, 3, (-3, 1 << 20, True)),
    (_FIRST + _SECOND + _THIRD, 2, None),
    (_FIRST + _SECOND, 3, None),
    (_FIRST + _SECOND[:-1], 2, None),
    (_FIRST + _FIRST, 2, None),
    (_FIRST[:-1] + b"\x02", 1, None),
    (b"\x14" + _SECOND[1:] + b"\x00", 1, None),
    (b"\xff" * 40, 1, None),
)


def is_walk_right(walk: RecordWalk) -> bool:
    """Return True if a walk gives the right results for all samples, at both tested positions."""
    for block, count, expected in _SAMPLES:
        for before in (0, 3):
            if walk(memoryview(bytearray(before) + block), before, count) != expected:
                return False
        if walk(block, 0, count) != expected:
            return False
    return True
