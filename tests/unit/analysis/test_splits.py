"""Where segments are cut: an index is a hint, and a split starts at a batch that was verified."""

from __future__ import annotations

import pytest

from engine.analysis.batch_reader import Problem, SplitReader
from engine.analysis.splits import Selection, plan_splits
from engine.host.memory import MemoryFiles
from engine.naming import FileKind
from tests.unit.log.logs import batch, get, log_of, name_of, put

COUNT = 200
SIZE = len(batch(0, 10))
INDEX = name_of(0, FileKind.INDEX)


def _files() -> MemoryFiles:
    return log_of({0: b"".join(batch(10 * n, 10) for n in range(COUNT))}, interval_bytes=500)


def _read(files: MemoryFiles, split_bytes: int) -> tuple[list[int], list[Problem], int]:
    """Return base offsets, problems and the number of splits."""
    splits = plan_splits(files, ["/data"], Selection(), split_bytes)
    found, problems = [], []
    for split in splits:
        reader = SplitReader(files.open(split.path), split)
        found += [b.base_offset for _, b, _ in reader.batches()]
        problems += reader.problems
    return found, problems, len(splits)


def _shift(files: MemoryFiles, entry: int, by: int) -> None:
    content = bytearray(get(files, INDEX))
    at = 8 * entry + 4
    position = int.from_bytes(content[at : at + 4], "big") + by
    content[at : at + 4] = position.to_bytes(4, "big")
    put(files, INDEX, bytes(content))


@pytest.mark.parametrize("by", [-70, -1, 1, 5, SIZE // 2])
def test_an_index_entry_that_is_off_costs_no_batch(by: int) -> None:
    entries = len(get(_files(), INDEX)) // 8
    for entry in range(entries):
        files = _files()
        _shift(files, entry, by)
        offsets, problems, splits = _read(files, 3000)
        assert [10 * n for n in range(COUNT)] == offsets
        assert [] == problems
        assert splits > 3


def test_an_index_of_another_log_costs_no_batch() -> None:
    files = _files()
    log = b"".join(batch(10 * n, 10 if n % 7 else 11) for n in range(COUNT))
    put(files, INDEX, get(log_of({0: log}, interval_bytes=500), INDEX))
    offsets, problems, _ = _read(files, 3000)
    assert [10 * n for n in range(COUNT)] == offsets
    assert [] == problems


def test_a_damaged_batch_at_an_index_entry_is_no_start_of_a_split() -> None:
    for entry in range(20):
        files = _files()
        position = int.from_bytes(get(files, INDEX)[8 * entry + 4 : 8 * entry + 8], "big")
        log = bytearray(get(files, name_of(0)))
        log[position + 30] ^= 1
        put(files, name_of(0), bytes(log))
        offsets, problems, _ = _read(files, 3000)
        assert COUNT - 1 == len(offsets)
        assert {"bad_crc", "lost"} == {p.code for p in problems}
