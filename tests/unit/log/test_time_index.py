"""The time index: bytes, look-ups, preallocated space, what is left out."""

from __future__ import annotations

import struct
import tracemalloc
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.host.memory import MemoryFiles
from engine.log.offset_index import IndexOrderBroken
from engine.log.recovery.index_check import check_time_index
from engine.log.time_index import TimeIndex, TimestampOffset, parse_time_index, read_last_entry
from engine.naming import FileKind
from tests.unit.log.writing import NOW_MS, SMALL, open_log, sent

ENTRIES = st.lists(st.integers(1, 1000), max_size=30).map(
    lambda steps: [(5 * sum(steps[: n + 1]), 100 + sum(steps[: n + 1])) for n in range(len(steps))]
)


def index_of(entries: list[tuple[int, int]], base_offset: int = 100) -> TimeIndex:
    index = TimeIndex(base_offset)
    for timestamp, offset in entries:
        assert index.maybe_append(timestamp, offset)
    return index


def test_an_entry_is_a_timestamp_and_a_relative_offset() -> None:
    assert index_of([(1_700_000_000_000, 122)]).encode() == struct.pack(
        ">qi", 1_700_000_000_000, 22
    )


def test_nothing_stays_in_memory_of_an_index_that_was_written() -> None:
    index = index_of([(5 * n, 100 + n) for n in range(1, 10_001)])
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        assert 120_000 == len(index.encode())
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 10_000


@given(ENTRIES, st.integers(0, 50), st.integers(0, 11))
def test_what_was_written_is_read_behind_any_padding(
    entries: list[tuple[int, int]], padding: int, leftover: int
) -> None:
    if not entries and padding == 1:
        return  # one zero entry alone is an entry, see below
    content = index_of(entries).encode()
    found = parse_time_index(content + bytes(12 * padding + leftover), 100)
    assert [tuple(entry) for entry in found] == entries
    assert (found.padding_bytes, found.leftover_bytes) == (12 * padding, leftover)
    assert found.encode() == content


@given(ENTRIES, st.integers(-5, 200_000))
def test_lookup_is_the_greatest_entry_at_or_below(
    entries: list[tuple[int, int]], timestamp: int
) -> None:
    expected = max((e for e in entries if e[0] <= timestamp), default=(-1, 100))
    assert tuple(index_of(entries).lookup(timestamp)) == expected


@given(ENTRIES, st.integers(90, 40_000))
def test_truncation_leaves_the_entries_below(entries: list[tuple[int, int]], offset: int) -> None:
    index = index_of(entries)
    index.truncate_to(offset)
    assert [tuple(entry) for entry in index] == [e for e in entries if e[1] < offset]


@given(st.binary(max_size=200))
def test_any_bytes_are_some_index(content: bytes) -> None:
    index = parse_time_index(content, 5)
    index.lookup(7)
    index.find_problem()
    assert len(index) * 12 + index.padding_bytes + index.leftover_bytes == len(content)


def test_a_first_entry_of_1970_is_one_when_it_is_the_whole_file() -> None:
    assert [tuple(e) for e in parse_time_index(bytes(12), 7)] == [(0, 7)]
    assert len(parse_time_index(bytes(24), 7)) == 0


def test_a_zeroed_entry_hides_what_follows() -> None:
    content = struct.pack(">qiqiqi", 10, 1, 0, 0, 30, 3)
    index = parse_time_index(content, 0)
    assert [tuple(entry) for entry in index] == [(10, 1)]
    assert index.hides_entries


def test_an_equal_timestamp_is_left_out() -> None:
    index = index_of([(10, 101)])
    assert not index.maybe_append(10, 105)
    assert len(index) == 1


def test_records_without_time_give_no_entry() -> None:
    assert not TimeIndex(0).maybe_append(-1, 0)


def test_entries_must_not_fall_back() -> None:
    index = index_of([(10, 105)])
    with pytest.raises(IndexOrderBroken):
        index.maybe_append(11, 104)
    with pytest.raises(IndexOrderBroken):
        index.maybe_append(9, 106)
    with pytest.raises(IndexOrderBroken):
        index.maybe_append(11, 100 + (1 << 31))


def test_kafkas_sanity_check_finds_odd_sizes_and_low_entries() -> None:
    assert parse_time_index(bytes(13), 0).find_problem() == "1 bytes after the last whole entry"
    falling = parse_time_index(struct.pack(">qiqi", 10, 1, 5, 2), 0)
    assert falling.find_problem() == "last timestamp 5 is below the first, 10"
    low = parse_time_index(struct.pack(">qi", 10, -1), 9)
    assert low.find_problem() == "last offset 8 is below the base offset 9"
    assert TimeIndex(0).find_problem() is None


@pytest.mark.parametrize(
    ("last", "problem"),
    [
        ((4, 9), "last timestamp 4 is below the first, 5"),
        ((7, 0), "last offset 100 is below the first, 101"),
        ((5, 1), None),
        ((7, 9), None),
    ],
)
def test_a_last_entry_below_the_first_is_not_trusted(
    last: tuple[int, int], problem: str | None
) -> None:
    files = MemoryFiles()
    with closing(files.open("/t", write=True, create=True)) as handle:
        handle.append((struct.pack(">qiqiqi", 5, 1, 6, 4, *last),))
    assert (problem, True) == check_time_index(files, "/t", 100)
    entry = TimestampOffset(last[0], 100 + last[1])
    assert (entry if problem is None else None) == read_last_entry(files, "/t", 100)


def test_retention_does_not_believe_a_last_time_below_the_first() -> None:
    files = MemoryFiles()
    log, _ = open_log(files, SMALL)
    for number in range(40):
        log.append_as_leader(sent(3, at_ms=NOW_MS + 10 * number), 0, NOW_MS)
    log.close(NOW_MS)
    path = log.segments.first.path(FileKind.TIMEINDEX)
    right = files.read_bytes(path)
    with closing(files.open(path, write=True)) as handle:
        handle.write_at(len(right) - 12, struct.pack(">q", 77))
    again, report = open_log(
        files, SMALL._replace(retention_ms=86_400_000), was_stopped_cleanly=True
    )
    assert {} == again.delete_old_segments(again.log_end_offset, NOW_MS)
    assert (1, right) == (report.recovered_segments, files.read_bytes(path))
