"""Compiled code that writes the lines of a whole batch, for `engine.dump.compiled_lines` alone.

    line_kernel(raw, out, words, numbers, gaps, positions, valid) -> 0 when all is on the fast path,
    else 1

Pure code over raw pointers, compiled by numba into one function that needs nothing else.
Without `positions` it writes the records between two places of `raw`; with them whole
uncompressed batches, header lines too, as many as are on the fast path. `numbers` goes in and comes
back, its slots are `line_layout.SLOTS`. The caller makes room in `out` and `gaps` for the worst
case; every length that comes out of `raw` is checked here.
Imported only to compile: numba takes half a second to import.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numba
from numba import types

from engine.native.line_layout import SLOTS, WORDS
from engine.native.raw_memory import copy_bytes, load_eight, object_code

if TYPE_CHECKING:
    from collections.abc import Callable

    from numba.core.registry import CPUDispatcher as Dispatcher

    from engine.native.pointers import Bytes, Numbers

_BYTES = types.CPointer(types.uint8)
_NUMBERS = types.CPointer(types.int64)
SIGNATURE = types.int64(_BYTES, _BYTES, _BYTES, _NUMBERS, _NUMBERS, _NUMBERS, _BYTES)

_U64 = types.uint64
_U8 = types.uint8
_HIGH_BITS = 0x8080808080808080

# Compiled code sees plain numbers only, so the names are taken apart here.
(_RAW_START, _RAW_END, _BASE_OFFSET, _BASE_MS, _APPEND_MS, _BASE_SEQUENCE, _RECORD_COUNT,
 _LEVEL, _LAST_OFFSET, _CHECK_FIRST_GAP, _OUT_END, _GAP_COUNT, _BATCH_COUNT, _BASE_POSITION,
 _OUT_ROOM, _GAP_ROOM, _BATCHES_DONE) = range(len(SLOTS))  # fmt: skip
(_OFFSET, _CREATE_TIME, _APPEND_TIME, _KEY_SIZE, _VALUE_SIZE, _SEQUENCE, _HEADERS, _CLOSE,
 _KEY, _PAYLOAD, _B_BASE, _B_LAST, _B_COUNT, _B_BASE_SEQUENCE, _B_LAST_SEQUENCE, _B_PRODUCER,
 _B_PRODUCER_EPOCH, _B_LEADER_EPOCH, _B_TRANSACTIONAL, _B_CONTROL, _B_HORIZON, _B_EMPTY, _B_OPEN,
 _B_POSITION, _B_SIZE, _B_MAGIC_CODEC, _B_CRC, _B_VALID, _TRUE, _FALSE,
 _FIRST_CODEC, _, _, _, _) = range(len(WORDS))  # fmt: skip
_SIZES = tuple(len(word) for word in WORDS)
_PLACES = tuple(sum(_SIZES[:n]) for n in range(len(WORDS)))


def _jit(function: Callable[..., object]) -> Dispatcher:
    """Decorate a helper so that numba compiles it as a separate function, without Python's lock."""
    return numba.njit(nogil=True, error_model="numpy", inline="never")(function)


@_jit
def _put_number(out: Bytes, at: int, value: int) -> int:
    """Write a number in decimal at position `at` of `out`; return the position after it."""
    if value < 0:
        out[at] = 45
        at += 1
        # The smallest int64 has no positive counterpart, so its digits are taken as unsigned.
        rest = _U64(-(value + 1)) + _U64(1)
    else:
        rest = _U64(value)
    digits = 1
    bound = _U64(10)
    while digits < 19 and rest >= bound:
        digits += 1
        bound *= _U64(10)
    i = at + digits - 1
    while i >= at:
        tenth = rest // _U64(10)
        out[i] = _U8(rest - tenth * _U64(10) + _U64(48))
        rest = tenth
        i -= 1
    return at + digits


