"""Which batches compiled code finds, which records it takes, and that it stays in its memory."""

from __future__ import annotations

import ctypes
import random
from array import array
from itertools import pairwise
from struct import pack_into

import pytest

from engine.native import compiled_runs
from engine.native.batch_runs import WIDTH, BatchRun, RowFiller, RunCode, RunFinder, RunTier
from engine.native.compiled_runs import is_right, load_or_compile_runs
from engine.native.run_layout import COMPRESSED, DONE, FILL, FRAME, FULL, ODD, SLACK_BYTES
from engine.native.run_samples import is_fill_right, is_find_right
from engine.records.batch import BatchView
from engine.records.builder import BatchBuilder, BatchSettings
from engine.records.codec import Codec
from tests.compiled_walk import compiled_runs_here
from tests.guarded_memory import guarded

CODE = compiled_runs_here()
pytestmark = pytest.mark.skipif(CODE is None, reason="no compiled code on this machine")
CANARY = 0x5A


def _batch(base_offset: int, count: int = 3, **more: object) -> bytes:
    builder = BatchBuilder(BatchSettings(base_offset=base_offset, leader_epoch=4, **more))  # type: ignore[arg-type]
    for n in range(count):
        value = None if n == 1 else b"v" * (n * 7)
        builder.append(1000 + n, b"key%d" % n if n % 3 else None, value, ((b"h".decode(), b"x"),))
    return bytes(builder.build())


def _log(count: int = 6, **more: object) -> bytes:
    return b"".join(_batch(3 * n, **more) for n in range(count))


def _find(log: bytes, limit: int | None = None, **more: int) -> BatchRun:
    assert CODE is not None
    finder = RunFinder(CODE, passes_control=True)
    asked = {"file_position": 100, "epoch": 4, "next_offset": 0} | more
    end = len(log) if limit is None else limit
    return finder.find(guarded(log), 0, end, **asked)


class _Columns:
    """Columns of exactly the size that is said, each before memory that cannot be touched."""

    def __init__(self, rows: int, size_bytes: int, headers: int, takes: int = 15) -> None:
        assert CODE is not None
        self.filler = RowFiller(CODE)
        of_rows = {"offsets": 8, "times": 8, "schema_ids": 8, "key_sizes": 4, "value_sizes": 4}
        sizes = {name: rows * width for name, width in of_rows.items()}
        sizes |= dict.fromkeys(("keys", "values", "names", "contents"), size_bytes + SLACK_BYTES)
        sizes |= dict.fromkeys(("key_ends", "value_ends", "header_ends"), 4 * (rows + 1))
        sizes |= dict.fromkeys(("name_ends", "content_ends"), 4 * (headers + 1))
        sizes["content_sizes"] = 4 * headers
        self._memory = {name: guarded(bytes(size)) for name, size in sizes.items()}
        said = {
            "takes": takes, "last_offset": 1 << 62, "first_ms": -(1 << 62), "last_ms": 1 << 62,
            "rows_max": rows, "bytes_max": size_bytes, "headers_max": headers,
        }  # fmt: skip
        addresses = {name: _address(memory) for name, memory in self._memory.items()}
        for name, number in (said | addresses).items():
            self.filler.numbers[FILL.index(name)] = number

    def said(self, name: str) -> int:
        return self.filler.numbers[FILL.index(name)]

    def fields(self, data: str, ends: str) -> list[bytes]:
        """Return the fields of a column."""
        places = self._memory[ends].cast("i")[: self.said("rows") + 1].tolist()
        return [bytes(self._memory[data][start:end]) for start, end in pairwise(places)]


def _address(memory: memoryview) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(memory)) if len(memory) else 0


def _fill(data: memoryview | bytes, frames: array[int], count: int, columns: _Columns) -> int:
    return columns.filler.fill(data, frames, 0, count)


