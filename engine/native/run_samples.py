"""Sample batches with known results: compiled code for runs is used only if it gets them right."""

from __future__ import annotations

from array import array
from struct import Struct
from typing import NamedTuple

from engine.native.batch_runs import FRAMES_MAX, WIDTH, BatchRun, RowFiller, RunCode, RunFinder
from engine.native.run_layout import (
    COMPRESSED,
    DONE,
    FILL,
    FRAME,
    FULL,
    HEADERS,
    KEYS,
    NO_SCHEMA_ID,
    ODD,
    SCHEMA_IDS,
    SLACK_BYTES,
    VALUES,
)

# Base offset, length, leader epoch, magic, CRC, attributes, last offset delta, base and largest
# time, producer id and epoch, base sequence, count of records.
_HEADER = Struct(">qiibIhiqqqhii")
_OVERHEAD_BYTES, _CODEC_AT = 12, 22
# length 19, time −3, offset 0, key "k", value of 5, headers ("h", "vv") and ("", null)
_FIRST = bytes.fromhex("26 00 05 00 02 6b 0a 0001020304 04 02 68 04 7676 00 01")
# length 9, time 2^20, offset 3, no key, no value, no headers
_SECOND = bytes.fromhex("12 00 80808001 06 01 01 00")
# length 207, time 0, offset 4, an empty key, a value of 200
_THIRD = bytes.fromhex("9e03 00 00 08 00 9003") + b"\x01" * 200 + b"\x00"
_BASE_MS, _MAX_MS, _BASE_OFFSET = 1000, 2_000_000, 1 << 40


class _Memory(NamedTuple):
    """The columns of a sample, in the order of their slots."""

    offsets: array[int]
    times: array[int]
    key_sizes: array[int]
    value_sizes: array[int]
    schema_ids: array[int]
    keys: array[int]
    key_ends: array[int]
    values: array[int]
    value_ends: array[int]
    header_ends: array[int]
    names: array[int]
    name_ends: array[int]
    contents: array[int]
    content_ends: array[int]
    content_sizes: array[int]


def _build_batch(
    base_offset: int, last_delta: int, count: int, records: bytes, flags: int = 0
) -> bytes:
    """Return a version 2 batch; its CRC is arbitrary, as the code does not check it."""
    length = _HEADER.size + len(records) - _OVERHEAD_BYTES
    return _HEADER.pack(
        base_offset, length, 7, 2, 0xFEDCBA98, flags, last_delta, _BASE_MS, _MAX_MS, 1 << 33, -2,
        0x01020304, count,
    ) + records  # fmt: skip


_LOG = (
    _build_batch(_BASE_OFFSET, 4, 3, _FIRST + _SECOND + _THIRD)
    # A control batch, then a batch with log append time.
    + _build_batch(_BASE_OFFSET + 5, 0, 1, _FIRST, 0x30)
    + _build_batch(_BASE_OFFSET + 6, 0, 1, _FIRST, 0x08)
)
_LATER = _build_batch(_BASE_OFFSET + 8, 0, 1, _FIRST)


def _run_find(code: RunCode, log: bytes, frames_max: int = FRAMES_MAX) -> BatchRun:
    """Return the run that the compiled find returns for a log of samples."""
    finder = RunFinder(code, passes_control=True)
    return finder.find(
        memoryview(bytearray(b"??" + log)),
        2,
        2 + len(log),
        50,
        _BASE_OFFSET,
        7,
        frames_max=frames_max,
    )


def is_find_right(address: int) -> bool:
    """Return True if code for `find` gives the right results for samples."""
    code = RunCode(address, address)
    run = _run_find(code, _LOG + _LATER)
    first = (
        2, len(_FIRST + _SECOND + _THIRD) + _HEADER.size, 0xFEDCBA98, 0, 4, _BASE_OFFSET, _BASE_MS,
        _MAX_MS, 1 << 33, -2, 0x01020304, 3, 52, 7, 0, 0,
    )  # fmt: skip
    if (*run.frames[:WIDTH],) != first or run.field("is_passed") != [0, 1, 0]:
        return False
    if (run.end, run.next_offset, run.record_count) != (2 + len(_LOG), _BASE_OFFSET + 7, 5):
        return False
    if not run.is_compacted or _run_find(code, _LOG, frames_max=2).frame_count != 2:
        return False
    # Truncated, of another epoch, of another magic, of an unknown codec, with too small a length.
    size = run.frames[_SIZE_SLOT]
    changes = (12, b"\1"), (16, b"\3"), (_CODEC_AT, b"\5"), (8, bytes((0, 0, 0, 48)))
    damaged = [_LOG[:at] + new + _LOG[at + len(new) :] for at, new in changes]
    return all(_run_find(code, log).frame_count == 0 for log in (*damaged, _LOG[: size - 1]))