@_jit
def _zigzag_varint(raw: Bytes, at: int, end: int, longest: int) -> tuple[int, int]:
    """Decode a zigzag varint.

    Return the number and the position after it: −1 if it is incomplete.
    """
    value = _U64(0)
    shift = _U64(0)
    for _ in range(longest):
        if at >= end:
            return 0, -1
        byte = raw[at]
        at += 1
        value |= _U64(byte & 0x7F) << shift
        if byte < 128:
            return types.int64(value >> _U64(1)) ^ -types.int64(value & _U64(1)), at
        shift += _U64(7)
    return 0, -1


@_jit
def _sequence_length(raw: Bytes, i: int, end: int) -> int:
    """Return the length in bytes of the UTF-8 sequence at `i`.

    For an invalid sequence it is negative: minus the number of bytes that one U+FFFD replaces.
    """
    lead = raw[i]
    if lead < 0xC2 or lead > 0xF4:
        return -1
    wanted = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    low = 0xA0 if lead == 0xE0 else 0x90 if lead == 0xF0 else 0x80
    high = 0x8F if lead == 0xF4 else 0xBF
    for k in range(1, wanted):
        if i + k >= end or raw[i + k] < low or raw[i + k] > high:
            return -k
        low, high = 0x80, 0xBF
    # Java reads all bytes of a surrogate before it rejects it.
    return -3 if lead == 0xED and raw[i + 1] >= 0xA0 else wanted


@_jit
def _is_ascii(raw: Bytes, start: int, end: int) -> bool:
    """Return True if the bytes from `start` to `end` (exclusive) are all below 128."""
    i = start
    words = _U64(0)
    while i + 8 <= end:
        words |= load_eight(raw, i)
        i += 8
    if words & _U64(_HIGH_BITS):
        return False
    while i < end:
        if raw[i] >= 128:
            return False
        i += 1
    return True


@_jit
def _put_text(out: Bytes, at: int, raw: Bytes, start: int, end: int) -> int:
    """Copy UTF-8 text to `out`, each invalid part replaced as Java does; return the end in `out`.

    java_text.py has Java's rule.
    """
    if _is_ascii(raw, start, end):
        copy_bytes(out, at, raw, start, end - start)
        return at + end - start
    i = start
    while i < end:
        length = 1 if raw[i] < 128 else _sequence_length(raw, i, end)
        if length > 0:
            for k in range(length):
                out[at + k] = raw[i + k]
            at += length
            i += length
        else:
            out[at], out[at + 1], out[at + 2] = 0xEF, 0xBF, 0xBD
            at += 3
            i -= length
    return at


@_jit
def _put_header_names(
    out: Bytes, at: int, raw: Bytes, position: int, end: int, count: int
) -> tuple[int, int]:
    """Write the names of a record's headers, separated by commas.

    Returns the end positions in `out` and in `raw`; the latter is −1 for bytes that plain Python
    must decode.
    """
    for n in range(count):
        size, position = _zigzag_varint(raw, position, end, 5)
        if position < 0 or size < 0 or size > end - position:
            return at, -1
        if n:
            out[at] = 44
            at += 1
        at = _put_text(out, at, raw, position, position + size)
        size, position = _zigzag_varint(raw, position + size, end, 5)
        if position < 0 or size > end - position:
            return at, -1
        position += size if size > 0 else 0
    return at, position


@_jit
def _put_word(out: Bytes, at: int, words: Bytes, word: int) -> int:
    """Write one of the fixed texts of a line, chosen by its index; return the position after it."""
    size = _SIZES[word]
    copy_bytes(out, at, words, _PLACES[word], size)
    return at + size


@_jit
def _put_metadata(
    out: Bytes, at: int, words: Bytes, numbers: Numbers, delta_ms: int, delta: int
) -> int:
    """Write the first part of a record's line, up to the time; return the position after it."""
    at = _put_word(out, at, words, _OFFSET)
    at = _put_number(out, at, numbers[_BASE_OFFSET] + delta)
    append_ms = numbers[_APPEND_MS]
    if append_ms >= 0:
        at = _put_word(out, at, words, _APPEND_TIME)
        return _put_number(out, at, append_ms)
    at = _put_word(out, at, words, _CREATE_TIME)
    return _put_number(out, at, numbers[_BASE_MS] + delta_ms)


