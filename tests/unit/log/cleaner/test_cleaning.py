"""What one cleaning makes of a log."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import CorruptRecord
from engine.host.memory import MemoryFiles
from engine.host.real import RealFiles
from engine.log import log_config
from engine.log.cleaner import batch_filter
from engine.log.cleaner.batch_filter import KeptBatch, opened_bytes_max
from engine.log.cleaner.cleaning import CleaningAborted
from engine.log.cleaner.cleaning_facts import CleaningSettings
from engine.log.cleaner.offset_map import SLOT_BYTES
from engine.log.cleaner.segment_cleaner import CleanedSegmentTooLarge, append_kept_batches
from engine.log.local_log import LocalLog
from engine.log.validation import LeaderRules
from engine.model import TopicPartition
from engine.native.clean_records import CleanerTier
from engine.records.batch import BatchView
from engine.records.builder import BatchBuilder, BatchSettings
from engine.records.codec import Codec, DecompressedTooLarge
from engine.records.control import ControlType
from tests.compiled_walk import compiled_cleaner_here
from tests.open_files import open_below
from tests.unit.log.cleaner.cleaned_logs import (
    CONFIG,
    append_raw,
    batch_of,
    clean,
    cleaning_of,
    compacted_log,
    pairs_of,
    put,
    records_of_log,
)
from tests.unit.log.writing import DIR, NOW_MS, batches_of, end_of_transaction, names, open_log

DAY_MS = 86_400_000


def closed(log: LocalLog) -> LocalLog:
    """Close the active segment, so that all before it may be cleaned."""
    log.roll(NOW_MS)
    return log


def test_the_last_value_of_each_key_stays_at_its_offset() -> None:
    files = MemoryFiles()
    log = compacted_log(files)
    put(log, (b"a", b"1"), (b"b", b"2"))
    put(log, (b"a", b"3"))
    assert 3 == clean(closed(log), files)
    assert [(1, b"b", b"2"), (2, b"a", b"3")] == pairs_of(log)


def test_the_active_segment_stays_as_it_is() -> None:
    files = MemoryFiles()
    log = compacted_log(files)
    put(log, (b"a", b"1"))
    closed(log)
    put(log, (b"a", b"2"))
    put(log, (b"a", b"3"))
    clean(log, files)
    assert [0, 1, 2] == [offset for offset, _, _ in pairs_of(log)]


def test_nothing_at_or_behind_the_last_stable_offset_is_cleaned() -> None:
    files = MemoryFiles()
    log = compacted_log(files)
    put(log, (b"a", b"1"))
    closed(log)
    put(log, (b"a", b"2"), producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    closed(log)
    put(log, (b"b", b"3"))
    closed(log)
    assert 1 == clean(log, files)
    assert [b"1", b"2", b"3"] == [value for _, _, value in pairs_of(log)]


def test_a_tombstone_hides_values_and_goes_after_its_time() -> None:
    files = MemoryFiles()
    log = compacted_log(files)
    put(log, (b"a", b"1"))
    put(log, (b"a", None))
    first = clean(closed(log), files)
    assert [(1, b"a", None)] == pairs_of(log)
    assert NOW_MS + DAY_MS == next(iter(horizons_of(log)))
    put(log, (b"b", b"2"))
    second = clean(closed(log), files, checkpoint=first, now_ms=NOW_MS + DAY_MS - 1)
    assert [(1, b"a", None), (2, b"b", b"2")] == pairs_of(log)
    put(log, (b"c", b"3"))
    clean(closed(log), files, checkpoint=second, now_ms=NOW_MS + DAY_MS)
    assert [(2, b"b", b"2"), (3, b"c", b"3")] == pairs_of(log)


def horizons_of(log: LocalLog) -> set[int | None]:
    views = [BatchView(memoryview(raw)) for _, raw in batches_of(log)]
    return {view.delete_horizon_ms for view in views} - {None}


def test_times_stay_when_a_delete_horizon_is_noted() -> None:
    files = MemoryFiles()
    log = compacted_log(files)
    put(log, (b"a", None), (b"b", b"2"), at_ms=NOW_MS - 5000)
    clean(closed(log), files)
    assert [NOW_MS - 5000] * 2 == [record.timestamp_ms for record in records_of_log(log)]


def test_records_without_a_key_go() -> None:
    files = MemoryFiles()
    log = compacted_log(files, CONFIG._replace(is_compacted=False))
    put(log, (None, b"1"), (b"a", b"2"))
    log.configure(CONFIG)
    clean(closed(log), files)
    assert [(1, b"a", b"2")] == pairs_of(log)


@pytest.mark.parametrize("fault", [TypeError("ours"), MemoryError(), OSError(24, "full")])
def test_a_fault_leaves_no_cleaned_file_open(
    fault: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, folder = RealFiles(), tmp_path / "t-0"
    log, _ = open_log(files, CONFIG, directory=str(folder))
    put(log, (b"k", b"1"))
    put(log, (b"k", b"2"))
    log.roll(NOW_MS)

    def fail(_self: object, _batch: object) -> None:
        raise fault

    monkeypatch.setattr(batch_filter.BatchFilter, "filter_batch", fail)
    with pytest.raises(type(fault)):
        clean(log, files)
    assert [] == [path.name for path in folder.iterdir() if ".cleaned" in path.name]
    assert [] == [path for path in open_below(folder) if ".cleaned" in path]
    log.close_files()


def test_aborted_records_go_and_hide_nothing() -> None:
    files = MemoryFiles()
    log = compacted_log(files)
    put(log, (b"a", b"1"))
    put(log, (b"a", b"2"), producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    append_raw(log, end_of_transaction(7))
    clean(closed(log), files)
    assert [(0, b"a", b"1")] == pairs_of(log)


def test_a_marker_stays_while_its_records_are_there_and_for_its_time_behind() -> None:
    files = MemoryFiles()
    log = compacted_log(files, CONFIG._replace(producer_id_expiration_ms=1))
    put(log, (b"a", b"1"), producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    append_raw(log, end_of_transaction(7, ControlType.COMMIT))
    log.producers.clear()
    first = clean(closed(log), files)
    assert [None] == [view.delete_horizon_ms for view in markers(log)]
    put(log, (b"a", b"2"))
    second = clean(closed(log), files, checkpoint=first)
    # The records went now; that nothing is left is seen by the next cleaning.
    put(log, (b"b", b"2"))
    third = clean(closed(log), files, checkpoint=second)
    assert [NOW_MS + DAY_MS] == [view.delete_horizon_ms for view in markers(log)]
    put(log, (b"c", b"2"))
    clean(closed(log), files, checkpoint=third, now_ms=NOW_MS + DAY_MS)
    assert [] == markers(log)


def markers(log: LocalLog) -> list[BatchView]:
    views = [BatchView(memoryview(raw)) for _, raw in batches_of(log)]
    return [view for view in views if view.is_control]


def test_the_last_batch_of_a_producer_stays_without_records() -> None:
    files = MemoryFiles()
    log = compacted_log(files)
    put(log, (b"a", b"1"), producer_id=7, producer_epoch=3, base_sequence=0)
    put(log, (b"a", b"2"), (b"a", b"3"), producer_id=7, producer_epoch=3, base_sequence=1)
    put(log, (b"a", b"4"))
    clean(closed(log), files)
    (empty, _) = [BatchView(memoryview(raw)) for _, raw in batches_of(log)]
    assert (0, 1, 2, 7, 3, 1, 2) == (
        empty.record_count,
        empty.base_offset,
        empty.last_offset,
        empty.producer_id,
        empty.producer_epoch,
        empty.base_sequence,
        empty.last_sequence,
    )


def test_a_producer_goes_on_behind_its_empty_batch_after_a_start() -> None:
    files = MemoryFiles()
    log = compacted_log(files)
    put(log, (b"a", b"1"), (b"a", b"2"), producer_id=7, producer_epoch=0, base_sequence=0)
    put(log, (b"a", b"3"))
    clean(closed(log), files)
    log.snapshots.remove_all()
    again, _ = open_log(files, CONFIG)
    assert 3 == put(again, (b"b", b"4"), producer_id=7, producer_epoch=0, base_sequence=2)


def test_small_segments_become_one() -> None:
    files = MemoryFiles()
    log = compacted_log(files)
    for number in range(4):
        put(log, (b"k%d" % number, b"v"))
        closed(log)
    clean(log, files)
    assert (0, 4) == log.segments.bases


def test_an_unchanged_batch_keeps_its_bytes_and_a_changed_one_its_codec() -> None:
    files = MemoryFiles()
    log = compacted_log(files)
    put(log, (b"a", b"1"), (b"b", b"x" * 50), codec=Codec.LZ4)
    put(log, (b"c", b"3"), (b"d", b"4"))
    put(log, (b"a", b"5"))
    before = batches_of(log)
    clean(closed(log), files)
    after = batches_of(log)
    assert before[1:] == after[1:]
    changed = BatchView(memoryview(after[0][1]))
    assert (Codec.LZ4, 1, 0, 1) == (
        changed.codec, changed.record_count, changed.base_offset, changed.last_offset
    )  # fmt: skip


def test_a_full_map_ends_the_pass_and_the_next_one_goes_on() -> None:
    files = MemoryFiles()
    log = compacted_log(files)
    for number in range(6):
        put(log, (b"k%d" % (number % 3), b"%d" % number), (b"u%d" % number, b"v"))
    closed(log)
    # Room for two keys in all.
    settings = CleaningSettings(map_bytes=2 * SLOT_BYTES, load_factor=1.0)
    clean_to, passes = 0, 0
    while clean_to < log.active_segment.base_offset:
        following = clean(log, files, checkpoint=clean_to, settings=settings)
        assert following > clean_to
        clean_to, passes = following, passes + 1
    kept = {key: value for _, key, value in pairs_of(log)}
    assert passes > 2
    assert {b"k0": b"3", b"k1": b"4", b"k2": b"5"} == {k: kept[k] for k in (b"k0", b"k1", b"k2")}


def test_a_bad_checksum_ends_the_cleaning_and_leaves_the_log() -> None:
    files = MemoryFiles()
    log = compacted_log(files)
    put(log, (b"a", b"1"))
    put(log, (b"a", b"2"))
    closed(log)
    log.segments.first.file.write_at(65, b"\xff")
    with pytest.raises(CorruptRecord):
        clean(log, files)
    assert 2 == len(batches_of(log))
    assert [] == [name for name in names(files) if name.endswith((".cleaned", ".swap"))]


def test_a_truncation_meanwhile_ends_the_cleaning_and_hides_nothing() -> None:
    files = MemoryFiles()
    log = compacted_log(files)
    put(log, (b"a", b"1"))
    put(log, (b"a", b"2"))
    closed(log)
    run = cleaning_of(log, files)
    list(run.work.build_map())
    log.truncate_to(1, NOW_MS)
    put(log, (b"b", b"3"))
    closed(log)
    with pytest.raises(CleaningAborted):
        for bases in run.group_segments():
            list(run.work.write_group(run.begin_group(bases)))
    assert [(0, b"a", b"1"), (1, b"b", b"3")] == pairs_of(log)


def test_a_cleaning_that_ends_during_a_group_leaves_no_file() -> None:
    files = MemoryFiles()
    log = compacted_log(files)
    put(log, (b"a", b"1"))
    put(log, (b"a", b"2"))
    closed(log)
    run = cleaning_of(log, files)
    list(run.work.build_map())
    list(run.work.write_group(run.begin_group(run.group_segments()[0])))
    run.stop()
    with pytest.raises(CleaningAborted):
        run.replace_group()
    assert [] == [name for name in names(files) if name.endswith((".cleaned", ".swap"))]
    assert 2 == len(batches_of(log))


def test_a_second_cleaning_changes_nothing() -> None:
    files = MemoryFiles()
    log = compacted_log(files)
    for number in range(20):
        put(log, (b"k%d" % (number % 5), b"%d" % number), (b"t%d" % (number % 3), None))
    closed(log)
    clean(log, files)
    before = batches_of(log)
    clean(log, files)
    assert before == batches_of(log)


def test_snapshots_of_segments_that_are_no_more_go() -> None:
    files = MemoryFiles()
    log = compacted_log(files)
    for number in range(3):
        put(log, (b"k", b"v"), producer_id=7, producer_epoch=0, base_sequence=number)
        closed(log)
    clean(log, files)
    assert [3] == log.snapshots.offsets


def test_a_new_segment_looks_as_old_as_the_last_one_it_stands_for() -> None:
    files = MemoryFiles()
    log = compacted_log(files)
    put(log, (b"a", b"1"))
    closed(log)
    files.set_modified_ms(f"{DIR}/00000000000000000000.log", NOW_MS - 12_000)
    clean(log, files)
    assert NOW_MS - 12_000 == log.segments.first.modified_ms()


def test_a_batch_of_a_later_offset_than_the_map_knows_stays_whole() -> None:
    files = MemoryFiles()
    log = compacted_log(files)
    put(log, (b"a", b"1"), (b"b", b"1"), (b"a", b"2"), (b"b", b"2"))
    closed(log)
    settings = CleaningSettings(map_bytes=SLOT_BYTES, load_factor=1.0)
    assert 1 == clean(log, files, settings=settings)
    assert 4 == len(pairs_of(log))
    assert batch_of([(b"a", b"1")])[16] == 2


def wide_batch(key: bytes, offset_delta: int, *before: bytes) -> memoryview:
    """Return a batch whose last record says an offset that is none of the batch's."""
    builder = BatchBuilder(BatchSettings())
    for first in before:
        builder.append(NOW_MS, first, b"x")
    builder.append(NOW_MS, key, b"w", offset=offset_delta)
    return memoryview(builder.build(last_offset=len(before)))