def test_a_run_has_the_batches_that_follow_each_other() -> None:
    log = _log()
    run = _find(log + _batch(19))
    assert (6, len(log), 18, 18) == (
        run.frame_count, run.end, run.next_offset, run.record_count,
    )  # fmt: skip
    assert [0, 3, 6, 9, 12, 15] == run.field("base_offset")
    assert [100 + n * len(log) // 6 for n in range(6)] == run.field("position")
    views = [BatchView(memoryview(log), start) for start, _, _ in run.iter_checksums()]
    assert [(view.crc, view.size_bytes) for view in views] == [
        (crc, end - start) for start, end, crc in run.iter_checksums()
    ]
    assert not run.is_compacted


@pytest.mark.parametrize(
    ("at", "form", "value"),
    [
        (0, ">q", 10),
        (0, ">q", -1),
        (8, ">i", 48),
        (8, ">i", 1 << 30),
        (8, ">i", -(1 << 31)),
        (12, ">i", 5),
        (16, ">b", 1),
        (16, ">b", 3),
        (16, ">b", -126),
        (21, ">h", 5),
        (23, ">i", -1),
        (27, ">q", 1 << 62),
        (27, ">q", -(1 << 63)),
        (57, ">i", 0),
        (57, ">i", -1),
    ],
)
def test_a_run_ends_before_a_batch_that_is_not_plain(at: int, form: str, value: int) -> None:
    log = bytearray(_log())
    third = 2 * (len(log) // 6)
    pack_into(form, log, third + at, value)
    run = _find(bytes(log))
    assert (2, third, 6) == (run.frame_count, run.end, run.next_offset)


def test_a_run_ends_at_its_limit_and_at_the_last_whole_batch() -> None:
    log = _log()
    size = len(log) // 6
    assert 3 == _find(log, limit=2 * size + 1).frame_count
    assert 2 == _find(log, limit=2 * size).frame_count
    assert 5 == _find(log[:-1]).frame_count
    assert 0 == _find(log, epoch=5).frame_count
    assert 0 == _find(log, next_offset=1).frame_count
    assert 2 == _find(log, frames_max=2).frame_count


def test_fewer_records_than_offsets_show_compaction() -> None:
    log = bytearray(_log(1))
    pack_into(">i", log, 57, 2)
    assert _find(bytes(log)).is_compacted


def test_records_become_columns() -> None:
    log = _log(2)
    run = _find(log)
    columns = _Columns(6, len(log), len(log))
    assert DONE == _fill(run.buffer, run.frames, 2, columns)
    assert 6 == columns.said("rows")
    assert [b"", b"key1", b"key2"] * 2 == columns.fields("keys", "key_ends")
    assert [b"", b"", b"v" * 14] * 2 == columns.fields("values", "value_ends")
    assert (2, 2, 6) == (
        columns.said("key_nulls"), columns.said("value_nulls"), columns.said("headers"),
    )  # fmt: skip
    assert [3, 3] == run.field("rows")


def test_of_columns_that_are_not_wanted_nothing_is_touched() -> None:
    log = _log(2)
    run = _find(log)
    columns = _Columns(6, 0, 0, takes=0)
    assert DONE == _fill(run.buffer, run.frames, 2, columns)
    assert (6, 0, 0) == (
        columns.said("rows"), columns.said("key_bytes"), columns.said("value_bytes"),
    )  # fmt: skip


def test_a_batch_without_room_is_left_whole() -> None:
    log = _log(2)
    run = _find(log)
    columns = _Columns(5, len(log), len(log))
    assert FULL == _fill(run.buffer, run.frames, 2, columns)
    assert (3, 1) == (columns.said("rows"), columns.said("frame"))
    assert FULL == _fill(run.buffer, run.frames, 2, _Columns(6, 20, 60))


def test_a_compressed_batch_is_left_to_be_opened() -> None:
    run = _find(_log(2, codec=Codec.GZIP))
    assert COMPRESSED == _fill(run.buffer, run.frames, 2, _Columns(6, 500, 500))


@pytest.mark.parametrize("seed", range(40))
def test_no_bytes_send_it_outside_of_its_memory(seed: int) -> None:
    source = random.Random(seed)
    log = _log()
    for _ in range(60):
        damaged = bytearray(log)
        for _ in range(source.choice((1, 1, 2, 8))):
            damaged[source.randrange(len(log))] = source.choice(
                (0, 1, 127, 128, 255, source.randrange(256))
            )
        cut = bytes(damaged[: source.choice((len(log), source.randrange(1, len(log))))])
        run = _find(cut)
        assert run.end <= len(cut)
        _check_filling(run.buffer, run.frames, run.frame_count, source)


@pytest.mark.parametrize("seed", range(20))
def test_random_records_send_it_nowhere(seed: int) -> None:
    source = random.Random(seed)
    for _ in range(100):
        size = source.randrange(1, 200)
        data = guarded(
            bytes(source.choice((0, 2, 4, 14, 20, 255, source.randrange(256))) for _ in range(size))
        )
        frame = array("q", bytes(8 * WIDTH))
        frame[FRAME.index("start")] = source.choice((-61, -61, -61, 0, -70, 5, size))
        frame[FRAME.index("size")] = source.choice((size + 61, size + 61, size + 62, size, 0, -5))
        frame[FRAME.index("count")] = source.choice((1, 1, 2, 3, size // 7, 1 << 31, 0, -1))
        _check_filling(data, frame, 1, source)


def _check_filling(data: memoryview, frames: array[int], count: int, source: random.Random) -> None:
    """Fill columns with room for all, or for less; what is taken adds up."""
    rows, headers = source.choice((60, 2)), source.choice((600, 3))
    columns = _Columns(rows, source.choice((len(data), 50)), headers, takes=source.randrange(16))
    verdict = _fill(data, frames, count, columns)
    assert verdict in {DONE, FULL, COMPRESSED, ODD}
    taken = sum(frames[FRAME.index("rows") : columns.said("frame") * WIDTH : WIDTH])
    assert taken == columns.said("rows") <= rows
    assert columns.said("headers") <= headers


def test_code_that_errs_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    assert CODE is not None
    swapped = RunCode(CODE.fill, CODE.find)
    assert is_right(CODE)
    assert not is_find_right(CODE.fill)
    assert not is_fill_right(CODE._replace(fill=CODE.find))
    monkeypatch.setattr(RunTier, "code", None)
    monkeypatch.setattr(compiled_runs, "load_runs", lambda: swapped)
    assert not load_or_compile_runs()
    assert RunTier.code is None


def test_kept_code_is_taken_up_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RunTier, "code", None)
    assert load_or_compile_runs()
    assert RunTier.code is not None


def test_without_kept_code_a_compiler_is_started_for_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[bool] = []

    def none() -> None:
        """Return nothing: there is no code, and no place for it."""

    monkeypatch.setattr(RunTier, "code", None)
    monkeypatch.setattr(compiled_runs, "load_runs", none)
    monkeypatch.setattr(compiled_runs, "start_compiler", lambda: started.append(True))
    assert not load_or_compile_runs()
    assert [True] == started
    monkeypatch.setattr(compiled_runs, "kept_find_path", none)
    assert not load_or_compile_runs()
    assert [True] == started