@_jit
def _put_sizes(
    out: Bytes, at: int, words: Bytes, key_size: int, value_size: int, sequence: int
) -> int:
    """Write a record's line from the key's size to the start of the header names.

    Returns the position after it.
    """
    at = _put_word(out, at, words, _KEY_SIZE)
    at = _put_number(out, at, key_size)
    at = _put_word(out, at, words, _VALUE_SIZE)
    at = _put_number(out, at, value_size)
    at = _put_word(out, at, words, _SEQUENCE)
    at = _put_number(out, at, sequence)
    return _put_word(out, at, words, _HEADERS)


@_jit
def _note_offset(numbers: Numbers, gaps: Numbers, offset: int) -> None:
    """Keep a record's offset as the last one; add a gap if it does not follow the previous one."""
    last = numbers[_LAST_OFFSET]
    if offset != last + 1 and (last != -1 or numbers[_CHECK_FIRST_GAP]):
        count = numbers[_GAP_COUNT]
        gaps[2 * count] = last
        gaps[2 * count + 1] = offset
        numbers[_GAP_COUNT] = count + 1
    numbers[_LAST_OFFSET] = offset


@_jit
def _put_record(
    raw: Bytes,
    position: int,
    end: int,
    out: Bytes,
    at: int,
    words: Bytes,
    numbers: Numbers,
    gaps: Numbers,
) -> tuple[int, int]:
    """Write the line of one record.

    Return its end positions in `raw` and `out`; the former is −1 if plain Python must decode it.
    """
    delta_ms, position = _zigzag_varint(raw, position + 1, end, 10)
    if position < 0:
        return -1, at
    delta, position = _zigzag_varint(raw, position, end, 5)
    if position < 0 or delta < -0x80000000 or delta > 0x7FFFFFFF:
        return -1, at
    # With damaged deltas, sequence numbers wrap by other rules; the general path handles those.
    base_sequence = numbers[_BASE_SEQUENCE]
    if base_sequence >= 0 and (delta < 0 or delta > 0x7FFFFFFF - base_sequence):
        return -1, at
    key_size, key_at = _zigzag_varint(raw, position, end, 5)
    if key_at < 0 or key_size < -1 or key_size > end - key_at:
        return -1, at
    value_size, value_at = _zigzag_varint(raw, key_at + (key_size if key_size > 0 else 0), end, 5)
    if value_at < 0 or value_size < -1 or value_size > end - value_at:
        return -1, at
    headers, position = _zigzag_varint(
        raw, value_at + (value_size if value_size > 0 else 0), end, 5
    )
    if position < 0 or headers < 0:
        return -1, at
    _note_offset(numbers, gaps, numbers[_BASE_OFFSET] + delta)
    at = _put_metadata(out, at, words, numbers, delta_ms, delta)
    sequence = base_sequence + delta if base_sequence >= 0 else -1
    at = _put_sizes(out, at, words, key_size, value_size, sequence)
    if headers:
        at, position = _put_header_names(out, at, raw, position, end, headers)
    at = _put_word(out, at, words, _CLOSE)
    if numbers[_LEVEL] > 0:
        if key_size >= 0:
            at = _put_word(out, at, words, _KEY)
            at = _put_text(out, at, raw, key_at, key_at + key_size)
        if value_size >= 0:
            at = _put_word(out, at, words, _PAYLOAD)
            at = _put_text(out, at, raw, value_at, value_at + value_size)
    out[at] = 10
    return position, at + 1


