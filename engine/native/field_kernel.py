"""Positions of the fields in a block of records, as source to be compiled; see `record_fields.py`.

    field_kernel(raw, size, count, out) -> 0 off the fast path, else 1 + flags of the block

`raw` points at the first record of a block of `size` bytes; size and count are int32. `out` takes
`FIELDS` numbers a record. The compiled function calls no other. Imported only to compile, because
numba takes half a second to import.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numba
from numba import types

from engine.native.kernel_varint import raw_varint

if TYPE_CHECKING:
    from engine.native.pointers import Bytes, Numbers

_BYTES = types.CPointer(types.uint8)
_NUMBERS = types.CPointer(types.int64)
SIGNATURE = types.int64(_BYTES, types.int32, types.int32, _NUMBERS)

_FIELDS = 7
# Flags of a record; a block has the flags of all its records.
_KEY, _NULL_KEY, _NULL_VALUE, _HEADERS = 1, 2, 4, 8


def field_kernel(  # noqa: C901, PLR0912 (no calls)
    raw: Bytes, size: int, count: int, out: Numbers
) -> int:
    """Find the fields of each record of a decompressed batch, and put their positions into `out`.

    The module docstring has the parameters and the result.
    """
    size = types.int64(size)
    at = types.int64(0)
    slot = types.int64(0)
    seen = types.int64(0)
    for _ in range(types.int64(count)):
        length, at = raw_varint(raw, at, size, 4)
        end = at + (length >> 1)
        # One byte of attributes and five of numbers: an empty record has six.
        if length & 1 or end > size or end - at < 6:
            return 0
        time, at = raw_varint(raw, at + 1, end, 8)
        offset, at = raw_varint(raw, at, end, 4)
        key, at = raw_varint(raw, at, end, 4)
        if offset & 1 or at > end:
            return 0
        out[slot] = offset >> 1
        out[slot + 1] = (time >> 1) ^ -(time & 1)
        out[slot + 2] = at
        if key & 1:
            seen |= _NULL_KEY
            out[slot + 3] = -1
        else:
            seen |= _KEY
            at += key >> 1
            out[slot + 3] = at
        value, at = raw_varint(raw, at, end, 4)
        if at > end:
            return 0
        out[slot + 4] = at
        if value & 1:
            seen |= _NULL_VALUE
            out[slot + 5] = -1
        else:
            at += value >> 1
            out[slot + 5] = at
        out[slot + 6] = at
        headers, at = raw_varint(raw, at, end, 4)
        if headers & 1:
            return 0
        if headers:
            seen |= _HEADERS
        for _ in range(headers >> 1):
            header, at = raw_varint(raw, at, end, 4)
            if header & 1 or at > end:
                return 0
            header, at = raw_varint(raw, at + (header >> 1), end, 4)
            if at > end:
                return 0
            if not header & 1:
                at += header >> 1
        if at != end:
            return 0
        slot += _FIELDS
    if at != size:
        return 0
    return 16 + seen


def compile_kernel() -> tuple[str, str]:
    """Compile `field_kernel`; return its LLVM code and the function's name in that code."""
    compiled = numba.cfunc(SIGNATURE, nopython=True, error_model="numpy")(field_kernel)
    return compiled.inspect_llvm(), compiled.native_name.removeprefix("cfunc.")
