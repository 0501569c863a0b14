"""A segment with a damaged batch is cut where the batches around it show, or not at all."""

from __future__ import annotations

import pytest

from engine.errors import CorruptRecord
from engine.log.log_config import LogConfig
from engine.log.segment import Segment
from engine.naming import FileKind
from tests.unit.log.test_segment import CONFIG, add, segment
from tests.unit.log.writing import NOW_MS


@pytest.mark.parametrize(("offset", "kept"), [(103, 3), (105, 3), (110, 3), (111, 4)])
def test_a_cut_in_a_gap_behind_a_damaged_last_offset_keeps_what_ends_before_it(
    offset: int, kept: int
) -> None:
    files, found = segment(config=LogConfig(index_interval_bytes=1 << 20))
    sizes = [add(found, base) for base in (100, 101, 102, 110, 111)]
    files.open(found.path(FileKind.LOG), write=True).write_at(sizes[0] + 23, b"\0\0\1\0")
    found.truncate_to(offset, NOW_MS)
    assert sum(sizes[:kept]) == found.size_bytes


@pytest.mark.parametrize(("bit", "offset"), [(128, 103), (64, 101), (8, 109)])
def test_a_cut_behind_a_base_offset_that_reads_wrongly_changes_nothing(
    bit: int, offset: int
) -> None:
    files, found = segment(config=LogConfig(index_interval_bytes=1 << 20))
    sizes = [add(found, 100 + n) for n in range(12)]
    files.flip(found.path(FileKind.LOG), sizes[0] + 7, bit)
    with pytest.raises(CorruptRecord):
        found.truncate_to(offset, NOW_MS)
    files.flip_back()
    assert sum(sizes[offset - 100 :]) == found.truncate_to(offset, NOW_MS)


def test_a_cut_behind_a_length_below_0_changes_nothing() -> None:
    files, found = segment(config=LogConfig(index_interval_bytes=1 << 20))
    sizes = [add(found, 100 + n) for n in range(6)]
    file = files.open(found.path(FileKind.LOG), write=True)
    file.write_at(sizes[0] + 23, b"\0\0\1\0")
    file.write_at(sum(sizes[:3]) + 8, (-12).to_bytes(4, "big", signed=True))
    with pytest.raises(CorruptRecord):
        found.truncate_to(105, NOW_MS)
    assert sum(sizes) == found.size_bytes


def test_a_cut_before_bytes_that_are_no_header_changes_nothing() -> None:
    files, found = segment()
    size = add(found, 100)
    files.open(found.path(FileKind.LOG), write=True).append((bytes(3),))
    found = Segment(files, "/d", 100, CONFIG, now_ms=NOW_MS)
    with pytest.raises(CorruptRecord):
        found.truncate_to(105, NOW_MS)
    assert size + 3 == found.size_bytes


@pytest.mark.parametrize(("offset", "kept"), [(101, 1), (103, 1), (106, 3)])
def test_a_damaged_batch_ends_where_a_whole_one_begins_right_after_it(
    offset: int, kept: int
) -> None:
    files, found = segment(config=LogConfig(index_interval_bytes=1 << 20))
    sizes = [add(found, base, count) for base, count in ((100, 1), (101, 3), (104, 1), (108, 1))]
    files.flip(found.path(FileKind.LOG), sum(sizes[:2]) - 1, 1)
    found.truncate_to(offset, NOW_MS)
    assert sum(sizes[:kept]) == found.size_bytes


@pytest.mark.parametrize(("last", "damaged"), [(103, {1}), (102, {0, 1})])
def test_a_cut_behind_a_damaged_batch_whose_end_nothing_shows_changes_nothing(
    last: int, damaged: set[int]
) -> None:
    files, found = segment(config=LogConfig(index_interval_bytes=1 << 20))
    sizes = [add(found, offset) for offset in (100, 101, last)]
    for number in damaged:
        files.flip(found.path(FileKind.LOG), sum(sizes[: number + 1]) - 1, 1)
    for offset in range(101, last):
        with pytest.raises(CorruptRecord):
            found.truncate_to(offset, NOW_MS)
    assert sum(sizes) == found.size_bytes
    # A whole batch that begins at the offset needs no other.
    assert sizes[2] == found.truncate_to(last, NOW_MS)


def test_a_cut_in_a_last_batch_takes_bytes_behind_it_that_are_no_batch() -> None:
    files, found = segment(config=LogConfig(index_interval_bytes=1 << 20))
    size, _ = add(found, 100), add(found, 102, 2)
    files.open(found.path(FileKind.LOG), write=True).append((bytes(17),))
    found = Segment(files, "/d", 100, CONFIG, now_ms=NOW_MS)
    found.truncate_to(103, NOW_MS)
    assert size == found.size_bytes