@pytest.mark.parametrize("is_compiled", [True, False])
@pytest.mark.parametrize("is_last", [True, False])
def test_offsets_beyond_their_batch_leave_what_kafka_leaves(
    is_last: bool, is_compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CleanerTier, "code", compiled_cleaner_here() if is_compiled else None)
    files = MemoryFiles()
    log = compacted_log(files)
    put(log, (b"a", b"1"), (b"b", b"1"), (b"k", b"1"))
    put(log, (b"a", b"2"), (b"b", b"2"))
    append_raw(log, wide_batch(b"k", 1_000_000))
    put(log, (b"a", b"3"), (b"k", b"3"))
    append_raw(log, wide_batch(b"a", 1_000_000, b"f0", b"f1"))
    if not is_last:
        put(log, (b"z", b"9"))
    assert log.log_end_offset == clean(closed(log), files)
    # As a broker of 3.9.1 left the same batches.
    assert [
        (4, b"b", b"2"),
        (1_000_005, b"k", b"w"),
        (7, b"k", b"3"),
        (8, b"f0", b"x"),
        (9, b"f1", b"x"),
        (1_000_008, b"a", b"w"),
        (11, b"z", b"9"),
    ][: -1 if is_last else None] == pairs_of(log)


@pytest.mark.parametrize("is_compiled", [True, False])
def test_a_map_that_is_full_in_such_a_batch_ends_in_it(
    is_compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CleanerTier, "code", compiled_cleaner_here() if is_compiled else None)
    files = MemoryFiles()
    log = compacted_log(files)
    batch = BatchBuilder(BatchSettings())
    for number in range(5):
        batch.append(NOW_MS, b"%d" % number, b"v", offset=1_000_000 + number)
    append_raw(log, memoryview(batch.build(last_offset=4)))
    settings = CleaningSettings(map_bytes=3 * SLOT_BYTES, load_factor=1.0)
    assert 5 == clean(closed(log), files, settings=settings)
    assert 5 == len(pairs_of(log))


