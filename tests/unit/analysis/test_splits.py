"""Where segments are cut: an index is a hint, and a split starts at a batch that was verified."""

from __future__ import annotations

import re

import pytest

from engine.analysis.batch_reader import SplitReader
from engine.analysis.problem import Problem
from engine.analysis.splits import (
    NothingSelected,
    Selection,
    Split,
    decode_splits,
    encode_splits,
    pack_splits,
    plan_splits,
)
from engine.host.memory import MemoryFiles
from engine.limits import (
    FILE_OPEN_WEIGHT_BYTES,
    FINDINGS_OF_A_KIND_MAX,
    SPLIT_SEGMENTS_MAX,
    TASK_BYTES_MAX,
)
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


def test_of_a_log_with_many_gaps_as_many_as_are_listed_of_a_kind_are_reported() -> None:
    count = FINDINGS_OF_A_KIND_MAX + 5
    files = log_of({0: b"".join(batch(20 * n, 10) for n in range(count + 1))})
    offsets, problems, _ = _read(files, 1 << 30)
    assert [20 * n for n in range(count + 1)] == offsets
    assert ["gap"] * FINDINGS_OF_A_KIND_MAX == [problem.code for problem in problems]
    assert "offsets 10 to 19 are missing" == problems[0].message


def _pieces(*sizes: int) -> list[Split]:
    """Return splits of these weights: what opening a file costs is in them."""
    return [
        Split("/data/t-0/0.log", "/data", "t", 0, 0, 0, size - FILE_OPEN_WEIGHT_BYTES, False, 0)
        for size in sizes
    ]


def _packed(sizes: list[int], parallelism: int, split_bytes: int) -> list[int]:
    """Return how many splits each group has."""
    pieces = _pieces(*sizes)
    groups = pack_splits(pieces, parallelism, split_bytes)
    assert pieces == [split for group in groups for split in group]
    return [len(group) for group in groups]


MIB = 1 << 20
#: More than it weighs to open a file.
PIECE = 10 * MIB


@pytest.mark.parametrize(
    ("count", "parallelism", "split_bytes", "groups"),
    [
        # Little data is spread over all cores.
        (8, 4, 2 * PIECE, [2, 2, 2, 2]),
        (8, 1, 8 * PIECE, [8]),
        (1, 4, 2 * PIECE, [1]),
        # More of it is read in groups of about the size that is asked for.
        (9, 4, 2 * PIECE, [2, 2, 2, 2, 1]),
        (9, 1, 4 * PIECE, [4, 4, 1]),
        (9, 0, 4 * PIECE, [4, 4, 1]),
        # Very much has three groups for each core.
        (24, 2, PIECE, [4, 4, 4, 4, 4, 4]),
        (24, 1, PIECE, [8, 8, 8]),
        (24, 0, PIECE, [8, 8, 8]),
    ],
)
def test_splits_are_packed_by_how_much_there_is_and_how_many_read(
    count: int, parallelism: int, split_bytes: int, groups: list[int]
) -> None:
    assert groups == _packed([PIECE] * count, parallelism, split_bytes)


def test_no_group_has_more_segments_than_its_bound() -> None:
    count = SPLIT_SEGMENTS_MAX + 1
    sizes = [FILE_OPEN_WEIGHT_BYTES] * count
    assert [SPLIT_SEGMENTS_MAX, 1] == _packed(sizes, 1, count * FILE_OPEN_WEIGHT_BYTES)


def test_a_task_reads_no_more_than_it_may_read_again() -> None:
    sizes = [TASK_BYTES_MAX // 2] * 24
    assert [2] * 12 == _packed(sizes, 1, PIECE)


def test_splits_are_read_as_they_were_written() -> None:
    pieces = plan_splits(_files(), ["/data"], Selection(), 3000)
    text = encode_splits(pieces)
    assert text == encode_splits(decode_splits(text))
    assert [split[:7] for split in pieces] == [split[:7] for split in decode_splits(text)]


def test_only_live_partitions_that_were_chosen_are_read() -> None:
    files = _files()
    topics = [split.topic for split in plan_splits(files, ["/data"], Selection(), 1 << 30)]
    assert 1 == len(topics)
    whole = Selection(re.compile(topics[0]), frozenset({0}))
    assert 1 == len(plan_splits(files, ["/data"], whole, 1 << 30))
    for other in (
        Selection(re.compile(topics[0][:-1]), None),
        Selection(re.compile(f"{topics[0]}x"), None),
        Selection(None, frozenset({1})),
    ):
        with pytest.raises(NothingSelected, match="no partition to read in /data"):
            plan_splits(files, ["/data"], other, 1 << 30)