@_jit
def _put_records(
    raw: Bytes, out: Bytes, at: int, words: Bytes, numbers: Numbers, gaps: Numbers
) -> int:
    """Write the lines of a batch's records; return the end in `out`.

    −1 if plain Python must decode the batch.
    """
    position = numbers[_RAW_START]
    end = numbers[_RAW_END]
    for _ in range(numbers[_RECORD_COUNT]):
        size, position = _zigzag_varint(raw, position, end, 5)
        if position < 0 or size < 0 or size > end - position:
            return -1
        record_end = position + size
        position, at = _put_record(raw, position, record_end, out, at, words, numbers, gaps)
        if position != record_end:
            return -1
    return at if position == end else -1


@_jit
def _big_endian(raw: Bytes, at: int, count: int) -> int:
    """Return the signed big-endian number of `count` (2, 4 or 8) bytes at a position."""
    value = _U64(0)
    for i in range(count):
        value = (value << _U64(8)) | _U64(raw[at + i])
    shift = _U64(64 - 8 * count)
    return types.int64(value << shift) >> types.int64(shift)


@_jit
def _put_pair(out: Bytes, at: int, words: Bytes, word: int, value: int) -> int:
    """Write a fixed text and a decimal number; return the position after them."""
    at = _put_word(out, at, words, word)
    return _put_number(out, at, value)


@_jit
def _put_batch_head(raw: Bytes, start: int, out: Bytes, at: int, words: Bytes) -> int:
    """Write the first half of a batch's line, up to the delete horizon.

    Return the position after it.
    """
    base_offset = _big_endian(raw, start, 8)
    delta = _big_endian(raw, start + 23, 4)
    sequence = _big_endian(raw, start + 53, 4)
    attributes = _big_endian(raw, start + 21, 2)
    at = _put_pair(out, at, words, _B_BASE, base_offset)
    at = _put_pair(out, at, words, _B_LAST, base_offset + delta)
    at = _put_pair(out, at, words, _B_COUNT, _big_endian(raw, start + 57, 4))
    at = _put_pair(out, at, words, _B_BASE_SEQUENCE, sequence)
    at = _put_pair(out, at, words, _B_LAST_SEQUENCE, sequence + delta if sequence >= 0 else -1)
    at = _put_pair(out, at, words, _B_PRODUCER, _big_endian(raw, start + 43, 8))
    at = _put_pair(out, at, words, _B_PRODUCER_EPOCH, _big_endian(raw, start + 51, 2))
    at = _put_pair(out, at, words, _B_LEADER_EPOCH, _big_endian(raw, start + 12, 4))
    at = _put_word(out, at, words, _B_TRANSACTIONAL)
    at = _put_word(out, at, words, _TRUE if attributes & 0x10 else _FALSE)
    at = _put_word(out, at, words, _B_CONTROL)
    at = _put_word(out, at, words, _TRUE if attributes & 0x20 else _FALSE)
    at = _put_word(out, at, words, _B_HORIZON)
    if attributes & 0x40:
        at = _put_pair(out, at, words, _B_OPEN, _big_endian(raw, start + 27, 8))
        return _put_word(out, at, words, _CLOSE)
    return _put_word(out, at, words, _B_EMPTY)


@_jit
def _put_batch_tail(
    raw: Bytes, start: int, out: Bytes, at: int, words: Bytes, position: int, valid: int
) -> int:
    """Write the second half of a batch's line, from its position on.

    Return the position after it.
    """
    at = _put_pair(out, at, words, _B_POSITION, position)
    attributes = _big_endian(raw, start + 21, 2)
    word = _APPEND_TIME if attributes & 0x08 else _CREATE_TIME
    at = _put_pair(out, at, words, word, _big_endian(raw, start + 35, 8))
    at = _put_pair(out, at, words, _B_SIZE, 12 + _big_endian(raw, start + 8, 4))
    crc = _big_endian(raw, start + 17, 4) & 0xFFFFFFFF
    at = _put_word(out, at, words, _B_MAGIC_CODEC)
    at = _put_word(out, at, words, _FIRST_CODEC + (attributes & 7))
    at = _put_pair(out, at, words, _B_CRC, crc)
    at = _put_word(out, at, words, _B_VALID)
    at = _put_word(out, at, words, _TRUE if valid else _FALSE)
    out[at] = 10
    return at + 1


