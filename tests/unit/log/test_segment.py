"""One segment: index entries, rolls, look-ups, cuts."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import CorruptRecord, StorageError
from engine.host.memory import ManualClock, MemoryFile, MemoryFiles
from engine.host.real import RealFiles
from engine.log.log_config import LogConfig
from engine.log.new_segment import create_segment
from engine.log.offset_index import parse_offset_index
from engine.log.segment import Segment
from engine.log.segment_lookup import BatchPlace
from engine.log.time_index import parse_time_index
from engine.log.txn_index import AbortedTransaction, read_txn_index
from engine.naming import FileKind, FileState
from engine.records.batch import BatchView
from engine.records.legacy_builder import LegacySettings, build_messages
from engine.records.record import Record, TimestampType
from tests.unit.log.writing import NOW_MS, image, sent

CONFIG = LogConfig(segment_bytes=1000, segment_ms=500, index_interval_bytes=150)


def segment(base: int = 100, config: LogConfig = CONFIG) -> tuple[MemoryFiles, Segment]:
    files = MemoryFiles(clock=ManualClock(wall_ms=5))
    files.make_dir("/d")
    return files, create_segment(files, "/d", base, config, now_ms=NOW_MS)


def add(found: Segment, offset: int, count: int = 1, at_ms: int = NOW_MS) -> int:
    """Append a batch and return its size."""
    data = sent(count, at_ms=at_ms)
    batch = BatchView(data)
    batch.patch(base_offset=offset)
    found.append((data,), len(data), batch.last_offset, (batch.max_timestamp_ms, batch.last_offset))
    return len(data)


def test_an_entry_follows_more_than_the_interval_with_the_chunk_s_largest_offset() -> None:
    files, found = segment()
    size = add(found, 100, 2)
    assert size < 150 < 2 * size
    add(found, 102, 2, NOW_MS + 50)
    assert not len(found.index)
    add(found, 104, 3, NOW_MS + 10)
    assert [(106, 2 * size)] == list(found.index)
    # The largest time so far was two batches ago.
    assert [(NOW_MS + 51, 103)] == list(found.time_index)
    assert files.size_bytes(found.path(FileKind.INDEX)) == 0


def test_another_index_interval_counts_from_the_next_segment_on() -> None:
    _, found = segment()
    found.configure(CONFIG._replace(index_interval_bytes=1 << 20))
    for offset in range(100, 104):
        add(found, offset)
    _, as_before = segment()
    for offset in range(100, 104):
        add(as_before, offset)
    assert list(found.index) == list(as_before.index)
    assert len(found.index) > 0


def test_closing_adds_the_last_time_and_writes_both_indexes_to_size() -> None:
    files, found = segment()
    for number in range(6):
        add(found, 100 + number, at_ms=NOW_MS + number)
    found.become_inactive()
    index = parse_offset_index(files.read_bytes(found.path(FileKind.INDEX)), 100)
    times = parse_time_index(files.read_bytes(found.path(FileKind.TIMEINDEX)), 100)
    assert list(found.index) == list(index)
    assert (0, 0) == (index.padding_bytes, times.padding_bytes)
    assert times.last_entry == (NOW_MS + 5, 105)


@pytest.mark.parametrize(("room", "rolls"), [(-1, True), (0, False), (1, False)])
def test_a_segment_rolls_when_the_chunk_does_not_fit(room: int, rolls: bool) -> None:
    _, found = segment()
    size = add(found, 100)
    assert rolls is found.should_roll(1000 - size - room, 101, NOW_MS, NOW_MS)


@pytest.mark.parametrize(("later_ms", "rolls"), [(500, False), (501, True)])
def test_a_segment_rolls_when_a_chunk_is_newer_than_the_first_one_by_segment_ms(
    later_ms: int, rolls: bool
) -> None:
    _, found = segment()
    assert not found.should_roll(10, 100, NOW_MS + later_ms, NOW_MS)
    add(found, 100)
    assert rolls is found.should_roll(10, 101, NOW_MS + later_ms, 0)
    found.roll_jitter_ms = 1
    assert found.should_roll(10, 101, NOW_MS + later_ms + 1, 0)


def test_a_segment_without_times_rolls_by_the_clock() -> None:
    _, found = segment()
    add(found, 100, at_ms=-1)
    assert not found.should_roll(10, 101, -1, NOW_MS + 500)
    assert found.should_roll(10, 101, -1, NOW_MS + 501)


@pytest.mark.parametrize("entries", [3, 4])
def test_a_segment_rolls_when_an_index_is_full(entries: int) -> None:
    config = LogConfig(index_interval_bytes=0, segment_index_bytes=8 * 3 + 12 * (entries - 3))
    _, found = segment(config=config)
    count = 0
    while not found.should_roll(10, 200, NOW_MS, NOW_MS):
        add(found, 100 + count, at_ms=NOW_MS + count)
        count += 1
    full_index = len(found.index) == config.segment_index_bytes // 8
    assert full_index or len(found.time_index) == config.segment_index_bytes // 12 - 1


def test_a_segment_rolls_when_an_offset_is_too_far_from_its_base() -> None:
    _, found = segment()
    add(found, 100)
    assert not found.should_roll(10, 100 + (1 << 31) - 1, NOW_MS, NOW_MS)
    assert found.should_roll(10, 100 + (1 << 31), NOW_MS, NOW_MS)


def test_an_offset_is_found_in_the_batch_that_holds_it_or_the_next_one() -> None:
    _, found = segment()
    size = add(found, 100, 3)
    second = add(found, 110, 3)
    for offset in (99, 100, 102):
        assert found.locate_offset(offset) == BatchPlace(0, size, 102)
    for offset in (103, 110, 112):
        assert found.locate_offset(offset) == BatchPlace(size, second, 112)
    assert found.locate_offset(113) is None


def test_a_batch_that_was_found_is_not_found_where_a_cut_took_it() -> None:
    _, found = segment()
    size = add(found, 100, 3)
    assert found.locate_offset(101) == found.locate_offset(101) == BatchPlace(0, size, 102)
    add(found, 103)
    place = found.locate_offset(103)
    assert place is not None
    found.truncate_to(103, NOW_MS)
    assert found.locate_offset(103) is None
    found.locate_offset(100)
    found.truncate_to_bytes(0)
    assert found.locate_offset(100) is None


def test_what_a_misread_length_led_to_is_not_kept() -> None:
    files, found = segment()
    size = add(found, 100)
    # Where the wrong length of the first batch leads, a value of the second looks like a batch.
    offset, length, magic = (1 << 60).to_bytes(8, "big"), (20).to_bytes(4, "big"), bytes(40)
    data = sent(1, value=offset + length + magic)
    BatchView(data).patch(base_offset=101)
    found.append((data,), len(data), 101, (NOW_MS, 101))
    place = size + bytes(data).index(offset)
    # The last byte of the length is enough: both lengths are below 256.
    (wrong,), right = (place - 12).to_bytes(4, "big")[3:], found.file.read_at(11, 1)[0]
    files.flip(found.path(FileKind.LOG), 11, wrong ^ right)
    misled = found.locate_offset(101)
    assert misled is not None and misled.position == place
    files.flip_back()
    assert BatchPlace(size, len(data), 101) == found.locate_offset(101)


def test_a_span_has_its_first_batch_whole_and_ends_where_it_must() -> None:
    _, found = segment()
    size = add(found, 100, 3)
    add(found, 103, 2)
    end = found.size_bytes
    assert [(0, size), (0, size), (0, size + 1), (0, end)] == [
        found.locate_batches(101, limit, end) for limit in (0, size, size + 1, end + 1)
    ]
    assert (0, size) == found.locate_batches(100, end, size)
    assert (size, end - size) == found.locate_batches(103, 1, end)
    assert [None, None] == [
        found.locate_batches(100, end, size - 1),
        found.locate_batches(105, end, end),
    ]


def test_old_messages_of_the_smallest_size_are_found() -> None:
    _, found = segment(0)
    kind = TimestampType.CREATE_TIME
    records = [Record(n, -1, kind, None, None) for n in range(3)]
    data = build_messages(records, LegacySettings(magic=0))
    found.append((data,), len(data), 2, (-1, 2))
    assert found.locate_offset(2) == BatchPlace(52, 26, 2)


def test_a_walk_over_many_batches_reads_on() -> None:
    _, found = segment(config=LogConfig(index_interval_bytes=1 << 20))
    sizes = [add(found, 100 + number) for number in range(200)]
    assert found.locate_offset(299) == BatchPlace(sum(sizes[:-1]), sizes[-1], 299)


def test_damage_on_the_way_is_reported() -> None:
    files, found = segment()
    add(found, 100)
    files.open(found.path(FileKind.LOG), write=True).write_at(8, b"\0\0\0\1")
    with pytest.raises(CorruptRecord):
        found.locate_offset(105)


@pytest.mark.parametrize("offset", [100, 101, 109])
def test_a_batch_that_reaches_past_the_end_of_its_segment_is_damage(offset: int) -> None:
    files, found = segment()
    size = add(found, 100)
    add(found, 101)
    length = (3 * size).to_bytes(4, "big")
    files.open(found.path(FileKind.LOG), write=True).write_at(8, length)
    with pytest.raises(CorruptRecord) as caught:
        found.locate_offset(offset)
    assert (found.path(FileKind.LOG), 0) == (caught.value.path, caught.value.position)


@pytest.mark.parametrize(("offset", "kept"), [(103, 3), (105, 5), (106, 6), (101, 1), (100, 0)])
def test_a_cut_keeps_batches_behind_one_whose_last_offset_is_damaged(
    offset: int, kept: int
) -> None:
    files, found = segment()
    sizes = [add(found, 100 + n) for n in range(6)]
    damaged_at = sum(sizes[:1]) + 23
    files.open(found.path(FileKind.LOG), write=True).write_at(damaged_at, b"\0\0\1\0")
    found.truncate_to(offset, NOW_MS)
    assert sum(sizes[:kept]) == found.size_bytes


@pytest.mark.parametrize("offset", range(103, 106))
@pytest.mark.parametrize("change_bytes", [-8, 1, 16, 100])
def test_a_cut_behind_a_damaged_length_changes_nothing(offset: int, change_bytes: int) -> None:
    files, found = segment(config=LogConfig(index_interval_bytes=1 << 20))
    sizes = [add(found, 100 + n) for n in range(6)]
    path = found.path(FileKind.LOG)
    length = sizes[1] - 12 + change_bytes
    files.open(path, write=True).write_at(sizes[0] + 8, length.to_bytes(4, "big"))
    before = image(files), found.largest, found.size_bytes
    with pytest.raises(CorruptRecord) as caught:
        found.truncate_to(offset, NOW_MS)
    assert path == caught.value.path
    assert before == (image(files), found.largest, found.size_bytes)


def test_a_cut_in_a_gap_behind_a_length_that_skips_batches_changes_nothing() -> None:
    files, found = segment(config=LogConfig(index_interval_bytes=1 << 20))
    sizes = [add(found, 100 + n) for n in range(4)]
    length = (sum(sizes[:3]) - 12).to_bytes(4, "big")
    files.open(found.path(FileKind.LOG), write=True).write_at(8, length)
    with pytest.raises(CorruptRecord):
        found.truncate_to(102, NOW_MS)
    assert sum(sizes) == found.size_bytes


def test_a_cut_behind_a_length_that_skips_the_rest_changes_nothing() -> None:
    files, found = segment(config=LogConfig(index_interval_bytes=1 << 20))
    sizes = [add(found, 100 + n) for n in range(4)]
    length = (sum(sizes) - 12).to_bytes(4, "big")
    files.open(found.path(FileKind.LOG), write=True).write_at(8, length)
    with pytest.raises(CorruptRecord):
        found.truncate_to(102, NOW_MS)
    assert sum(sizes) == found.size_bytes


def test_a_cut_in_a_damaged_batch_that_is_the_last_one_takes_it() -> None:
    files, found = segment(config=LogConfig(index_interval_bytes=1 << 20))
    sizes = [add(found, 100 + 2 * n, 2) for n in range(3)]
    path = found.path(FileKind.LOG)
    files.flip(path, found.size_bytes - 1, 1)
    assert sizes[2] == found.truncate_to(105, NOW_MS)


def test_a_cut_behind_a_length_that_leads_to_a_value_changes_nothing() -> None:
    files, found = segment()
    size = add(found, 100)
    # Where the wrong length of the first batch leads, a value of the second looks like a batch.
    offset, length, magic = (1 << 60).to_bytes(8, "big"), (20).to_bytes(4, "big"), bytes(40)
    data = sent(1, value=offset + length + magic)
    BatchView(data).patch(base_offset=101)
    found.append((data,), len(data), 101, (NOW_MS, 101))
    files.flip(found.path(FileKind.LOG), 11, size - 12 ^ size + bytes(data).index(offset) - 12)
    with pytest.raises(CorruptRecord):
        found.truncate_to(101, NOW_MS)
    files.flip_back()
    assert len(data) == found.truncate_to(101, NOW_MS)


def test_a_cut_in_a_gap_that_cleaning_left_takes_what_follows() -> None:
    _, found = segment()
    size = add(found, 100)
    add(found, 105)
    found.truncate_to(103, NOW_MS)
    assert size == found.size_bytes


def test_a_cut_of_old_messages_of_the_smallest_size_ends_where_one_begins() -> None:
    _, found = segment(0)
    records = [Record(n, -1, TimestampType.CREATE_TIME, None, None) for n in range(3)]
    data = build_messages(records, LegacySettings(magic=0))
    found.append((data,), len(data), 2, (-1, 2))
    assert 26 == found.truncate_to(2, NOW_MS)


def test_a_cut_to_the_base_goes_by_the_index_where_offsets_are_in_disorder() -> None:
    _, found = segment(config=LogConfig(index_interval_bytes=0))
    size, second = add(found, 105), add(found, 100)
    assert [(100, size)] == list(found.index)
    assert second == found.truncate_to(100, NOW_MS)


def test_a_segment_that_a_cut_empties_begins_then() -> None:
    _, found = segment()
    add(found, 100, at_ms=-1)
    add(found, 101, at_ms=-1)
    found.truncate_to(101, NOW_MS + 200)
    assert found.should_roll(10, 101, -1, NOW_MS + 501)
    found.truncate_to(100, NOW_MS + 200)
    add(found, 100, at_ms=-1)
    assert not found.should_roll(10, 101, -1, NOW_MS + 700)
    assert found.should_roll(10, 101, -1, NOW_MS + 701)


def test_a_cut_of_indexes_holds_where_another_thread_would_drop_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files, found = segment(config=LogConfig(index_interval_bytes=0))
    for number in range(6):
        add(found, 100 + number)
    found.become_inactive()
    truncate = MemoryFile.truncate

    def dropping(self: MemoryFile, size_bytes: int) -> None:
        found.drop_indexes()
        truncate(self, size_bytes)

    monkeypatch.setattr(MemoryFile, "truncate", dropping)
    found.truncate_to(103, NOW_MS)
    index = parse_offset_index(files.read_bytes(found.path(FileKind.INDEX)), 100)
    assert [101, 102] == [offset for offset, _ in index]


def test_a_cut_takes_batches_entries_times_and_transactions() -> None:
    files, found = segment()
    sizes = [add(found, 100 + 2 * n, 2, NOW_MS + 10 * n) for n in range(6)]
    found.add_aborted(AbortedTransaction(1, 100, 103, 104))
    found.add_aborted(AbortedTransaction(1, 106, 109, 110))
    assert sum(sizes[4:]) == found.truncate_to(109, NOW_MS)
    assert sum(sizes[:4]) == found.size_bytes == files.size_bytes(found.path(FileKind.LOG))
    assert found.index.last_offset <= 107
    assert found.largest == (NOW_MS + 31, 107)
    entries = read_txn_index(files, found.path(FileKind.TXNINDEX)).entries
    assert [103] == [entry.last_offset for entry in entries]
    assert found.truncate_to(100, NOW_MS) == sum(sizes[:4])
    assert found.largest == (-1, 100)


def test_without_times_retention_goes_by_the_file() -> None:
    _, found = segment()
    add(found, 100, at_ms=-1)
    assert found.largest_timestamp_ms == 5
    add(found, 101)
    assert found.largest_timestamp_ms == NOW_MS


def test_a_borrowed_file_stays_open_until_it_is_given_back(tmp_path: Path) -> None:
    found = create_segment(RealFiles(), str(tmp_path), 100, CONFIG, now_ms=0)
    add(found, 100)
    found.borrow()
    found.change_state(FileState.DELETED)
    found.close_file()
    found.remove_files()
    assert [] == list(tmp_path.iterdir())
    assert found.file.read_at(0, 1)
    found.give_back()
    with pytest.raises(StorageError):
        found.file.read_at(0, 1)


def test_a_new_segment_empties_files_in_its_place() -> None:
    files, found = segment()
    add(found, 100)
    found.add_aborted(AbortedTransaction(1, 100, 103, 104))
    again = create_segment(files, "/d", 100, CONFIG, now_ms=0)
    assert (0, []) == (again.size_bytes, again.aborted)


def test_a_preallocated_segment_takes_its_room_and_gives_back_what_it_did_not_need() -> None:
    _, found = segment(config=CONFIG._replace(preallocate=True))
    file = found.file
    assert isinstance(file, MemoryFile)
    assert file.reserved_bytes == CONFIG.segment_bytes
    size = add(found, 100)
    found.become_inactive()
    assert (file.reserved_bytes, file.size_bytes()) == (0, size)


def test_room_is_taken_only_where_that_is_requested() -> None:
    _, found = segment()
    assert isinstance(found.file, MemoryFile)
    assert found.file.reserved_bytes == 0
