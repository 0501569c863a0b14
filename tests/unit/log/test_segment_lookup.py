"""Offsets and times found by an index and a scan, as a scan of everything finds them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.host.memory import MemoryFiles
from engine.log.offset_index import OffsetIndex, read_offset_index
from engine.log.segment_lookup import find_end, find_offset, find_timestamp
from engine.log.time_index import read_time_index
from engine.naming import FileKind
from tests.unit.log.logs import DIR, batch, log_of, name_of

# Base offsets with gaps, times that do not rise.
BATCHES = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 3), st.integers(0, 50)), max_size=25)


def disk_of(shape: list[tuple[int, int, int]]) -> tuple[MemoryFiles, list[tuple[int, int, int]]]:
    """Return a disk, and (base, last, time) of each batch."""
    base, parts, found = 0, [], []
    for count, gap, time in shape:
        parts.append(batch(base, count, at_ms=time))
        found.append((base, base + count - 1, time))
        base += count + gap
    return log_of({0: b"".join(parts)}, interval_bytes=200), found


@settings(max_examples=40)
@given(BATCHES, st.integers(0, 130))
def test_an_offset_is_found_where_a_full_scan_finds_it(
    shape: list[tuple[int, int, int]], offset: int
) -> None:
    files, batches = disk_of(shape)
    index = read_offset_index(files, f"{DIR}/{name_of(0, FileKind.INDEX)}", 0)
    found = find_offset(files.open(f"{DIR}/{name_of(0)}"), index, offset)
    expected = next((last for _, last, _ in batches if last >= offset), None)
    assert (found.last_offset if found else None) == expected


@settings(max_examples=40)
@given(BATCHES, st.integers(-1, 60), st.integers(0, 100))
def test_a_time_is_found_where_a_full_scan_finds_it(
    shape: list[tuple[int, int, int]], timestamp: int, start_offset: int
) -> None:
    files, batches = disk_of(shape)
    index = read_offset_index(files, f"{DIR}/{name_of(0, FileKind.INDEX)}", 0)
    times = read_time_index(files, f"{DIR}/{name_of(0, FileKind.TIMEINDEX)}", 0)
    file = files.open(f"{DIR}/{name_of(0)}")
    found = find_timestamp(file, index, times, timestamp, start_offset=start_offset)
    expected = next(
        (
            (time, max(base, start_offset))
            for base, last, time in batches
            if time >= timestamp and last >= start_offset
        ),
        None,
    )
    assert found == expected


@settings(max_examples=40)
@given(BATCHES, st.integers(0, 300))
def test_the_end_is_behind_the_last_whole_batch(
    shape: list[tuple[int, int, int]], cut: int
) -> None:
    files, batches = disk_of(shape)
    index = read_offset_index(files, f"{DIR}/{name_of(0, FileKind.INDEX)}", 0)
    file = files.open(f"{DIR}/{name_of(0)}", write=True)
    size = file.size_bytes()
    file.truncate(max(size - cut, 0))
    ends, position = [(0, 0)], 0
    for base, last, _ in batches:
        position += len(batch(base, last - base + 1, at_ms=0))
        if position <= size - cut:
            ends.append((last + 1, position))
    assert ends[-1] == find_end(file, index)


def test_an_index_that_leads_nowhere_is_not_trusted() -> None:
    files, _ = disk_of([(1, 0, 5)] * 20)
    file = files.open(f"{DIR}/{name_of(0)}")
    wrong = OffsetIndex(0)
    for number in range(1, 20):
        wrong.append(number, 7 * number)
    wrong.append(1000, 1 << 30)
    assert find_end(file, wrong) == (20, file.size_bytes())


@pytest.mark.parametrize(
    ("stale_count", "is_found"), [(0, True), (1, True), (15, True), (16, False), (40, False)]
)
def test_the_end_is_searched_from_the_last_sixteen_entries_and_then_from_the_start(
    stale_count: int, is_found: bool
) -> None:
    files, _ = disk_of([(1, 0, 5)] * 4)
    file = files.open(f"{DIR}/{name_of(0)}", write=True)
    size = file.size_bytes() // 4
    # What a scan from the start ends at: the size of the second batch is none.
    file.write_at(size + 8, bytes(4))
    index = OffsetIndex(0)
    index.append(2, 2 * size)
    for number in range(stale_count):
        index.append(100 + number, 4 * size + number)
    assert find_end(file, index) == ((4, 4 * size) if is_found else (1, size))