@_jit
def _load_batch(raw: Bytes, start: int, numbers: Numbers) -> bool:
    """Read from a batch's header the numbers that its records' lines need.

    Returns False for a batch that plain Python must dump.
    """
    numbers[_RAW_START] = start + 61
    numbers[_RAW_END] = start + 12 + _big_endian(raw, start + 8, 4)
    numbers[_BASE_OFFSET] = _big_endian(raw, start, 8)
    numbers[_BASE_MS] = _big_endian(raw, start + 27, 8)
    append = _big_endian(raw, start + 21, 2) & 0x08
    max_ms = _big_endian(raw, start + 35, 8)
    numbers[_APPEND_MS] = max_ms if append else -1
    sequence = _big_endian(raw, start + 53, 4)
    numbers[_BASE_SEQUENCE] = sequence
    count = _big_endian(raw, start + 57, 4)
    numbers[_RECORD_COUNT] = count
    delta = _big_endian(raw, start + 23, 4)
    if numbers[_LEVEL] >= 0 and ((append and max_ms < 0) or count <= 0):
        return False
    if sequence < -1 or delta < 0:
        return False
    return sequence < 0 or (sequence + count <= 0x7FFFFFFF and sequence + delta <= 0x7FFFFFFF)


@_jit
def _put_batches(
    raw: Bytes,
    out: Bytes,
    words: Bytes,
    numbers: Numbers,
    gaps: Numbers,
    positions: Numbers,
    valid: Bytes,
) -> None:
    """Write the lines of whole batches, up to one without room or that plain Python must dump."""
    at = 0
    for n in range(numbers[_BATCH_COUNT]):
        start = positions[n]
        if not _load_batch(raw, start, numbers):
            break
        has_records = numbers[_LEVEL] >= 0
        count = numbers[_RECORD_COUNT] if has_records else 0
        size = numbers[_RAW_END] - start if has_records else 0
        if count * 7 > size or at + 640 + count * 256 + size * 3 > numbers[_OUT_ROOM]:
            break
        gap_count, last = numbers[_GAP_COUNT], numbers[_LAST_OFFSET]
        if gap_count + count > numbers[_GAP_ROOM]:
            break
        end = _put_batch_head(raw, start, out, at, words)
        position = numbers[_BASE_POSITION] + start
        end = _put_batch_tail(raw, start, out, end, words, position, valid[n])
        if has_records:
            end = _put_records(raw, out, end, words, numbers, gaps)
        if end < 0:
            numbers[_GAP_COUNT], numbers[_LAST_OFFSET] = gap_count, last
            break
        at = end
        numbers[_BATCHES_DONE] = n + 1
    numbers[_OUT_END] = at


def line_kernel(
    raw: Bytes,
    out: Bytes,
    words: Bytes,
    numbers: Numbers,
    gaps: Numbers,
    positions: Numbers,
    valid: Bytes,
) -> int:
    """Write the lines of one batch's records, or those of whole batches.

    Returns 1 if plain Python must write the batch's lines, else 0; whole batches always return 0.
    See the module docstring.
    """
    if numbers[_BATCH_COUNT]:
        _put_batches(raw, out, words, numbers, gaps, positions, valid)
        return 0
    at = _put_records(raw, out, 0, words, numbers, gaps)
    if at < 0:
        return 1
    numbers[_OUT_END] = at
    return 0


def compile_kernel() -> tuple[bytes, str]:
    """Compile `line_kernel` for this machine's processor; return its object code and its name."""
    compiled = numba.cfunc(SIGNATURE, nopython=True, error_model="numpy")(line_kernel)
    return object_code(compiled)
