"""The offset index: bytes, look-ups, preallocated space."""

from __future__ import annotations

import struct
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.host.memory import MemoryFiles
from engine.log.offset_index import IndexOrderBroken, OffsetIndex, parse_offset_index
from engine.log.recovery.index_check import check_offset_index

ENTRIES = st.lists(st.integers(1, 1000), max_size=30).map(
    lambda steps: [(100 + sum(steps[: n + 1]), 7 * sum(steps[: n + 1])) for n in range(len(steps))]
)


def index_of(entries: list[tuple[int, int]], base_offset: int = 100) -> OffsetIndex:
    index = OffsetIndex(base_offset)
    for offset, position in entries:
        index.append(offset, position)
    return index


def test_an_entry_is_a_relative_offset_and_a_position() -> None:
    assert index_of([(122, 762)]).encode() == struct.pack(">ii", 22, 762)


def test_the_hex_of_the_seed_example_decodes_to_its_entries() -> None:
    # Source: LOG-4.
    content = bytes.fromhex(
        "000000060000009c0000000e000001cb00000016000002fa0000001a000003b00000001f00000475"
    )
    entries = [tuple(entry) for entry in parse_offset_index(content, 0)]
    assert entries == [(6, 156), (14, 459), (22, 762), (26, 944), (31, 1141)]


@given(ENTRIES, st.integers(0, 50), st.integers(0, 7))
def test_what_was_written_is_read_behind_any_padding(
    entries: list[tuple[int, int]], padding: int, leftover: int
) -> None:
    content = index_of(entries).encode()
    found = parse_offset_index(content + bytes(8 * padding + leftover), 100)
    assert [tuple(entry) for entry in found] == entries
    assert (found.padding_bytes, found.leftover_bytes) == (8 * padding, leftover)
    assert not found.hides_entries
    assert found.encode() == content


@given(ENTRIES, st.integers(90, 40_000))
def test_lookup_is_the_greatest_entry_at_or_below(
    entries: list[tuple[int, int]], target: int
) -> None:
    expected = max((e for e in entries if e[0] <= target), default=(100, 0))
    assert tuple(index_of(entries).lookup(target)) == expected


@given(ENTRIES, st.integers(0, 300_000))
def test_the_upper_bound_is_the_first_entry_at_or_behind_a_position(
    entries: list[tuple[int, int]], position: int
) -> None:
    expected = next((e for e in entries if e[1] >= position), None)
    assert index_of(entries).upper_bound(position) == expected


@given(ENTRIES, st.integers(90, 40_000))
def test_truncation_leaves_the_entries_below(entries: list[tuple[int, int]], offset: int) -> None:
    index = index_of(entries)
    index.truncate_to(offset)
    assert [tuple(entry) for entry in index] == [e for e in entries if e[0] < offset]


@given(st.binary(max_size=200))
def test_any_bytes_are_some_index(content: bytes) -> None:
    index = parse_offset_index(content, 5)
    index.lookup(7)
    index.find_problem()
    assert len(index) * 8 + index.padding_bytes + index.leftover_bytes == len(content)


def test_a_zeroed_entry_hides_what_follows() -> None:
    content = struct.pack(">6i", 1, 5, 0, 0, 3, 9)
    index = parse_offset_index(content, 0)
    assert [tuple(entry) for entry in index] == [(1, 5)]
    assert index.hides_entries


def test_a_file_of_zeros_has_no_entries() -> None:
    assert len(parse_offset_index(bytes(8), 0)) == 0
    assert len(parse_offset_index(bytes(800), 0)) == 0
    assert len(parse_offset_index(b"", 0)) == 0
    assert parse_offset_index(b"", 9).last_offset == 9


def test_kafkas_sanity_check_finds_odd_sizes_and_low_offsets() -> None:
    assert parse_offset_index(bytes(9), 0).find_problem() == "1 bytes after the last whole entry"
    low = parse_offset_index(struct.pack(">ii", -3, 10), 50)
    assert low.find_problem() == "last offset 47 is below the base offset 50"
    assert index_of([(101, 5)]).find_problem() is None


def test_entries_must_rise_and_fit() -> None:
    index = index_of([(101, 5)])
    for offset in (101, 100, 99, 100 + (1 << 31)):
        with pytest.raises(IndexOrderBroken):
            index.append(offset, 9)
    index.append(100 + (1 << 31) - 1, 9)
    assert index.entry(-1) == (100 + (1 << 31) - 1, 9)


@pytest.mark.parametrize(
    ("last", "problem"),
    [(3, "last offset 103 is below the first, 105"), (9, None)],
)
def test_a_last_offset_below_the_first_is_not_trusted(last: int, problem: str | None) -> None:
    files = MemoryFiles()
    with closing(files.open("/i", write=True, create=True)) as handle:
        handle.append((struct.pack(">iiiiii", 5, 10, 7, 20, last, 30),))
    assert (problem, True) == check_offset_index(files, "/i", 100)
