"""Count of records from batch headers, as source to be compiled; `header_counts.py` calls it.

    count_kernel(raw, numbers, numbers) -> 1

`raw` has room for one header, `numbers` are the slots of COUNT. Only the header of each batch is
read, with `pread`, whose address is in a slot; if the file is truncated meanwhile, the count ends
there. Imported only to compile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numba
from numba import types

from engine.native.header_counts import COUNT, HEADER_BYTES
from engine.native.kernel_numbers import int16_at, int32_at, int64_at
from engine.native.raw_calls import read_through

if TYPE_CHECKING:
    from engine.native.pointers import Bytes, Numbers

_NUMBERS = types.CPointer(types.int64)
SIGNATURE = types.int64(types.CPointer(types.uint8), _NUMBERS, _NUMBERS)

_I64 = types.int64
(_PREAD, _DESCRIPTOR, _LIMIT, _FILE_END, _PASSES_CONTROL, _FRAMES_MAX, _POSITION, _NEXT_OFFSET,
 _EPOCH, _RECORD_COUNT, _IS_ODD, _LAST_POSITION, _LAST_COUNT, _BEFORE_POSITION,
 _BEFORE_COUNT) = range(len(COUNT))  # fmt: skip
_HEADER, _OVERHEAD, _MAGIC = HEADER_BYTES, 12, 2
_LAST_CODEC, _CODEC_BITS, _CONTROL = 4, 7, 32
_OFFSET_MAX = 1 << 62


def count_kernel(raw: Bytes, numbers: Numbers, _unused: Numbers) -> int:
    """Count the records of batches that follow each other by offset, from their headers alone.

    Stops at the limit, or before an odd batch (one that this code cannot count), and puts the
    results into `numbers`. Returns 1.
    """
    position = numbers[_POSITION]
    next_offset = numbers[_NEXT_OFFSET]
    epoch = numbers[_EPOCH]
    records = _I64(0)
    found = _I64(0)
    is_odd = _I64(0)
    while found < numbers[_FRAMES_MAX] and position < numbers[_LIMIT]:
        got = read_through(numbers[_PREAD], numbers[_DESCRIPTOR], raw, _I64(_HEADER), position)
        if got != _HEADER:
            is_odd = _I64(1)
            break
        length = int32_at(raw, 8)
        last_delta = int32_at(raw, 23)
        attributes = int16_at(raw, 21)
        if (
            length < _HEADER - _OVERHEAD
            or length > numbers[_FILE_END] - position - _OVERHEAD
            or int64_at(raw, 0) != next_offset
            or int32_at(raw, 12) < epoch
            or raw[16] != _MAGIC
            or attributes & _CODEC_BITS > _LAST_CODEC
            or last_delta < 0
            or int32_at(raw, 57) != last_delta + 1
            or next_offset >= _OFFSET_MAX
        ):
            is_odd = _I64(1)
            break
        epoch = int32_at(raw, 12)
        count = _I64(0)
        if not (attributes & _CONTROL and numbers[_PASSES_CONTROL]):
            count = last_delta + 1
        records += count
        numbers[_BEFORE_POSITION] = numbers[_LAST_POSITION]
        numbers[_BEFORE_COUNT] = numbers[_LAST_COUNT]
        numbers[_LAST_POSITION] = position
        numbers[_LAST_COUNT] = count
        next_offset += last_delta + 1
        position += length + _OVERHEAD
        found += 1
    numbers[_POSITION] = position
    numbers[_NEXT_OFFSET] = next_offset
    numbers[_EPOCH] = epoch
    numbers[_RECORD_COUNT] = records
    numbers[_IS_ODD] = is_odd
    return 1


def compile_count_kernel() -> tuple[str, str]:
    """Compile `count_kernel`; return its LLVM code and the function's name in that code."""
    compiled = numba.cfunc(SIGNATURE, nopython=True, error_model="numpy")(count_kernel)
    return compiled.inspect_llvm(), compiled.native_name.removeprefix("cfunc.")
