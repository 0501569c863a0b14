"""The cleaner's work on the records of a block, as code to be compiled; see `clean_records.py`.

    note_kernel(raw, size, count, numbers, digests, offsets, scratch)
        -> 0 off the fast path, 1 all keys are in the map, 2 the map is full
    keep_kernel(raw, size, count, numbers, digests, offsets, scratch, spans, out)
        -> 0 off the fast path, 1 decided

`raw` points at the first record of a block of `size` bytes. `numbers` goes in and comes back, its
slots are those of `clean_layout.py`; `digests` and `offsets` are the map's memory, `scratch` is for
MD5. A block is looked through before anything of it is noted. Each becomes one function that needs
nothing else. Imported only to compile: numba takes half a second to import.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numba
from numba import types

from engine.native.clean_layout import KEEP, NOTE, SCRATCH_TAIL, SPAN
from engine.native.kernel_varint import raw_varint
from engine.native.md5_code import START, md5_block
from engine.native.raw_memory import load_eight, put_byte, put_eight

if TYPE_CHECKING:
    from collections.abc import Callable

    from numba.core.registry import CPUDispatcher as Dispatcher
    from numba.core.typing.templates import Signature

    from engine.native.pointers import Bytes, Numbers

_BYTES = types.CPointer(types.uint8)
_NUMBERS = types.CPointer(types.int64)
_INT = types.int32
NOTE_SIGNATURE = types.int64(_BYTES, _INT, _INT, _NUMBERS, _BYTES, _NUMBERS, _BYTES)
KEEP_SIGNATURE = types.int64(
    _BYTES, _INT, _INT, _NUMBERS, _BYTES, _NUMBERS, _BYTES, _NUMBERS, _BYTES
)

_U64 = types.uint64
_I64 = types.int64
# Compiled code sees plain numbers only, so the names are taken apart here.
(_N_BASE_OFFSET, _N_START_OFFSET, _N_SLOT_COUNT, _N_SIZE, _N_LIMIT, _N_LATEST_OFFSET,
 _N_RECORDS) = range(len(NOTE))  # fmt: skip
(_K_BASE_OFFSET, _K_LATEST_OFFSET, _K_SLOT_COUNT, _K_KEEPS_TOMBSTONES, _K_BASE_MS, _K_HAS_HORIZON,
 _K_HORIZON_MS, _K_NEW_HORIZON_MS, _K_COUNT, _K_HAS_TOMBSTONE, _K_NEW_BASE_MS, _K_MAX_MS,
 _K_OUT_BYTES) = range(len(KEEP))  # fmt: skip
_SPAN = SPAN
_START_LOW, _START_HIGH = START
_TAIL = SCRATCH_TAIL


def _inlined(function: Callable[..., object]) -> Dispatcher:
    """Decorate a helper so that numba compiles it into each caller.

    The kernel then has no calls.
    """
    return numba.njit(inline="always", error_model="numpy")(function)


@_inlined
def _read_key(raw: Bytes, at: int, size: int) -> tuple[int, int, int, int, int, int, int]:
    """Read a record up to its value.

    Returns its end (0 if this code cannot parse it), the position after its timestamp, timestamp
    and offset deltas, the start of its key, the key's size (−1 for null), and 1 if it has a value,
    else 0.
    """
    length, at = raw_varint(raw, at, size, 4)
    end = at + (length >> 1)
    fast = 1
    if length & 1 or end > size:
        fast = 0
        end = at
    time, after_time = raw_varint(raw, at + 1, end, 8)
    delta, at = raw_varint(raw, after_time, end, 4)
    key, at = raw_varint(raw, at, end, 4)
    key_size = _I64(-1) if key & 1 else key >> 1
    value_at = at + max(key_size, 0)
    has_value = 0
    if fast and value_at < end and not delta & 1:
        value = raw[value_at]
        # A length of −1 is one byte, as are all small ones below 0.
        if value > 127 or not value & 1:
            has_value = 1
    else:
        end = _I64(0)
    return end, after_time, (time >> 1) ^ -(time & 1), delta >> 1, at, key_size, has_value


@_inlined
def _compute_digest(raw: Bytes, at: int, length: int, scratch: Bytes) -> None:
    """Compute the MD5 of some bytes into the first 16 bytes of the scratch memory."""
    put_eight(scratch, 0, _U64(_START_LOW))
    put_eight(scratch, 8, _U64(_START_HIGH))
    left = length
    while left >= 64:
        md5_block(scratch, raw, at)
        at += 64
        left -= 64
    last = _I64(0) if left < 56 else _I64(64)
    n = _I64(0)
    while n < last + 64:
        put_eight(scratch, _TAIL + n, _U64(0))
        n += 8
    n = _I64(0)
    while n + 8 <= left:
        put_eight(scratch, _TAIL + n, load_eight(raw, at + n))
        n += 8
    while n < left:
        put_byte(scratch, _TAIL + n, _I64(raw[at + n]))
        n += 1
    put_byte(scratch, _TAIL + left, _I64(0x80))
    put_eight(scratch, _TAIL + last + 56, _U64(length) << _U64(3))
    # A loop, so that the code of the MD5 steps is compiled in only once.
    block = _I64(0)
    while block <= last:
        md5_block(scratch, scratch, _TAIL + block)
        block += 64


@_inlined
def _find_slot(scratch: Bytes, digests: Bytes, offsets: Numbers, slot_count: int) -> int:
    """Return the slot of the digest in `scratch`, or the free slot where it would be put."""
    low = load_eight(scratch, 0)
    high = load_eight(scratch, 8)
    slot = _I64(low % _U64(slot_count))
    while offsets[slot] != 0:
        if load_eight(digests, 16 * slot) == low and load_eight(digests, 16 * slot + 8) == high:
            break
        slot += 1
        if slot == slot_count:
            slot = _I64(0)
    return slot


def note_kernel(
    raw: Bytes,
    size: int,
    count: int,
    numbers: Numbers,
    digests: Bytes,
    offsets: Numbers,
    scratch: Bytes,
) -> int:
    """Put the last offset of each key of a batch into the offset map.

    Returns 0 for records that it cannot parse (the map is then unchanged), 1 if all are noted, 2 if
    the map is full. The module docstring has the parameters.
    """
    size = _I64(size)
    base = numbers[_N_BASE_OFFSET]
    start = numbers[_N_START_OFFSET]
    slot_count = numbers[_N_SLOT_COUNT]
    verdict = _I64(0)
    # The first round only checks the records. One loop for both rounds has the MD5 code only once.
    for is_sure in range(2):
        at = _I64(0)
        last_delta = _I64(-1)
        for index in range(_I64(count)):
            end, _, _, delta, key_at, key_size, _ = _read_key(raw, at, size)
            if not is_sure:
                if end == 0 or delta <= last_delta:
                    return 0
                last_delta = delta
            elif key_size >= 0 and base + delta >= start:
                if numbers[_N_SIZE] >= numbers[_N_LIMIT]:
                    return 2
                _compute_digest(raw, key_at, key_size, scratch)
                slot = _find_slot(scratch, digests, offsets, slot_count)
                if offsets[slot] == 0:
                    numbers[_N_SIZE] += 1
                    put_eight(digests, 16 * slot, load_eight(scratch, 0))
                    put_eight(digests, 16 * slot + 8, load_eight(scratch, 8))
                offsets[slot] = base + delta + 1
                numbers[_N_LATEST_OFFSET] = base + delta
            if is_sure:
                numbers[_N_RECORDS] = index + 1
            at = end
        if at != size:
            return 0
        verdict = _I64(1)
    return verdict


@_inlined
def _put_varint(out: Bytes, at: int, value: int) -> int:
    """Write a number as a zigzag varint at position `at`; return the position after it."""
    rest = _U64((value << 1) ^ (value >> 63))
    while rest > _U64(127):
        put_byte(out, at, _I64(rest & _U64(127)) | 128)
        rest >>= _U64(7)
        at += 1
    put_byte(out, at, _I64(rest))
    return at + 1


@_inlined
def _varint_size(value: int) -> int:
    """Return the number of bytes of a number's zigzag varint."""
    rest = _U64((value << 1) ^ (value >> 63))
    size = _I64(1)
    while rest > _U64(127):
        rest >>= _U64(7)
        size += 1
    return size


