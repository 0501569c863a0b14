"""Runs of batches, and their records put into columns, as source to be compiled.

    find_kernel(raw, numbers, frames) -> 1
    fill_kernel(raw, numbers, frames) -> DONE, FULL, COMPRESSED or ODD

`raw` points at a buffer, `numbers` at the slots of FIND or FILL, `frames` at those of FRAME for
each batch (`run_layout.py`). No byte outside the buffer is read, and none outside the given columns
is written: a batch must lie in its buffer, a record in its batch, a field in its record, and a
batch is started only if all its bytes would fit into each column.

Each compiled function calls nothing but `memcpy`, by the address in `numbers`. `batch_runs.py`
calls them. Imported only to compile, because numba takes half a second to import.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numba
from numba import types

from engine.native.kernel_numbers import int16_at, int32_at, int64_at
from engine.native.kernel_varint import raw_varint
from engine.native.raw_memory import (
    bytes_at,
    copy_through,
    load_eight,
    numbers_at,
    prefetch,
    put_eight,
    words_at,
)
from engine.native.run_layout import (
    COMPRESSED,
    DONE,
    FILL,
    FIND,
    FRAME,
    FULL,
    HEADERS,
    KEYS,
    NO_SCHEMA_ID,
    ODD,
    SCHEMA_IDS,
    VALUES,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from numba.core.registry import CPUDispatcher as Dispatcher

    from engine.native.pointers import Bytes, Numbers

_BYTES = types.CPointer(types.uint8)
_NUMBERS = types.CPointer(types.int64)
SIGNATURE = types.int64(_BYTES, _NUMBERS, _NUMBERS)

_I32 = types.int32
_I64 = types.int64
_KEYS, _VALUES, _SCHEMA_IDS, _HEADERS = KEYS, VALUES, SCHEMA_IDS, HEADERS
_DONE, _FULL, _COMPRESSED, _ODD = DONE, FULL, COMPRESSED, ODD
_NO_SCHEMA_ID = NO_SCHEMA_ID
# Compiled code sees plain numbers only, so the names are taken apart here.
(_START, _SIZE, _CRC, _ATTRIBUTES, _LAST_DELTA, _BASE_OFFSET, _BASE_MS, _MAX_MS, _PRODUCER_ID,
 _PRODUCER_EPOCH, _BASE_SEQUENCE, _COUNT, _POSITION, _EPOCH, _IS_PASSED,
 _ROWS) = range(len(FRAME))  # fmt: skip
_FRAME = len(FRAME)
(_D_SIZE, _D_AT, _D_LIMIT, _D_FILE_POSITION, _D_EPOCH, _D_FRAMES_MAX, _D_PASSES_CONTROL,
 _D_NEXT_OFFSET, _D_FRAME_COUNT, _D_END, _D_IS_COMPACTED,
 _D_RECORD_COUNT) = range(len(FIND))  # fmt: skip
(_L_FRAME, _L_FRAME_COUNT, _L_SIZE, _L_TAKES,
 _L_FIRST_OFFSET, _L_LAST_OFFSET, _L_FIRST_MS, _L_LAST_MS,
 _L_ROWS_MAX, _L_BYTES_MAX, _L_HEADERS_MAX,
 _L_ROWS, _L_KEY_BYTES, _L_VALUE_BYTES, _L_HEADERS, _L_NAME_BYTES, _L_CONTENT_BYTES,
 _L_KEY_NULLS, _L_VALUE_NULLS, _L_CONTENT_NULLS, _L_LEAST_MS, _L_MOST_MS,
 _L_NEW_HEADERS, _L_NEW_NAME_BYTES, _L_NEW_CONTENT_BYTES, _L_NEW_CONTENT_NULLS,
 _L_MEMCPY, _L_OFFSETS, _L_TIMES, _L_KEY_SIZES, _L_VALUE_SIZES, _L_SCHEMA_IDS,
 _L_KEYS, _L_KEY_ENDS, _L_VALUES, _L_VALUE_ENDS,
 _L_HEADER_ENDS, _L_NAMES, _L_NAME_ENDS, _L_CONTENTS, _L_CONTENT_ENDS,
 _L_CONTENT_SIZES) = range(len(FILL))  # fmt: skip

_HEADER_BYTES, _OVERHEAD_BYTES, _MAGIC = 61, 12, 2
_LAST_CODEC, _CODEC_BITS = 4, 7
_APPEND_TIME, _CONTROL, _DELETE_HORIZON = 8, 32, 64
_RECORD_BYTES_MIN = 7
# As in `records.decode`: sums of a base and any delta are int64 below this.
_PLAIN_BASE_MAX = 1 << 62
_NO_TIMESTAMP = -1
_SHORT_BYTES = 16
# How many bytes ahead of a copy its target is prefetched, because it is no longer in the cache.
_AHEAD_BYTES = 4096


def _inlined(function: Callable[..., object]) -> Dispatcher:
    """Decorate a helper so that numba compiles it into each caller.

    The kernel then has no calls.
    """
    return numba.njit(inline="always", error_model="numpy")(function)


def find_kernel(raw: Bytes, numbers: Numbers, frames: Numbers) -> int:
    """Find complete batches of magic 2 that follow each other by offset, of one leader epoch.

    Puts the FRAME of each into `frames`, and where it stopped into `numbers`. Returns 1.
    """
    size = numbers[_D_SIZE]
    at = numbers[_D_AT]
    epoch = numbers[_D_EPOCH]
    next_offset = numbers[_D_NEXT_OFFSET]
    records = _I64(0)
    is_compacted = _I64(0)
    found = _I64(0)
    slot = _I64(0)
    while found < numbers[_D_FRAMES_MAX] and at < numbers[_D_LIMIT]:
        if size - at < _HEADER_BYTES:
            break
        length = int32_at(raw, at + 8)
        if length < _HEADER_BYTES - _OVERHEAD_BYTES or length > size - at - _OVERHEAD_BYTES:
            break
        base_offset = int64_at(raw, at)
        if base_offset != next_offset or int32_at(raw, at + 12) != epoch or raw[at + 16] != _MAGIC:
            break
        attributes = int16_at(raw, at + 21)
        last_delta = int32_at(raw, at + 23)
        base_ms = int64_at(raw, at + 27)
        count = int32_at(raw, at + 57)
        if attributes & _CODEC_BITS > _LAST_CODEC or last_delta < 0 or count < 1:
            break
        if base_offset < 0 or base_offset >= _PLAIN_BASE_MAX:
            break
        if base_ms >= _PLAIN_BASE_MAX or base_ms <= -_PLAIN_BASE_MAX:
            break
        frames[slot + _START] = at
        frames[slot + _SIZE] = length + _OVERHEAD_BYTES
        frames[slot + _CRC] = int32_at(raw, at + 17) & 0xFFFFFFFF
        frames[slot + _ATTRIBUTES] = attributes
        frames[slot + _LAST_DELTA] = last_delta
        frames[slot + _BASE_OFFSET] = base_offset
        frames[slot + _BASE_MS] = base_ms
        frames[slot + _MAX_MS] = int64_at(raw, at + 35)
        frames[slot + _PRODUCER_ID] = int64_at(raw, at + 43)
        frames[slot + _PRODUCER_EPOCH] = int16_at(raw, at + 51)
        frames[slot + _BASE_SEQUENCE] = int32_at(raw, at + 53)
        frames[slot + _COUNT] = count
        frames[slot + _POSITION] = numbers[_D_FILE_POSITION] + at
        frames[slot + _EPOCH] = epoch
        is_passed = _I64(0)
        if attributes & _CONTROL and numbers[_D_PASSES_CONTROL]:
            is_passed = _I64(1)
        frames[slot + _IS_PASSED] = is_passed
        frames[slot + _ROWS] = 0
        if attributes & _DELETE_HORIZON or count <= last_delta:
            is_compacted = _I64(1)
        records += count
        next_offset = base_offset + last_delta + 1
        at += length + _OVERHEAD_BYTES
        found += 1
        slot += _FRAME
    numbers[_D_NEXT_OFFSET] = next_offset
    numbers[_D_FRAME_COUNT] = found
    numbers[_D_END] = at
    numbers[_D_IS_COMPACTED] = is_compacted
    numbers[_D_RECORD_COUNT] = records
    return 1


@_inlined
def _is_passed_over(numbers: Numbers, frames: Numbers, slot: int) -> int:
    """Return 1 if a batch is marked or its header excludes wanted records, else 0.

    See `narrowing.can_have`.
    """
    max_ms = frames[slot + _MAX_MS]
    base_offset = frames[slot + _BASE_OFFSET]
    has_one_time = _I64(0)
    if frames[slot + _ATTRIBUTES] & _APPEND_TIME or (
        frames[slot + _COUNT] == 1 and max_ms != _NO_TIMESTAMP
    ):
        has_one_time = _I64(1)
    is_passed = _I64(0)
    if (
        frames[slot + _IS_PASSED]
        or base_offset + frames[slot + _LAST_DELTA] < numbers[_L_FIRST_OFFSET]
        or base_offset > numbers[_L_LAST_OFFSET]
        or max_ms < numbers[_L_FIRST_MS]
        or (has_one_time and max_ms > numbers[_L_LAST_MS])
    ):
        is_passed = _I64(1)
    return is_passed


@_inlined
def _copy(
    memcpy: int, raw: Bytes, start: int, size: int, readable: int, target: Bytes, at: int
) -> int:
    """Copy a field to `target[at]`, nothing for a size of -1; return its end in the target.

    Up to 16 bytes after that end may be overwritten; the target has room for them.
    """
    if size <= _SHORT_BYTES and start + _SHORT_BYTES <= readable:
        put_eight(target, at, load_eight(raw, start))
        put_eight(target, at + 8, load_eight(raw, start + 8))
    else:
        ahead = _I64(0)
        while ahead < size:
            prefetch(target, at + _AHEAD_BYTES + ahead)
            ahead += 64
        copy_through(memcpy, target, at, raw, start, max(size, 0))
    return at + max(size, 0)


@_inlined
def _read_varint(raw: Bytes, at: int, end: int) -> tuple[int, int]:
    """Return the same as `raw_varint`, faster for numbers of one byte."""
    value = _I64(0)
    behind = end + 1
    if at < end:
        value = _I64(raw[at])
        behind = at + 1
        if value > 127:
            value, behind = raw_varint(raw, at, end, 4)
    return value, behind


@_inlined
def _read_sized(raw: Bytes, at: int, end: int) -> tuple[int, int, int]:
    """Return the start of a length-prefixed field, its size (-1 for null), the position after it.

    For a truncated field the position is beyond `end`, as it is for all later fields.
    """
    size, start = _read_varint(raw, at, end)
    behind = start
    if size & 1:
        size = _I64(-1)
    else:
        size >>= 1
        behind = start + size
    return start, size, behind


@_inlined
def _read_record(
    raw: Bytes, at: int, batch_end: int
) -> tuple[int, int, int, int, int, int, int, int]:
    """Return the end of a record (0 if this code cannot parse it) and its fields.

    These are timestamp and offset deltas, start and size of key and value, and the position of the
    number of headers.
    """
    length, at = _read_varint(raw, at, batch_end)
    end = at + (length >> 1)
    is_fast = _I64(1)
    # One byte of attributes and five of numbers: an empty record has six.
    if length & 1 or end > batch_end or end - at < 6:
        is_fast = _I64(0)
        end = at
    time, at = raw_varint(raw, at + 1, end, 8)
    delta, at = _read_varint(raw, at, end)
    key_start, key_size, at = _read_sized(raw, at, end)
    value_start, value_size, at = _read_sized(raw, at, end)
    if delta & 1 or at > end or not is_fast:
        end = _I64(0)
    time = (time >> 1) ^ -(time & 1)
    return end, time, delta >> 1, key_start, key_size, value_start, value_size, at


@_inlined
def _copy_headers(raw: Bytes, at: int, end: int, takes: int, numbers: Numbers) -> int:
    """Parse a record's headers, and copy them to the columns if `takes` is not 0.

    Returns the position after them, 0 if this code cannot parse them. The copied bytes count only
    once the whole batch is copied.
    """
    count, at = _read_varint(raw, at, end)
    if count & 1:
        at = end + 1
    memcpy = numbers[_L_MEMCPY]
    readable = numbers[_L_SIZE]
    left = count >> 1
    while left > 0 and at <= end:
        name_start, name_size, at = _read_sized(raw, at, end)
        content_start, content_size, at = _read_sized(raw, at, end)
        if name_size < 0:
            at = end + 1
        if takes and at <= end:
            header = numbers[_L_NEW_HEADERS]
            names = bytes_at(numbers[_L_NAMES])
            contents = bytes_at(numbers[_L_CONTENTS])
            name_bytes = numbers[_L_NEW_NAME_BYTES]
            content_bytes = numbers[_L_NEW_CONTENT_BYTES]
            name_bytes = _copy(memcpy, raw, name_start, name_size, readable, names, name_bytes)
            content_bytes = _copy(
                memcpy, raw, content_start, content_size, readable, contents, content_bytes
            )
            numbers[_L_NEW_CONTENT_NULLS] += content_size < 0
            words_at(numbers[_L_CONTENT_SIZES])[header] = _I32(content_size)
            words_at(numbers[_L_NAME_ENDS])[header + 1] = _I32(name_bytes)
            words_at(numbers[_L_CONTENT_ENDS])[header + 1] = _I32(content_bytes)
            numbers[_L_NEW_HEADERS] = header + 1
            numbers[_L_NEW_NAME_BYTES] = name_bytes
            numbers[_L_NEW_CONTENT_BYTES] = content_bytes
        left -= 1
    if at > end:
        at = _I64(0)
    return at


@_inlined
def _has_room(numbers: Numbers, count: int, payload: int) -> int:
    """Return 1 if the columns have room for a batch, even one of only keys or only values.

    Else 0.
    """
    takes = numbers[_L_TAKES]
    most = numbers[_L_BYTES_MAX] - payload
    has_room = _I64(1)
    if (
        numbers[_L_ROWS] + count > numbers[_L_ROWS_MAX]
        or (takes & _KEYS and numbers[_L_KEY_BYTES] > most)
        or (takes & _VALUES and numbers[_L_VALUE_BYTES] > most)
    ):
        has_room = _I64(0)
    if takes & _HEADERS and (
        numbers[_L_NAME_BYTES] > most
        or numbers[_L_CONTENT_BYTES] > most
        or numbers[_L_HEADERS] + payload // 2 > numbers[_L_HEADERS_MAX]
    ):
        has_room = _I64(0)
    return has_room


@_inlined
def _is_wanted(numbers: Numbers, offset: int, time_ms: int) -> int:
    """Return 1 if offset and time (ms) are in the wanted range, ends inclusive, else 0."""
    return _I64(
        numbers[_L_FIRST_OFFSET] <= offset <= numbers[_L_LAST_OFFSET]
        and numbers[_L_FIRST_MS] <= time_ms <= numbers[_L_LAST_MS]
    )


@_inlined
def _put_schema_id(raw: Bytes, start: int, size: int, numbers: Numbers, row: int) -> None:
    """Put a value's schema id into its row: the int32 after a zero byte, if the value starts so.

    Any other value gets _NO_SCHEMA_ID.
    """
    schema_id = _I64(_NO_SCHEMA_ID)
    if size >= 5 and raw[start] == 0:
        schema_id = int32_at(raw, start + 1)
    numbers_at(numbers[_L_SCHEMA_IDS])[row] = schema_id


@_inlined
def _take_batch(  # noqa: PLR0915 (no calls)
    raw: Bytes, numbers: Numbers, frames: Numbers, slot: int
) -> int:
    """Append the wanted records of a batch to the columns.

    Returns 1; 0 if this code cannot parse the batch, whose records then do not count.
    """
    readable = numbers[_L_SIZE]
    takes = numbers[_L_TAKES]
    memcpy = numbers[_L_MEMCPY]
    offsets = numbers_at(numbers[_L_OFFSETS])
    times = numbers_at(numbers[_L_TIMES])
    key_sizes = words_at(numbers[_L_KEY_SIZES])
    value_sizes = words_at(numbers[_L_VALUE_SIZES])
    keys = bytes_at(numbers[_L_KEYS])
    key_ends = words_at(numbers[_L_KEY_ENDS])
    values = bytes_at(numbers[_L_VALUES])
    value_ends = words_at(numbers[_L_VALUE_ENDS])
    row = numbers[_L_ROWS]
    key_bytes = numbers[_L_KEY_BYTES]
    value_bytes = numbers[_L_VALUE_BYTES]
    least_ms = numbers[_L_LEAST_MS]
    most_ms = numbers[_L_MOST_MS]
    key_nulls = _I64(0)
    value_nulls = _I64(0)
    is_append_time = frames[slot + _ATTRIBUTES] & _APPEND_TIME
    at = frames[slot + _START] + _HEADER_BYTES
    batch_end = frames[slot + _START] + frames[slot + _SIZE]
    left = frames[slot + _COUNT]
    while left > 0:
        end, time_ms, offset, key_start, key_size, value_start, value_size, at = _read_record(
            raw, at, batch_end
        )
        if end == 0:
            break
        offset += frames[slot + _BASE_OFFSET]
        time_ms += frames[slot + _BASE_MS]
        if is_append_time:
            time_ms = frames[slot + _MAX_MS]
        is_wanted = _is_wanted(numbers, offset, time_ms)
        at = _copy_headers(raw, at, end, takes & _HEADERS * is_wanted, numbers)
        if at != end:
            break
        left -= 1
        if is_wanted:
            offsets[row] = offset
            times[row] = time_ms
            least_ms = min(least_ms, time_ms)
            most_ms = max(most_ms, time_ms)
            key_sizes[row] = _I32(key_size)
            value_sizes[row] = _I32(value_size)
            key_nulls += key_size < 0
            value_nulls += value_size < 0
            row += 1
            if takes & _KEYS:
                key_bytes = _copy(memcpy, raw, key_start, key_size, readable, keys, key_bytes)
                key_ends[row] = _I32(key_bytes)
            if takes & _VALUES:
                value_bytes = _copy(
                    memcpy, raw, value_start, value_size, readable, values, value_bytes
                )
                value_ends[row] = _I32(value_bytes)
            if takes & _SCHEMA_IDS:
                _put_schema_id(raw, value_start, value_size, numbers, row - 1)
            if takes & _HEADERS:
                words_at(numbers[_L_HEADER_ENDS])[row] = _I32(numbers[_L_NEW_HEADERS])
    is_fast = _I64(left == 0 and at == batch_end)
    if is_fast:
        frames[slot + _ROWS] = row - numbers[_L_ROWS]
        numbers[_L_ROWS] = row
        numbers[_L_KEY_BYTES] = key_bytes
        numbers[_L_VALUE_BYTES] = value_bytes
        numbers[_L_KEY_NULLS] += key_nulls
        numbers[_L_VALUE_NULLS] += value_nulls
        numbers[_L_LEAST_MS] = least_ms
        numbers[_L_MOST_MS] = most_ms
    return is_fast


def fill_kernel(raw: Bytes, numbers: Numbers, frames: Numbers) -> int:
    """Put the wanted records of batches into columns; return why it stopped, such as _FULL.

    See the module docstring.
    """
    while numbers[_L_FRAME] < numbers[_L_FRAME_COUNT]:
        slot = numbers[_L_FRAME] * _FRAME
        frames[slot + _ROWS] = 0
        if not _is_passed_over(numbers, frames, slot):
            if frames[slot + _ATTRIBUTES] & _CODEC_BITS:
                return _COMPRESSED
            start = frames[slot + _START] + _HEADER_BYTES
            size = frames[slot + _SIZE] - _HEADER_BYTES
            count = frames[slot + _COUNT]
            if start < 0 or count < 1 or size < 0 or start + size > numbers[_L_SIZE]:
                return _ODD
            if count > size // _RECORD_BYTES_MIN:
                return _ODD
            if not _has_room(numbers, count, size):
                return _FULL
            numbers[_L_NEW_HEADERS] = numbers[_L_HEADERS]
            numbers[_L_NEW_NAME_BYTES] = numbers[_L_NAME_BYTES]
            numbers[_L_NEW_CONTENT_BYTES] = numbers[_L_CONTENT_BYTES]
            numbers[_L_NEW_CONTENT_NULLS] = numbers[_L_CONTENT_NULLS]
            if not _take_batch(raw, numbers, frames, slot):
                return _ODD
            numbers[_L_HEADERS] = numbers[_L_NEW_HEADERS]
            numbers[_L_NAME_BYTES] = numbers[_L_NEW_NAME_BYTES]
            numbers[_L_CONTENT_BYTES] = numbers[_L_NEW_CONTENT_BYTES]
            numbers[_L_CONTENT_NULLS] = numbers[_L_NEW_CONTENT_NULLS]
        numbers[_L_FRAME] += 1
    return _DONE


def compile_find_kernel() -> tuple[str, str]:
    """Compile `find_kernel`; return its LLVM code and the function's name in that code."""
    return _compiled(find_kernel)


def compile_fill_kernel() -> tuple[str, str]:
    """Compile `fill_kernel`; return its LLVM code and the function's name in that code."""
    return _compiled(fill_kernel)


def _compiled(kernel: Callable[..., int]) -> tuple[str, str]:
    """Compile a kernel; return its LLVM code and the function's name in that code."""
    compiled = numba.cfunc(SIGNATURE, nopython=True, error_model="numpy")(kernel)
    return compiled.inspect_llvm(), compiled.native_name.removeprefix("cfunc.")
