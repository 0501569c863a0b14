"""Indexes in memory: bounded for all logs of a process."""

from __future__ import annotations

import gc
from itertools import pairwise

import pytest

from engine.host.memory import MemoryFiles
from engine.limits import INDEX_SEARCHES_MAX
from engine.log import segment as segment_module
from engine.log.index_memory import IndexMemory
from engine.log.local_log import LocalLog
from engine.naming import FileKind
from tests.unit.log.hooks import hooks_of
from tests.unit.log.writing import DIR, NOW_MS, SMALL, batches_of, fill, names, open_log


class Indexed:
    """A segment that is told to drop its indexes."""

    def __init__(self) -> None:
        self.drops = 0

    def drop_indexes(self) -> None:
        self.drops += 1


def test_the_indexes_that_were_not_used_for_longest_are_dropped_beyond_the_bound() -> None:
    memory = IndexMemory(100_000)
    segments = [Indexed() for _ in range(4)]
    for segment in segments:
        memory.count_segment(segment, 30_000)
    assert [1, 0, 0, 0] == [segment.drops for segment in segments]
    memory.count_segment(segments[1], 30_000)
    memory.count_segment(Indexed(), 30_000)
    assert [1, 0, 1, 0] == [segment.drops for segment in segments]


def test_the_indexes_that_were_used_last_stay() -> None:
    memory = IndexMemory(100_000)
    segments = [Indexed() for _ in range(4)]
    for segment in segments[:3]:
        memory.count_segment(segment, 30_000)
    memory.mark_used(segments[0])
    memory.mark_used(Indexed())
    memory.count_segment(segments[3], 30_000)
    assert [0, 1, 0, 0] == [segment.drops for segment in segments]


def test_a_look_up_is_a_use_of_an_index(monkeypatch: pytest.MonkeyPatch) -> None:
    log, _ = log_with_bound(monkeypatch, 1 << 20)
    first = log.segments.first
    first.locate_offset(first.base_offset + 9)
    assert id(first) == next(reversed(segment_module.LOADED_INDEXES._loaded))


def test_what_is_larger_than_the_bound_alone_stays() -> None:
    memory = IndexMemory(100)
    segment = Indexed()
    memory.count_segment(segment, 10_000)
    assert 0 == segment.drops


def test_a_segment_that_is_gone_takes_nothing() -> None:
    memory = IndexMemory(100_000)
    segment = Indexed()
    memory.count_segment(segment, 30_000)
    memory.forget(segment)
    assert 0 == memory.size_bytes


def test_a_segment_that_nobody_has_takes_nothing() -> None:
    memory = IndexMemory(40_000)
    memory.count_segment(Indexed(), 30_000)
    gc.collect()
    assert 0 == memory.size_bytes


def log_with_bound(monkeypatch: pytest.MonkeyPatch, bytes_max: int) -> tuple[LocalLog, MemoryFiles]:
    monkeypatch.setattr(segment_module, "LOADED_INDEXES", IndexMemory(bytes_max))
    files = MemoryFiles()
    log, _ = open_log(files, SMALL, hooks_of())
    fill(log, [3] * 40)
    return log, files


def test_reads_of_closed_segments_stay_the_same_when_indexes_are_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log, _ = log_with_bound(monkeypatch, 0)
    closed = list(log.segments)[:-1]
    assert len(closed) > 3
    assert [None] * (len(closed) - 1) == [segment._index for segment in closed[:-1]]
    assert [b for b, _ in batches_of(log)] == [
        log.read(base, 1).start.offset for base in range(0, 120, 3)
    ]
    assert [base + 2 for base in range(0, 120, 3)] == [
        place.last_offset
        for base in range(0, 120, 3)
        if (segment := log.segments.floor(base)) and (place := segment.locate_offset(base))
    ]


@pytest.mark.parametrize("was_stopped_cleanly", [False, True])
def test_indexes_that_a_start_built_again_are_dropped_beyond_the_bound(
    monkeypatch: pytest.MonkeyPatch, was_stopped_cleanly: bool
) -> None:
    log, files = log_with_bound(monkeypatch, 0)
    log.close(NOW_MS)
    if was_stopped_cleanly:
        for name in names(files, kind=FileKind.INDEX):
            files.remove(f"{DIR}/{name}")
    again, report = open_log(files, SMALL, hooks_of(), was_stopped_cleanly=was_stopped_cleanly)
    closed = list(again.segments)[:-1]
    assert report.recovered_segments > len(closed) > 3
    loaded = [segment for segment in closed if segment._index is not None]
    assert len(loaded) <= 1
    assert [b for b, _ in batches_of(again)] == [
        again.read(base, 1).start.offset for base in range(0, 120, 3)
    ]