@_inlined
def _copy_shifted(raw: Bytes, spans: Numbers, kept: int, shift: int, out: Bytes) -> int:
    """Write the kept records with `shift` ms added to each time delta.

    Return their size in bytes.
    """
    out_at = _I64(0)
    for index in range(kept):
        place = _SPAN * index
        start = spans[place]
        end = spans[place + 2]
        if shift:
            start = spans[place + 1]
            time = spans[place + 3] + shift
            out_at = _put_varint(out, out_at, 1 + _varint_size(time) + end - start)
            put_byte(out, out_at, _I64(0))
            out_at = _put_varint(out, out_at + 1, time)
        n = start
        while n + 8 <= end:
            put_eight(out, out_at, load_eight(raw, n))
            n += 8
            out_at += 8
        while n < end:
            put_byte(out, out_at, _I64(raw[n]))
            n += 1
            out_at += 1
    return out_at


def keep_kernel(  # noqa: C901, PLR0913, PLR0917 (no calls)
    raw: Bytes,
    size: int,
    count: int,
    numbers: Numbers,
    digests: Bytes,
    offsets: Numbers,
    scratch: Bytes,
    spans: Numbers,
    out: Bytes,
) -> int:
    """Select the records of a batch to keep, and write them.

    Returns 0 for records that it cannot parse, else 1. The module docstring has the parameters.
    """
    size = _I64(size)
    base = numbers[_K_BASE_OFFSET]
    latest = numbers[_K_LATEST_OFFSET]
    slot_count = numbers[_K_SLOT_COUNT]
    kept = _I64(0)
    has_tombstone = _I64(0)
    max_delta = _I64(0)
    at = _I64(0)
    last_delta = _I64(-1)
    for _ in range(_I64(count)):
        end, after_time, time, delta, key_at, key_size, has_value = _read_key(raw, at, size)
        if end == 0 or delta <= last_delta:
            return 0
        last_delta = delta
        stays = 0
        if base + delta > latest:
            stays = 1
        elif key_size >= 0 and (has_value or numbers[_K_KEEPS_TOMBSTONES]):
            _compute_digest(raw, key_at, key_size, scratch)
            slot = _find_slot(scratch, digests, offsets, slot_count)
            if base + delta >= offsets[slot] - 1:
                stays = 1
        if stays:
            place = _SPAN * kept
            spans[place] = at
            spans[place + 1] = after_time
            spans[place + 2] = end
            spans[place + 3] = time
            if not has_value:
                has_tombstone = _I64(1)
            if kept == 0 or time > max_delta:
                max_delta = time
            kept += 1
        at = end
    if at != size:
        return 0
    numbers[_K_COUNT] = kept
    numbers[_K_HAS_TOMBSTONE] = has_tombstone
    is_new = has_tombstone != 0 and numbers[_K_HAS_HORIZON] == 0
    if kept == 0 or (kept == _I64(count) and not is_new):
        return 1
    base_ms = numbers[_K_BASE_MS]
    if is_new:
        new_base_ms = numbers[_K_NEW_HORIZON_MS]
    elif numbers[_K_HAS_HORIZON]:
        new_base_ms = numbers[_K_HORIZON_MS]
    else:
        new_base_ms = base_ms + spans[3]
    numbers[_K_NEW_BASE_MS] = new_base_ms
    numbers[_K_MAX_MS] = base_ms + max_delta
    numbers[_K_OUT_BYTES] = _copy_shifted(raw, spans, kept, base_ms - new_base_ms, out)
    return 1


def compile_note_kernel() -> tuple[str, str]:
    """Compile `note_kernel`; return its LLVM code and the function's name in that code."""
    return _compiled(NOTE_SIGNATURE, note_kernel)


def compile_keep_kernel() -> tuple[str, str]:
    """Compile `keep_kernel`; return its LLVM code and the function's name in that code."""
    return _compiled(KEEP_SIGNATURE, keep_kernel)


def _compiled(signature: Signature, kernel: Callable[..., int]) -> tuple[str, str]:
    """Compile a kernel; return its LLVM code and the function's name in that code."""
    compiled = numba.cfunc(signature, nopython=True, error_model="numpy")(kernel)
    return compiled.inspect_llvm(), compiled.native_name.removeprefix("cfunc.")
