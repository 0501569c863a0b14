"""How dirty logs are, from their files alone and when they are cleaned."""

from __future__ import annotations

from pathlib import Path
from shutil import copytree

import pytest

from engine.forecast.compaction_run import BufferTooSmall
from engine.forecast.directory_history import first_timestamp_ms, read_histories
from engine.forecast.dirtiness import CompactedLog, read_dirtiness
from engine.forecast.log_history import LogHistory
from engine.log.cleaner.compaction_wait import CompactionWait
from engine.log.directory.log_dir import find_log_dir
from tests.open_files import open_below
from tests.unit.forecast.compacted_dirs import FILES, NOW_MS, cleaned, config, golden_directory
from tests.unit.log.cleaner.cleaned_logs import batch_of


@pytest.fixture
def directory(tmp_path: Path) -> str:
    return golden_directory(tmp_path)


def seen(directory: str, *topics: str, **overrides: str) -> list[CompactedLog]:
    log_dir = find_log_dir(FILES, directory)
    return list(read_dirtiness(FILES, log_dir, config(**overrides), topics.__contains__, NOW_MS))


def history(directory: str) -> LogHistory:
    logs = read_histories(FILES, find_log_dir(FILES, directory))
    return next(log for log in logs if log.topic_partition.topic == "kv-keep")


def test_topics_that_are_named_are_checked(directory: str) -> None:
    keep, drop = sorted(seen(directory, "kv-keep", "kv-drop"), reverse=True)
    assert ("kv-keep", 0, 146, 226) == (keep.topic_partition.topic, *keep[1:4])
    assert ("kv-drop", 0, 249, 350) == (drop.topic_partition.topic, *drop[1:4])
    assert 0 < keep.cleanable_bytes < keep.size_bytes
    assert [] == seen(directory)


def test_a_log_is_due_by_its_ratio_or_by_its_age(directory: str) -> None:
    assert seen(directory, "kv-keep")[0].is_due
    (young,) = seen(directory, "kv-keep", min_cleanable_dirty_ratio="1")
    assert not young.is_due
    overdue = {"min_cleanable_dirty_ratio": "1", "max_compaction_lag_ms": "1000"}
    assert seen(directory, "kv-keep", **overdue)[0].is_due
    (lagging,) = seen(directory, "kv-keep", min_compaction_lag_ms=str(1 << 50))
    assert 0 == lagging.cleanable_bytes


def test_what_is_not_replicated_is_not_cleanable(directory: str) -> None:
    Path(directory, "replication-offset-checkpoint").write_text("0\n1\nkv-keep 0 100\n")
    assert 0 == seen(directory, "kv-keep")[0].cleanable_bytes


def test_a_log_says_where_it_ends_and_what_it_waits_for(directory: str) -> None:
    (log,) = seen(directory, "kv-keep", min_cleanable_dirty_ratio="1")
    assert (226, CompactionWait.DIRTY_RATIO) == (log.log_end_offset, log.waits_for)
    (due,) = seen(directory, "kv-keep")
    assert (226, None) == (due.log_end_offset, due.waits_for)


def test_nothing_that_was_checked_stays_open(directory: str) -> None:
    assert seen(directory, "kv-keep", "kv-drop", max_compaction_lag_ms="1000")
    assert [] == open_below(directory)


def test_a_log_without_a_record_has_no_first_time(directory: str) -> None:
    for path in Path(directory, "kv-keep-0").glob("*.log"):
        path.write_bytes(b"")
    assert None is history(directory).first_timestamp_ms
    folder = next(f for f in find_log_dir(FILES, directory).partitions if f.name == "kv-keep-0")
    assert -1 == first_timestamp_ms(FILES, folder, folder.files.segments[0].base_offset)


def test_a_record_of_the_first_millisecond_is_the_oldest(directory: str) -> None:
    first = min(Path(directory, "kv-keep-0").glob("*.log"))
    first.write_bytes(bytes(batch_of([(b"k", b"v")], at_ms=0)))
    assert 0 == history(directory).first_timestamp_ms


def test_a_cleaning_leaves_the_dirtiness_that_is_measured_then(directory: str) -> None:
    (before,) = seen(directory, "kv-keep")
    (log,) = cleaned(directory, "kv-keep")
    (after,) = seen(directory, "kv-keep")
    assert after == log._replace(pass_count=0, freed_bytes=0, freed_records=0)
    assert (1, 106) == (log.pass_count, log.freed_records)
    assert before.size_bytes - after.size_bytes == log.freed_bytes > 0
    (again,) = cleaned(directory, "kv-keep")
    assert (0, 0, 0) == (again.pass_count, again.freed_bytes, again.freed_records)
    assert not list(Path(directory, "kv-keep-0").glob("*.deleted"))
    assert Path(directory, ".kafka_cleanshutdown").exists()


def test_passes_are_counted_and_free_the_same(directory: str, tmp_path: Path) -> None:
    other = str(copytree(directory, tmp_path / "other"))
    (whole,) = cleaned(directory, "kv-drop")
    (narrow,) = cleaned(other, "kv-drop", map_bytes=24 * 10)
    assert 1 == whole.pass_count < narrow.pass_count
    # Batches written twice may have longer heads; the records are the same.
    assert whole.freed_records == narrow.freed_records


def test_histories_have_times_of_indexes_tails_and_files(directory: str) -> None:
    logs = {
        str(log.topic_partition): log
        for log in read_histories(FILES, find_log_dir(FILES, directory))
    }
    log = logs["kv-keep-0"]
    segments = sorted(Path(directory, "kv-keep-0").glob("*.log"))
    assert [s.stat().st_size for s in segments] == [s.size_bytes for s in log.segments]
    assert [False] * (len(segments) - 1) + [True] == [s.is_active for s in log.segments]
    newest = [s.largest_timestamp_ms for s in log.segments]
    # Without time indexes the times are those of the files, but for the tail that is read.
    for path in Path(directory, "kv-keep-0").glob("*.timeindex"):
        path.unlink()
    bare = history(directory)
    assert newest[-1] == bare.segments[-1].largest_timestamp_ms
    modified_ms = FILES.modified_ms(str(segments[0]))
    assert modified_ms == bare.segments[0].largest_timestamp_ms != newest[0]
    assert log.first_timestamp_ms == bare.first_timestamp_ms
    assert log.high_watermark == log.segments[-1].end_offset


def test_memory_for_less_than_a_batch_is_reported(directory: str) -> None:
    with pytest.raises(BufferTooSmall, match="24 bytes are too few for the keys of one batch"):
        list(cleaned(directory, "kv-keep", map_bytes=24))
