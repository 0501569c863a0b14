"""The lines of a whole version 2 batch by compiled code: the tier for large files.

Needs the extra `fast` (numba). The contract is that of `plain_lines.py`, and a test holds the
two tiers to the same bytes. Importing and loading the compiled code takes half a second, so it
pays above FAST_TIER_FILE_BYTES_MIN only.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from engine.dump.plain_lines import BatchNumbers, Lines

_OK, _UNUSUAL = 0, 1
# The longest a line gets beside names, key and value: seven numbers of 20 digits and its words.
_LINE_BYTES = 256
# Invalid UTF-8 grows: one byte may become the three of U+FFFD.
_GROWTH = 3

_WORDS = [
    b"| offset: ", b" CreateTime: ", b" LogAppendTime: ", b" keySize: ", b" valueSize: ",
    b" sequence: ", b" headerKeys: [", b"]", b" key: ", b" payload: ",
]  # fmt: skip
_TEXT = np.frombuffer(b"".join(_WORDS), dtype=np.uint8).copy()
_STARTS = np.cumsum([0, *[len(word) for word in _WORDS]]).astype(np.int64)
(_OFFSET, _CREATE, _APPEND, _KEY_SIZE, _VALUE_SIZE, _SEQUENCE, _HEADERS, _CLOSE, _KEY,
 _PAYLOAD) = range(10)  # fmt: skip


def _jit(function: Any) -> Any:
    return numba.njit(cache=True, nogil=True, boundscheck=False)(function)


@_jit
def _put_word(out: Any, at: int, text: Any, starts: Any, word: int) -> int:
    for i in range(starts[word], starts[word + 1]):
        out[at] = text[i]
        at += 1
    return at


@_jit
def _put_number(out: Any, at: int, value: int) -> int:
    if value < 0:
        out[at] = 45
        at += 1
        # The smallest int64 has no positive twin; taken apart as unsigned it needs none.
        rest = np.uint64(-(value + 1)) + np.uint64(1)
    else:
        rest = np.uint64(value)
    digits = 1
    bound = np.uint64(10)
    while digits < 19 and rest >= bound:
        digits += 1
        bound *= np.uint64(10)
    if digits == 19 and rest >= np.uint64(10_000_000_000_000_000_000):
        digits = 20
    for i in range(digits - 1, -1, -1):
        tenth = rest // np.uint64(10)
        out[at + i] = np.uint8(rest - tenth * np.uint64(10)) + np.uint8(48)
        rest = tenth
    return at + digits


@_jit
def _varint(raw: Any, at: int, end: int, longest: int = 5) -> tuple[int, int]:
    """Return a zig-zag number and the position behind it; −1 as position when there is none."""
    value = np.uint64(0)
    shift = np.uint64(0)
    for _ in range(longest):
        if at >= end:
            return 0, -1
        byte = raw[at]
        at += 1
        value |= np.uint64(byte & 0x7F) << shift
        if byte < 128:
            return np.int64(value >> np.uint64(1)) ^ -np.int64(value & np.uint64(1)), at
        shift += np.uint64(7)
    return 0, -1


@_jit
def _put_replacement(out: Any, at: int) -> int:
    out[at], out[at + 1], out[at + 2] = 0xEF, 0xBF, 0xBD
    return at + 3


@_jit
def _sequence_length(raw: Any, i: int, end: int) -> int:
    """Return the bytes of the UTF-8 sequence at `i`; of a wrong one, minus those replaced."""
    lead = raw[i]
    if lead < 0xC2 or lead > 0xF4:
        return -1
    wanted = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    low, high = np.uint8(0x80), np.uint8(0xBF)
    if lead == 0xE0:
        low = np.uint8(0xA0)
    elif lead == 0xF0:
        low = np.uint8(0x90)
    elif lead == 0xF4:
        high = np.uint8(0x8F)
    for k in range(1, wanted):
        if i + k >= end or raw[i + k] < low or raw[i + k] > high:
            return -k
        low, high = np.uint8(0x80), np.uint8(0xBF)
    # Java reads a surrogate whole before it refuses it.
    if lead == 0xED and raw[i + 1] >= 0xA0:
        return -3
    return wanted


@_jit
def _put_text(out: Any, at: int, raw: Any, start: int, end: int) -> int:
    """Copy UTF-8, each invalid part replaced as Java does (see java_text.py)."""
    seen = np.uint8(0)
    for i in range(start, end):
        seen |= raw[i]
    if seen < 128:
        out[at : at + end - start] = raw[start:end]
        return at + end - start
    i = start
    while i < end:
        if raw[i] < 128:
            out[at] = raw[i]
            at += 1
            i += 1
            continue
        length = _sequence_length(raw, i, end)
        if length > 0:
            for k in range(length):
                out[at + k] = raw[i + k]
            at += length
            i += length
        else:
            at = _put_replacement(out, at)
            i -= length
    return at


@_jit
def _put_header_names(
    out: Any, at: int, raw: Any, position: int, end: int, count: int
) -> tuple[int, int]:
    """Write names with commas; returns the ends in `out` and in `raw`, −1 when unusual."""
    for n in range(count):
        size, position = _varint(raw, position, end)
        if position < 0 or size < 0 or size > end - position:
            return at, -1
        if n:
            out[at] = 44
            at += 1
        at = _put_text(out, at, raw, position, position + size)
        size, position = _varint(raw, position + size, end)
        if position < 0 or size > end - position:
            return at, -1
        position += max(size, 0)
    return at, position


@_jit
def _put_records(  # noqa: C901, PLR0913, PLR0917 - compiled code takes plain numbers only
    raw: Any,
    position: int,
    end: int,
    out: Any,
    at: int,
    text: Any,
    starts: Any,
    base_offset: int,
    base_ms: int,
    append_ms: int,
    base_sequence: int,
    count: int,
    time_word: int,
    print_data: bool,
    last: int,
    check_first_gap: bool,
    gaps: Any,
) -> tuple[int, int, int, int]:
    """Write the lines of `count` records; returns (status, end in `out`, last offset, gaps)."""
    gap_count = 0
    for _ in range(count):
        size, position = _varint(raw, position, end)
        if position < 0 or size < 0 or size > end - position:
            return _UNUSUAL, at, last, 0
        record_end = position + size
        delta_ms, position = _varint(raw, position + 1, record_end, 10)
        if position < 0:
            return _UNUSUAL, at, last, 0
        delta, position = _varint(raw, position, record_end)
        if position < 0:
            return _UNUSUAL, at, last, 0
        key_size, key_at = _varint(raw, position, record_end)
        if key_at < 0 or key_size < -1 or key_size > record_end - key_at:
            return _UNUSUAL, at, last, 0
        value_size, value_at = _varint(raw, key_at + max(key_size, 0), record_end)
        if value_at < 0 or value_size < -1 or value_size > record_end - value_at:
            return _UNUSUAL, at, last, 0
        headers, position = _varint(raw, value_at + max(value_size, 0), record_end)
        if position < 0 or headers < 0:
            return _UNUSUAL, at, last, 0
        if delta < -0x80000000 or delta > 0x7FFFFFFF:
            return _UNUSUAL, at, last, 0
        offset = base_offset + delta
        if offset != last + 1 and (last != -1 or check_first_gap):
            gaps[gap_count, 0] = last
            gaps[gap_count, 1] = offset
            gap_count += 1
        last = offset
        at = _put_word(out, at, text, starts, _OFFSET)
        at = _put_number(out, at, offset)
        at = _put_word(out, at, text, starts, time_word)
        at = _put_number(out, at, base_ms + delta_ms if append_ms < 0 else append_ms)
        at = _put_word(out, at, text, starts, _KEY_SIZE)
        at = _put_number(out, at, key_size)
        at = _put_word(out, at, text, starts, _VALUE_SIZE)
        at = _put_number(out, at, value_size)
        at = _put_word(out, at, text, starts, _SEQUENCE)
        at = _put_number(out, at, base_sequence + delta if base_sequence >= 0 else -1)
        at = _put_word(out, at, text, starts, _HEADERS)
        at, position = _put_header_names(out, at, raw, position, record_end, headers)
        if position != record_end:
            return _UNUSUAL, at, last, 0
        at = _put_word(out, at, text, starts, _CLOSE)
        if print_data and key_size >= 0:
            at = _put_word(out, at, text, starts, _KEY)
            at = _put_text(out, at, raw, key_at, key_at + key_size)
        if print_data and value_size >= 0:
            at = _put_word(out, at, text, starts, _PAYLOAD)
            at = _put_text(out, at, raw, value_at, value_at + value_size)
        out[at] = 10
        at += 1
    return (_OK if position == end else _UNUSUAL), at, last, gap_count


class FastLines:
    """Makes lines with compiled code, into one arena that is reused from batch to batch."""

    def __init__(self, *, print_data: bool, check_first_gap: bool) -> None:
        self._print_data = print_data
        self._check_first_gap = check_first_gap
        self._arena = np.empty(1 << 20, dtype=np.uint8)
        self._view = memoryview(self._arena)  # type: ignore[arg-type]
        self._gaps = np.empty((1024, 2), dtype=np.int64)

    def of(
        self, batch: BatchNumbers, raw: bytes | memoryview, start: int, last_offset: int
    ) -> Lines | None:
        """Return the lines of the records in `raw` from `start` to its end.

        The text is valid until the next call. `last_offset` is that of the record before, −1
        if there is none.
        """
        count, end = batch.record_count, len(raw)
        # A record takes seven bytes, so a larger count is a lie and is not made room for.
        if count < 0 or count * 7 > end - start:
            return None
        if batch.base_sequence >= 0 and batch.base_sequence + count > 0x7FFFFFFF:
            return None
        self._make_room(count, end - start)
        status, size, last, gap_count = _put_records(
            np.frombuffer(raw, dtype=np.uint8), start, end, self._arena, 0, _TEXT, _STARTS,
            batch.base_offset, batch.base_timestamp_ms, batch.append_time_ms,
            batch.base_sequence, count, _APPEND if batch.append_time_ms >= 0 else _CREATE,
            self._print_data, last_offset, self._check_first_gap, self._gaps,
        )  # fmt: skip
        if status != _OK:
            return None
        gaps = [(int(a), int(b)) for a, b in self._gaps[:gap_count]]
        return Lines(self._view[:size], int(last), gaps)

    def _make_room(self, count: int, raw_bytes: int) -> None:
        needed = count * _LINE_BYTES + raw_bytes * _GROWTH
        if needed > len(self._arena):
            self._arena = np.empty(needed, dtype=np.uint8)
            self._view = memoryview(self._arena)  # type: ignore[arg-type]
        if count > len(self._gaps):
            self._gaps = np.empty((count, 2), dtype=np.int64)
