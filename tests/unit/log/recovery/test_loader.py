"""Opening logs: leftovers, cuts, lost side files, starts above ends."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from engine.errors import StorageError
from engine.host.memory import MemoryFiles
from engine.host.ports import File, Files, LogDirOffline
from engine.host.real import RealFiles
from engine.log.directory.leader_epoch_checkpoint import EpochStart
from engine.log.log_config import LogConfig
from engine.log.log_reader import collect_aborted
from engine.log.producer_snapshot import encode_producer_snapshot
from engine.log.recovery.loader import SegmentOffsetOverflow, SegmentOffsetsDisordered
from engine.log.tasks import InlineTasks
from engine.log.txn_index import read_txn_index
from engine.naming import FileKind
from tests.open_files import open_below
from tests.unit.log.hooks import hooks_of
from tests.unit.log.logs import (
    DIR,
    batch,
    data_of,
    get,
    log_of,
    marker_of,
    name_of,
    put,
    put_segment,
)
from tests.unit.log.writing import batches_of, names, open_log, sent_by

CONFIG = LogConfig(index_interval_bytes=100, producer_id_expiration_ms=1 << 50)
INDEXES = (FileKind.INDEX, FileKind.TIMEINDEX)


class FailingFiles(RealFiles):
    """A real disk that fails one operation on files with one name."""

    failing = ("", "")

    def open(self, path: str, *, write: bool = False, create: bool = False) -> File:
        self._fail("open", path)
        return super().open(path, write=write, create=create)

    def rename(self, source: str, target: str) -> None:
        self._fail("rename", source)
        super().rename(source, target)

    def _fail(self, operation: str, path: str) -> None:
        if self.failing == (operation, os.path.basename(path)):
            raise LogDirOffline(path, operation, "Input/output error", 5)


def disk() -> MemoryFiles:
    """Return three segments of five batches each, the last one from 10 to 14."""
    return log_of(
        {base: b"".join(batch(base + n) for n in range(5)) for base in (0, 5, 10)},
        epochs=(EpochStart(0, 0),),
    )


def hurt(files: Files, base: int, position: int) -> None:
    content = bytearray(get(files, name_of(base)))
    content[position] ^= 1
    put(files, name_of(base), bytes(content))


def test_an_empty_directory_is_an_empty_log() -> None:
    files = MemoryFiles()
    log, report = open_log(files, log_start_offset=7)
    assert (7, 7, (0, 0, 0)) == (log.log_start_offset, log.log_end_offset, tuple(report))
    segment = [f"{7:020d}.index", f"{7:020d}.log", f"{7:020d}.timeindex"]
    assert names(files) == [*segment, "leader-epoch-checkpoint"]


def test_a_new_log_has_an_empty_file_of_epochs_as_kafkas_has() -> None:
    files = MemoryFiles()
    open_log(files)
    assert files.read_bytes(f"{DIR}/leader-epoch-checkpoint") == b""


def test_epochs_are_read_from_the_batches_where_the_file_is_empty() -> None:
    files = disk()
    files.replace_file(f"{DIR}/leader-epoch-checkpoint", b"")
    log, _ = open_log(files, CONFIG, recovery_point=15)
    assert len(log.epochs.entries) > 0


def test_only_segments_from_the_recovery_point_on_are_read() -> None:
    for point, count in ((0, 3), (4, 3), (5, 2), (12, 1), (15, 1)):
        log, report = open_log(disk(), CONFIG, recovery_point=point)
        assert (count, 15, point) == (
            report.recovered_segments,
            log.log_end_offset,
            log.recovery_point,
        )


def test_a_damaged_batch_and_all_behind_it_go() -> None:
    files, tasks = disk(), InlineTasks()
    hurt(files, 5, -1)
    log, report = open_log(files, CONFIG, hooks_of(tasks))
    assert (9, (0, 5), 1) == (log.log_end_offset, log.segments.bases, report.dropped_segments)
    assert report.truncated_bytes == len(batch(9))
    assert f"{10:020d}.log.deleted" in names(files)
    tasks.run_waiting()
    assert not [name for name in names(files) if name.endswith(".deleted")]
    again, report = open_log(files, CONFIG, recovery_point=0)
    assert (9, 0) == (again.log_end_offset, report.truncated_bytes)


def test_damage_below_the_recovery_point_stays_unseen_as_in_a_broker() -> None:
    files = disk()
    hurt(files, 5, -1)
    log, _ = open_log(files, CONFIG, recovery_point=10)
    assert log.log_end_offset == 15


def test_a_clean_stop_is_believed() -> None:
    files = disk()
    hurt(files, 5, -1)
    log, report = open_log(files, CONFIG, recovery_point=3, was_stopped_cleanly=True)
    assert (15, 15, 0) == (log.log_end_offset, log.recovery_point, report.recovered_segments)


@pytest.mark.parametrize("kind", INDEXES)
@pytest.mark.parametrize("harm", ["gone", "odd", "garbage"])
def test_lost_indexes_are_built_again(kind: FileKind, harm: str) -> None:
    files = disk()
    name = name_of(0, kind)
    right = get(files, name)
    if harm == "gone":
        files.remove(f"{DIR}/{name}")
    elif harm == "odd":
        put(files, name, right[:-1])
    else:
        put(files, name, bytes(24) + b"\xff" * 48)
    open_log(files, CONFIG, was_stopped_cleanly=True)
    assert right == get(files, name)


def test_a_lost_transaction_index_is_built_again_in_recovery() -> None:
    files = log_of({0: batch(0) + data_of(1, 1) + marker_of(1, 2)})
    log, _ = open_log(files, CONFIG)
    assert [(1, 1, 2, 3)] == [entry[:4] for entry in collect_aborted(log.segments, 0, 9)]
    assert len(read_txn_index(files, f"{DIR}/{name_of(0, FileKind.TXNINDEX)}").entries) == 1


def test_offsets_below_the_segment_s_base_are_a_typed_error() -> None:
    files = disk()
    put(files, name_of(10), batch(10) + batch(3))
    with pytest.raises(SegmentOffsetOverflow) as caught:
        open_log(files, CONFIG)
    assert (3, 10, len(batch(10))) == (
        caught.value.last_offset,
        caught.value.base_offset,
        caught.value.position,
    )


@pytest.mark.parametrize("operation", ["", "open", "rename"])
def test_a_log_that_cannot_be_opened_keeps_no_file_open(tmp_path: Path, operation: str) -> None:
    files = FailingFiles()
    directory = str(tmp_path / "t-0")
    files.make_dir(directory)
    content = {0: batch(0), 5: batch(5), 10: batch(10) + batch(3)}
    if operation == "rename":
        content[5] = batch(5)[:-1]
    for base, records in content.items():
        (tmp_path / "t-0" / name_of(base)).write_bytes(records)
    files.failing = (operation, name_of(10))
    with pytest.raises(StorageError):
        open_log(files, CONFIG, directory=directory)
    assert [] == open_below(tmp_path)


def test_a_log_that_ends_below_its_start_begins_there() -> None:
    files = disk()
    log, report = open_log(files, CONFIG, log_start_offset=40)
    assert (40, 40, (40,)) == (log.log_start_offset, log.log_end_offset, log.segments.bases)
    assert log.latest_epoch is None
    assert report.recovered_segments == 3


def test_a_start_inside_of_the_log_is_kept() -> None:
    log, _ = open_log(disk(), CONFIG, log_start_offset=7)
    assert (7, (0, 5, 10), ((0, 7),)) == (
        log.log_start_offset,
        log.segments.bases,
        log.epochs.entries,
    )


def test_leftovers_are_removed_and_finished_changes_completed() -> None:
    files = disk()
    put(files, name_of(0) + ".deleted", b"x")
    put(files, name_of(10) + ".cleaned", b"x")
    put(files, name_of(0) + ".swap", batch(2) + batch(7))
    put(files, "leader-epoch-checkpoint.tmp", b"x")
    log, _ = open_log(files, CONFIG)
    assert [2, 7, 10] == [base for base, _ in batches_of(log)][:3]
    assert log.segments.bases == (0, 10)
    assert not [name for name in names(files) if name.endswith((".deleted", ".swap", ".tmp"))]


@pytest.mark.parametrize("content", [None, b"nonsense"])
def test_lost_epochs_are_taken_from_the_batches(content: bytes | None) -> None:
    files = log_of({0: batch(0) + batch(1, epoch=2), 5: batch(5, epoch=4)})
    if content is None:
        files.remove(f"{DIR}/leader-epoch-checkpoint")
    else:
        put(files, "leader-epoch-checkpoint", content)
    log, _ = open_log(files, CONFIG, was_stopped_cleanly=True)
    assert ((0, 0), (2, 1), (4, 5)) == log.epochs.entries
    assert get(files, "leader-epoch-checkpoint") == b"0\n3\n0 0\n2 1\n4 5\n"


def test_epochs_behind_the_end_go() -> None:
    files = disk()
    put(files, "leader-epoch-checkpoint", b"0\n2\n0 0\n3 15\n")
    log, _ = open_log(files, CONFIG)
    assert ((0, 0),) == log.epochs.entries


def test_producers_come_from_the_newest_good_snapshot_and_the_batches_behind_it() -> None:
    files = MemoryFiles()
    log, _ = open_log(files)
    for number in range(6):
        log.append_as_leader(sent_by(1, 10 * number, 10), 0, 0)
    log.close(0)
    for damage in (None, 60, 40, 20):
        if damage is not None:
            put(files, name_of(damage, FileKind.SNAPSHOT), b"nonsense")
        config = CONFIG._replace(segment_bytes=600)
        again, _ = open_log(files, config, was_stopped_cleanly=True)
        assert log.producers.to_entries() == again.producers.to_entries()


def test_stray_snapshots_go_but_for_the_newest() -> None:
    files = disk()
    for offset in (3, 5, 12, 15):
        put(files, name_of(offset, FileKind.SNAPSHOT), encode_producer_snapshot([]))
    open_log(files, CONFIG, was_stopped_cleanly=True)
    kept = [int(name[:20]) for name in names(files, kind=FileKind.SNAPSHOT)]
    assert [5, 15] == kept


def test_damaged_snapshots_are_replaced_where_the_log_is_read_on() -> None:
    files = disk()
    for offset in (5, 15):
        put(files, name_of(offset, FileKind.SNAPSHOT), b"nonsense")
    open_log(files, CONFIG, was_stopped_cleanly=True)
    kept = [int(name[:20]) for name in names(files, kind=FileKind.SNAPSHOT)]
    assert [5, 10, 15] == kept


def test_a_segment_without_side_files_is_served() -> None:
    files = MemoryFiles()
    files.make_dir(DIR)
    put_segment(files, 0, batch(0, 3))
    for kind in INDEXES:
        files.remove(f"{DIR}/{name_of(0, kind)}")
    log, _ = open_log(files, CONFIG, was_stopped_cleanly=True)
    assert log.read(0, 1000).read() == batch(0, 3)


def test_damage_between_flushed_segments_is_cut_only_when_an_index_is_built_again() -> None:
    files = disk()
    hurt(files, 5, -1)
    files.remove(f"{DIR}/{name_of(5, FileKind.INDEX)}")
    log, report = open_log(files, CONFIG, recovery_point=12)
    assert (15, (0, 5, 10)) == (log.log_end_offset, log.segments.bases)
    assert (len(batch(9)), 0) == (report.truncated_bytes, report.dropped_segments)
    assert [5, 6, 7, 8, 10] == [base for base, _ in batches_of(log)][5:10]


@pytest.mark.parametrize("tail", [b"\0" * 30, b"x" * 5, batch(15)[:-1]])
def test_appends_never_come_behind_a_torn_tail_even_after_a_clean_stop(tail: bytes) -> None:
    files = disk()
    put(files, name_of(10), get(files, name_of(10)) + tail)
    log, report = open_log(files, CONFIG, was_stopped_cleanly=True)
    assert (15, len(tail)) == (log.log_end_offset, report.truncated_bytes)


@pytest.mark.parametrize(("is_compacted", "end"), [(False, 10), (True, 15)])
def test_an_empty_segment_behind_lost_records_goes_unless_they_were_compacted(
    is_compacted: bool, end: int
) -> None:
    files = disk()
    put(files, name_of(10), b"")
    put_segment(files, 15, b"")
    log, _ = open_log(files, CONFIG._replace(is_compacted=is_compacted))
    assert end == log.log_end_offset
    log, _ = open_log(disk_with_flushed_gap(), CONFIG, recovery_point=15)
    assert log.log_end_offset == 15


def test_a_log_that_was_cleaned_keeps_its_end_when_it_is_compacted_no_more() -> None:
    log, _ = open_log(disk_with_flushed_gap(), CONFIG, was_cleaned=True)
    assert (15, (0, 5, 10, 15)) == (log.log_end_offset, log.segments.bases)


def disk_with_flushed_gap() -> MemoryFiles:
    files = disk()
    put(files, name_of(10), b"")
    put_segment(files, 15, b"")
    return files


@pytest.mark.parametrize("kind", INDEXES)
def test_a_torn_segment_without_an_index_leaves_no_hole_in_what_was_not_flushed(
    kind: FileKind,
) -> None:
    files = disk()
    hurt(files, 5, -1)
    files.remove(f"{DIR}/{name_of(5, kind)}")
    log, report = open_log(files, CONFIG, recovery_point=3)
    assert (9, (0, 5), 1) == (log.log_end_offset, log.segments.bases, report.dropped_segments)


def test_disorder_without_an_index_is_a_typed_error_in_recovery_too() -> None:
    files = disk()
    put(files, name_of(5), b"".join(batch(offset) for offset in (5, 6, 7, 8, 6, 7, 8, 9)))
    files.remove(f"{DIR}/{name_of(5, FileKind.INDEX)}")
    with pytest.raises(SegmentOffsetsDisordered):
        open_log(files, CONFIG, recovery_point=3)