_SIZE_SLOT = FRAME.index("size")


def _run_fill(
    code: RunCode, frames: array[int], log: bytes, **more_slots: int
) -> tuple[int, _Memory, int]:
    """Run the compiled fill over all batches of a log; return verdict, columns, number of rows.

    `more_slots` are further slots of its numbers.
    """
    room = len(log) + SLACK_BYTES
    kinds = {"offsets": "q", "times": "q", "schema_ids": "q", "keys": "B", "values": "B",
             "names": "B", "contents": "B"}  # fmt: skip
    memory = _Memory(*(array(kinds.get(name, "i"), bytes(8 * room)) for name in _Memory._fields))
    filler = RowFiller(code)
    slots = {
        "takes": KEYS | VALUES | SCHEMA_IDS | HEADERS, "last_offset": 1 << 62, "first_ms": -1 << 62,
        "last_ms": 1 << 62, "rows_max": room, "bytes_max": room, "headers_max": room,
        "least_ms": 1 << 62, "most_ms": -1 << 62,
    } | more_slots  # fmt: skip
    slots |= {name: column.buffer_info()[0] for name, column in memory._asdict().items()}
    for name, value in slots.items():
        filler.numbers[FILL.index(name)] = value
    verdict = filler.fill(log, frames, 0, len(frames) // WIDTH)
    return verdict, memory, filler.numbers[FILL.index("rows")]


def is_fill_right(code: RunCode) -> bool:
    """Return True if code for `fill` gives the right results for samples.

    Its `find` must be right.
    """
    run = _run_find(code, _LOG)
    log, frames = b"??" + _LOG, run.frames[: run.frame_count * WIDTH]
    return _are_all_taken(code, frames, log) and _are_others_refused(code, frames, log)


def _are_all_taken(code: RunCode, frames: array[int], log: bytes) -> bool:
    """Return True if the code fills the columns with the known values of the samples."""
    verdict, memory, rows = _run_fill(code, frames, log)
    if (verdict, rows) != (DONE, 4):
        return False
    value, long_value = bytes(range(5)), b"\x01" * 200
    expected = (
        [_BASE_OFFSET, _BASE_OFFSET + 3, _BASE_OFFSET + 4, _BASE_OFFSET + 6],
        [_BASE_MS - 3, _BASE_MS + (1 << 20), _BASE_MS, _MAX_MS],
        [1, -1, 0, 1],
        [5, -1, 200, 5],
        [0x01020304, NO_SCHEMA_ID, NO_SCHEMA_ID, 0x01020304],
        list(b"kk"),
        [0, 1, 1, 1, 2],
        list(value + long_value + value),
        [0, 5, 5, 205, 210],
        [0, 2, 2, 2, 4],
        list(b"hh"),
        [0, 1, 1, 2, 2],
        list(b"vvvv"),
        [0, 2, 2, 4, 4],
        [2, -1, 2, -1],
    )
    return all(
        column[: len(numbers)].tolist() == numbers
        for column, numbers in zip(memory, expected, strict=True)
    )


def _are_others_refused(code: RunCode, frames: array[int], log: bytes) -> bool:
    """Return True if the code leaves out unwanted records and stops where it must.

    It must stop for a lack of room, a compressed batch, and damaged records.
    """
    later = {"first_offset": _BASE_OFFSET + 4, "last_offset": _BASE_OFFSET + 4}
    verdict, memory, rows = _run_fill(code, frames, log, takes=VALUES, **later)
    if (verdict, rows, memory.value_ends[1]) != (DONE, 1, 200):
        return False
    if _run_fill(code, frames, log, rows_max=2)[::2] != (FULL, 0):
        return False
    short = len(_FIRST + _SECOND + _THIRD) - 1
    if _run_fill(code, frames, log, takes=KEYS, bytes_max=short)[::2] != (FULL, 0):
        return False
    compressed = array("q", frames)
    compressed[FRAME.index("attributes")] = 4
    if _run_fill(code, compressed, log)[::2] != (COMPRESSED, 0):
        return False
    # A record longer than its batch, one shorter than its length says, one record too many.
    start = 2 + _HEADER.size
    damaged = [
        log[:at] + new + log[at + 1 :] for at, new in ((start, b"\x7e"), (start + 6, b"\x0c"))
    ]
    more = array("q", frames)
    more[FRAME.index("count")] = 4
    return all(
        _run_fill(code, found, content)[::2] == (ODD, 0)
        for found, content in ((frames, damaged[0]), (frames, damaged[1]), (more, log))
    )