def test_a_segment_whose_positions_leave_32_bits_is_not_written() -> None:
    files = MemoryFiles()
    log = compacted_log(files)
    put(log, (b"a", b"1"))
    segment = log.active_segment
    raw = batches_of(log)[0][1]
    kept = [KeptBatch(raw, 1, 0, NOW_MS)]
    segment.size_bytes = (1 << 31) - 1 - len(raw)
    append_kept_batches(segment, kept)
    segment.size_bytes = (1 << 31) - len(raw)
    with pytest.raises(CleanedSegmentTooLarge):
        append_kept_batches(segment, kept)


@pytest.mark.parametrize("max_message_bytes", [1_048_588, 95_000_000, (1 << 31) - 1])
def test_the_cleaner_opens_every_batch_that_a_leader_appends(max_message_bytes: int) -> None:
    config = CONFIG._replace(max_message_bytes=max_message_bytes)
    assert LeaderRules(config, TopicPartition("t", 0)).limit_bytes <= opened_bytes_max(100, config)


def test_the_cleaner_opens_what_a_leader_took_under_a_larger_limit() -> None:
    config = CONFIG._replace(max_message_bytes=1000)
    assert 32 * 200_000_000 == opened_bytes_max(200_000_000, config)


def test_a_batch_beyond_that_ends_the_cleaning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_filter, "DECOMPRESSED_BATCH_BYTES_MAX", 0)
    monkeypatch.setattr(batch_filter, "UNCOMPRESSED_BATCH_FACTOR", 1)
    monkeypatch.setattr(log_config, "OPENED_MEMORY_BYTES_MAX", 1000)
    files = MemoryFiles()
    log = compacted_log(files, CONFIG._replace(max_message_bytes=1000))
    put(log, (b"a", b"1" * 50_000), codec=Codec.GZIP)
    with pytest.raises(DecompressedTooLarge):
        clean(closed(log), files)