def test_a_recovery_writes_the_indexes_of_a_segment_before_it_reads_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log, files = log_with_bound(monkeypatch, 0)
    log.close(NOW_MS)
    looks: list[tuple[str, str]] = []
    look = files.access

    def note(operation: str, path: str) -> None:
        looks.append((operation, path))
        look(operation, path)

    monkeypatch.setattr(files, "access", note)
    again, _ = open_log(files, SMALL, hooks_of())
    for segment, following in pairwise(list(again.segments)[:-1]):
        written = looks.index(("open", segment.path(FileKind.INDEX)))
        assert ("read", following.path(FileKind.LOG)) in looks[written:]


def test_the_indexes_of_a_segment_that_was_cut_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log, _ = log_with_bound(monkeypatch, 1 << 20)
    memory = segment_module.LOADED_INDEXES
    whole_bytes = memory.size_bytes
    log.truncate_to(log.segments.first.base_offset + 6, NOW_MS)
    cut = log.active_segment
    entries_bytes = 8 * len(cut.index) + 12 * len(cut.time_index)
    noted = memory._loaded[id(cut)][1]
    assert (entries_bytes, True) == (noted - 1024, memory.size_bytes < whole_bytes)


def test_the_index_of_the_active_segment_is_never_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    log, files = log_with_bound(monkeypatch, 0)
    log.roll(NOW_MS)
    fill(log, [2, 2])
    log.close(NOW_MS)
    again, _ = open_log(files, SMALL, hooks_of(), was_stopped_cleanly=True)
    before = len(again.active_segment.index)
    fill(again, [3, 3])
    entries = len(again.active_segment.index)
    for segment in list(again.segments)[:-1]:
        assert segment.index is not None
    assert before < entries == len(again.active_segment.index)


def test_retention_reads_the_first_and_last_entry_of_the_segments_that_may_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log, files = log_with_bound(monkeypatch, 1 << 20)
    log.close(NOW_MS)
    again, _ = open_log(files, SMALL, hooks_of(), was_stopped_cleanly=True)
    reads: list[tuple[str, int]] = []
    look = files.access

    def note(operation: str, path: str) -> None:
        if operation in ("read", "open"):
            reads.append((operation, path))
        look(operation, path)

    monkeypatch.setattr(files, "access", note)
    times = [segment.path(segment_module.FileKind.TIMEINDEX) for segment in again.segments]
    for retention_ms, read in ((-1, []), (1 << 50, times[:1] * 2)):
        again.configure(SMALL._replace(retention_ms=retention_ms))
        again.delete_old_segments(120, NOW_MS)
        assert read == [path for operation, path in reads if operation == "read"]
    assert [None] == [segment._time_index for segment in list(again.segments)[:1]]
    assert f"{DIR}/" in times[0]


def test_a_look_up_without_room_searches_the_file_and_drops_no_other_index(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log, _ = log_with_bound(monkeypatch, 1 << 20)
    memory = segment_module.LOADED_INDEXES
    closed = list(log.segments)[:-1]
    for segment in closed:
        segment.drop_indexes()
        memory.forget(segment)
    first, second, third = closed[:3]
    memory._bytes_max = memory.size_bytes + 2500
    for segment in (first, second):
        assert segment.locate_offset(segment.base_offset + 1) is not None
    loaded = list(memory._loaded)
    assert [id(first), id(second)] == loaded[-2:]
    for offset in range(third.base_offset, third.base_offset + 9):
        place = third.locate_offset(offset)
        assert place is not None
        assert offset <= place.last_offset < offset + 3
    assert (loaded, None) == (list(memory._loaded), third._index)


def test_a_segment_that_is_searched_often_gets_its_index_into_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log, _ = log_with_bound(monkeypatch, 0)
    first, second = list(log.segments)[:2]
    for segment in (first, second, first):
        for number in range(INDEX_SEARCHES_MAX):
            assert segment.locate_offset(segment.base_offset + number % 3) is not None
            assert segment._index is None
        assert segment._index is None
        assert segment.locate_offset(segment.base_offset + INDEX_SEARCHES_MAX % 3) is not None
        assert segment._index is not None
