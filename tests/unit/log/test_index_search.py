"""Look-ups in the file of an offset index: what the whole index says, by few and small reads."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.host.memory import MemoryFiles
from engine.host.real import RealFiles
from engine.log.index_search import READ_ENTRIES, search_offset_index
from engine.log.offset_index import OffsetPosition, parse_offset_index
from tests.open_files import open_below

BASE = 1000
PATH = "/log/i.index"


def file_of(content: bytes) -> MemoryFiles:
    files = MemoryFiles()
    files.make_dir("/log")
    files.open(PATH, write=True, create=True).append((content,))
    return files


def rising(count: int, step: int = 3) -> list[tuple[int, int]]:
    return [(step * number + 2, 10 * number + 4) for number in range(count)]


def encoded(entries: list[tuple[int, int]]) -> bytes:
    return b"".join(struct.pack(">ii", *each) for each in entries)


def search(files: MemoryFiles, offset: int, *, is_whole: bool = False) -> OffsetPosition | None:
    return search_offset_index(files, PATH, BASE, offset, is_read_whole=lambda _size: is_whole)


@given(st.integers(1, 3 * READ_ENTRIES), st.integers(1, 5), st.data())
def test_it_finds_what_the_whole_index_says(count: int, step: int, data: st.DataObject) -> None:
    content = encoded(rising(count, step))
    offset = data.draw(st.integers(BASE - 1, BASE + step * count + 5))
    expected = parse_offset_index(content, BASE).lookup(offset)
    assert expected == search(file_of(content), offset)


@pytest.mark.parametrize("near", [READ_ENTRIES - 1, READ_ENTRIES, READ_ENTRIES + 1, 5000])
def test_it_finds_what_the_whole_index_says_at_every_offset_of_some_sizes(near: int) -> None:
    content = encoded(rising(near))
    index, files = parse_offset_index(content, BASE), file_of(content)
    for offset in range(BASE - 1, BASE + 3 * near + 3, 7 if near > 1000 else 1):
        assert index.lookup(offset) == search(files, offset)


def test_a_full_index_takes_a_dozen_reads_of_which_one_is_of_a_page() -> None:
    entries = rising(1 << 18)
    files = file_of(encoded(entries))
    reads: list[str] = []
    look = files.access

    def note(operation: str, path: str) -> None:
        reads.append(operation)
        look(operation, path)

    files.access = note  # type: ignore[method-assign]
    assert OffsetPosition(BASE + 302, 1004) == search(files, BASE + 303)
    assert 11 == reads.count("read")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        encoded(rising(9)) + b"\0",
        encoded(rising(9)) + bytes(8 * 3),
        encoded([(5, 4), (-1, 9)]),
        encoded([*rising(2000)[:999], (0, 0), *rising(2000)[1000:]]),
        encoded([*rising(2000)[:999], (1 << 30, 9994), *rising(2000)[1000:]]),
        encoded([*rising(2000)[:999], (2999, 1 << 30), *rising(2000)[1000:]]),
        # Met in the last read alone, which is of the entries from 750 on.
        encoded([*rising(2000)[:1000], (3002, 1 << 30), *rising(2000)[1001:]]),
    ],
    ids=["empty", "leftover", "preallocated", "negative", "zeros", "offset", "position", "last"],
)
def test_a_search_without_a_certain_result_is_left_to_a_full_read(content: bytes) -> None:
    assert None is search(file_of(content), BASE + 3002)


def test_one_that_is_missing_or_read_whole_anyway_is_not_searched() -> None:
    files = file_of(encoded(rising(9)))
    assert None is search(files, BASE + 4, is_whole=True)
    files.remove(PATH)
    assert None is search(files, BASE + 4)


@pytest.mark.parametrize("content", [b"", encoded(rising(9)), encoded([(5, 4), (-1, 9)])])
def test_the_file_is_closed_behind_the_look(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "i.index"
    path.write_bytes(content)
    search_offset_index(RealFiles(), str(path), BASE, BASE + 4, is_read_whole=lambda _size: False)
    assert [] == open_below(tmp_path)


def test_an_entry_of_the_base_offset_is_found() -> None:
    files = file_of(encoded([(0, 4)]))
    assert OffsetPosition(BASE, 4) == search(files, BASE)
    assert OffsetPosition(BASE, 0) == search(files, BASE - 1)
