"""Positions of the fields in a block of records, for columns, without a `Record` object for each.

```
length · attributes · timestampDelta · offsetDelta · key · value · headers     (see decode.py)

fast      the lengths fit exactly, no offset delta is negative, no bytes after the last record; no
          length above 2^27, no time delta of 2^55 or more
slow      anything else, right or wrong: `records.decode` reads it record by record
```

Only compiled code (`field_kernel.py`, 10 ns a record) is faster at this than making records, so
there is no plain Python version: without compiled code all records take the slow path.

Source: D16.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

#: A record's numbers: offset delta, time delta in ms, where its key starts and ends (exclusive;
#: −1 null), where its value does, and where its number of headers stands.
FIELDS = 7
#: Flags in the kernel's result: what at least one record has, and that all are on the fast path.
KEY, NULL_KEY, NULL_VALUE, HEADERS = 1, 2, 4, 8
_IS_FAST = 16


class Fields(NamedTuple):
    """FIELDS numbers for each record, and flags of the features that at least one record has."""

    numbers: array[int]
    has: int


#: Takes the records' bytes and how many records there are, at least 1; None for records off the
#: fast path.
FieldReader: TypeAlias = Callable[[bytes, int], "Fields | None"]


class FieldTier:
    """The compiled field reader that this process uses, None until it is loaded."""

    read: FieldReader | None = None


def create_field_reader(address: int) -> FieldReader:
    """Return a field reader that calls the code at an address; for one thread."""
    import ctypes

    result = array("q", (0,))
    result_at = ctypes.c_void_p(result.buffer_info()[0])
    # Unlike CFUNCTYPE this keeps the interpreter's lock.
    call = ctypes.PYFUNCTYPE(ctypes.c_int)(address)

    def read(data: bytes, count: int) -> Fields | None:
        """Return the fields of `count` records, None if the code cannot parse one of them."""
        # A record has at least seven bytes, so a wrong count must not allocate a large array.
        if count * 7 > len(data):
            return None
        numbers = array("q", bytes(8 * FIELDS * count))
        out = ctypes.c_void_p(numbers.buffer_info()[0])
        call(result_at, None, data, len(data), count, out)
        verdict = result[0]
        return Fields(numbers, verdict - _IS_FAST) if verdict else None

    return read


def use_fields(reader: FieldReader) -> bool:
    """Use a reader from now on if it is right about the samples; return True if it is."""
    is_right = is_right_about_samples(reader)
    if is_right:
        FieldTier.read = staticmethod(reader)
    return is_right


# length 19, time −3, offset 0, key "k", value of 5, headers ("h", "vv") and ("", null)
_FIRST = bytes.fromhex("26 00 05 00 02 6b 0a 0102030405 04 02 68 04 7676 00 01")
# length 9, time 2^20, offset 3, no key, no value, no headers
_SECOND = bytes.fromhex("12 00 80808001 06 01 01 00")
# length 207, time 0, offset 4, an empty key, a value of 200
_THIRD = bytes.fromhex("9e03 00 00 08 00 9003") + bytes(200) + b"\x00"
_ALL = _FIRST + _SECOND + _THIRD
_NUMBERS = (0, -3, 5, 6, 7, 12, 12, 3, 1 << 20, 28, -1, 29, -1, 29, 4, 0, 36, 36, 38, 238, 238)

#: Blocks, the count of records that is passed with them, and the expected result.
_SAMPLES: tuple[tuple[bytes, int, Fields | None], ...] = (
    (_ALL, 3, Fields(array("q", _NUMBERS), KEY | NULL_KEY | NULL_VALUE | HEADERS)),
    (_THIRD, 1, Fields(array("q", (4, 0, 6, 6, 8, 208, 208)), KEY)),
    (_ALL, 2, None),
    (_FIRST, 2, None),
    (_FIRST[:-1], 1, None),
    (_FIRST[:-1] + b"\x02", 1, None),
    (b"\x14" + _SECOND[1:] + b"\x00", 1, None),
    (b"\xff" * 40, 1, None),
)


def is_right_about_samples(reader: FieldReader) -> bool:
    """Return True if a reader gives the right results for all samples of encoded records."""
    return all(reader(block, count) == expected for block, count, expected in _SAMPLES)
