"""The check of `record_walk.py`, as source to be compiled.

    walk_kernel(raw, size, count, out) -> 0 off the fast path, 1 on it, 2 on it and a key is null

`raw` points at the first record of a block of `size` bytes; size and count are int32. `out` takes
the least and the greatest timestamp delta. The compiled function needs nothing else, not even
numba: it has no calls, no tables and no exceptions, so that its bytes run at any address.
Imported only to compile, because numba takes half a second to import.
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

_U64 = types.uint64
_DELTA_MAX = 1 << 62


@numba.njit(inline="always", error_model="numpy")  # type: ignore[untyped-decorator, unused-ignore]
def _sized_field_end(raw: Bytes, at: int, end: int) -> tuple[int, int]:
    """Return 1 if a field has content (0: null), and its end: beyond `end` if it is truncated."""
    size, at = raw_varint(raw, at, end, 4)
    is_there = 1 - (size & 1)
    return is_there, at + (size >> 1) * is_there


def walk_kernel(raw: Bytes, size: int, count: int, out: Numbers) -> int:
    """Check the records of a decompressed batch; the module docstring has parameters and result."""
    size = types.int64(size)
    at = types.int64(0)
    least = _DELTA_MAX
    greatest = -_DELTA_MAX
    verdict = 1
    for index in range(types.int64(count)):
        length, at = raw_varint(raw, at, size, 4)
        end = at + (length >> 1)
        # One byte of attributes and five of numbers: an empty record has six.
        if length & 1 or end > size or end - at < 6:
            return 0
        time, at = raw_varint(raw, at + 1, end, 8)
        time = (time >> 1) ^ -(time & 1)
        least = min(least, time)
        greatest = max(greatest, time)
        offset, at = raw_varint(raw, at, end, 4)
        if offset != 2 * index:
            return 0
        is_there, at = _sized_field_end(raw, at, end)
        if not is_there:
            verdict = 2
        is_there, at = _sized_field_end(raw, at, end)
        headers, at = raw_varint(raw, at, end, 4)
        if headers & 1:
            return 0
        for _ in range(headers >> 1):
            is_there, at = _sized_field_end(raw, at, end)
            if not is_there or at > end:
                return 0
            is_there, at = _sized_field_end(raw, at, end)
        if at != end:
            return 0
    if at != size:
        return 0
    out[0] = least
    out[1] = greatest
    return verdict


def compile_kernel() -> tuple[str, str]:
    """Compile `walk_kernel`; return its LLVM code and the function's name in that code."""
    compiled = numba.cfunc(SIGNATURE, nopython=True, error_model="numpy")(walk_kernel)
    return compiled.inspect_llvm(), compiled.native_name.removeprefix("cfunc.")
