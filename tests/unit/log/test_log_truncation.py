"""What a truncation owes the disk is paid on a worker thread, once, before the next append."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest

from engine.errors import StorageError
from engine.host.memory import MachineStopped, MemoryFiles
from engine.host.ports import LogDirOffline
from engine.log.local_log import LocalLog
from engine.log.log_messages import LogStartReason
from engine.log.log_types import AppendInfo
from engine.log.segment import Segment
from engine.naming import FileKind
from engine.records.one_record import encode_record
from tests.unit.log.hooks import hooks_of
from tests.unit.log.test_local_log import SMALL, HeldTasks, fill
from tests.unit.log.writing import NOW_MS, batches_of, open_log, sent

OWN = encode_record(NOW_MS, b"k", b"v", 0)
APPENDS: list[Callable[[LocalLog], object]] = [
    lambda log: log.append_as_leader(sent(1), 9, NOW_MS),
    lambda log: log.append_as_follower(memoryview(_batch_at(10)), NOW_MS),
    lambda log: log.roll(NOW_MS, 11),
    lambda log: log.flush(NOW_MS),
    lambda log: log.close(NOW_MS),
    lambda log: log.truncate_to(5, NOW_MS),
    lambda log: log.restart_at(7, NOW_MS),
    lambda log: log.maybe_increment_log_start_offset(3, 10, LogStartReason.DELETE_RECORDS),
]


class Stage:
    def __init__(self) -> None:
        self.files, self.tasks = MemoryFiles(), HeldTasks()
        self.failures: list[StorageError] = []
        self.checkpoints: list[int] = []
        hooks = hooks_of(
            self.tasks,
            on_failure=self.failures.append,
            on_truncated=lambda _: self.checkpoints.append(self.log.recovery_point),
        )
        self.log, _ = open_log(self.files, SMALL, hooks)
        fill(self.log, [5, 5, 5, 5, 5, 5])
        self.log.flush(NOW_MS)
        self.run_held()
        self.files.sync_all()

    def run_held(self) -> None:
        held, self.tasks.held = self.tasks.held, []
        for work in held:
            work()


def _batch_at(offset: int) -> bytearray:
    raw = bytearray(sent(1))
    raw[:8] = offset.to_bytes(8, "big")
    return raw


def test_a_truncation_syncs_nothing_itself() -> None:
    stage = Stage()
    stage.files.fail("sync", errno.EIO, times=99)
    assert stage.log.truncate_to(10, NOW_MS)
    assert (10, 10, [0, 5]) == (
        stage.log.log_end_offset,
        stage.log.recovery_point,
        [base for base, _ in batches_of(stage.log)],
    )
    assert [] == stage.checkpoints


def test_what_was_cut_off_stays_gone_once_the_truncation_is_durable() -> None:
    stage = Stage()
    stage.log.truncate_to(10, NOW_MS)
    stage.run_held()
    assert [10] == stage.checkpoints
    again, _ = open_log(stage.files.after_crash())
    assert 10 == again.log_end_offset


@pytest.mark.parametrize("change", APPENDS)
def test_the_next_change_of_the_log_waits_for_the_disk(
    change: Callable[[LocalLog], object],
) -> None:
    stage = Stage()
    stage.log.truncate_to(10, NOW_MS)
    change(stage.log)
    assert 10 == stage.checkpoints[0]
    durable, _ = open_log(stage.files.after_crash())
    assert durable.log_end_offset <= 11
    # The thread that comes too late finds nothing left to do, and says nothing.
    before = list(stage.checkpoints)
    stage.tasks.held.pop(0)()
    assert before == stage.checkpoints
    assert [] == stage.failures


def test_fast_appends_are_taken_again_afterwards() -> None:
    stage = Stage()
    stage.log.truncate_to(10, NOW_MS)
    assert stage.log.append_fast(sent(1), 0, NOW_MS) is None
    assert stage.log.append_own_fast(OWN, NOW_MS, 0, NOW_MS) is None
    stage.run_held()
    assert isinstance(stage.log.append_fast(sent(1), 0, NOW_MS), AppendInfo)
    assert stage.log.append_own_fast(OWN, NOW_MS, 0, NOW_MS) is not None


def test_new_settings_do_not_hide_a_truncation_that_is_not_durable() -> None:
    stage = Stage()
    stage.log.truncate_to(10, NOW_MS)
    stage.log.configure(SMALL)
    assert stage.log.append_fast(sent(1), 0, NOW_MS) is None
    assert stage.log.append_own_fast(OWN, NOW_MS, 0, NOW_MS) is None


def test_a_failed_sync_is_reported_and_never_tried_again() -> None:
    stage = Stage()
    stage.log.truncate_to(10, NOW_MS)
    stage.files.fail("sync", errno.EIO, path_end=".log")
    stage.run_held()
    assert [LogDirOffline] == [type(failure) for failure in stage.failures]
    with pytest.raises(LogDirOffline):
        stage.log.append_as_leader(sent(1), 0, NOW_MS)
    assert [] == stage.checkpoints


def test_an_append_that_meets_the_failure_first_raises_it() -> None:
    stage = Stage()
    stage.log.truncate_to(10, NOW_MS)
    stage.files.fail("sync", errno.EIO, path_end=".log")
    with pytest.raises(LogDirOffline):
        stage.log.append_as_leader(sent(1), 0, NOW_MS)
    stage.run_held()
    assert [LogDirOffline] == [type(failure) for failure in stage.failures]


def test_epochs_without_records_are_removed_on_a_worker_thread() -> None:
    stage = Stage()
    stage.log.epochs.assign(4, stage.log.log_end_offset)
    assert not stage.log.truncate_to(99, NOW_MS)
    path = f"{stage.log.directory}/leader-epoch-checkpoint"
    assert b"4 30" in stage.files.read_bytes(path)
    stage.run_held()
    assert b"4 30" not in stage.files.read_bytes(path)


def test_a_log_whose_tasks_run_at_once_is_durable_at_once() -> None:
    log, _ = open_log(files := MemoryFiles(), SMALL, hooks_of())
    fill(log, [5, 5])
    files.sync_all()
    log.truncate_to(5, NOW_MS)
    assert 5 == open_log(files.after_crash())[0].log_end_offset


def test_the_next_life_of_a_killed_process_makes_its_cut_durable() -> None:
    stage = Stage()
    stage.log.truncate_to(10, NOW_MS)
    again, _ = open_log(stage.files, SMALL)
    again.append_as_leader(sent(1), 9, NOW_MS)
    after_power_cut, _ = open_log(stage.files.after_crash())
    assert 10 == after_power_cut.log_end_offset


def test_a_log_is_renamed_once_its_cut_is_durable() -> None:
    stage = Stage()
    stage.log.truncate_to(12, NOW_MS)
    stage.log.rename_directory("/data/u-0")
    assert [12] == stage.checkpoints
    stage.run_held()
    assert ([], [12]) == (stage.failures, stage.checkpoints)
    assert "/data/u-0" == stage.log.directory


def test_a_log_whose_cut_could_not_be_made_durable_keeps_its_name() -> None:
    stage = Stage()
    before = stage.log.directory
    stage.log.truncate_to(12, NOW_MS)
    stage.files.fail("sync", errno.EIO, times=99)
    with pytest.raises(LogDirOffline):
        stage.log.rename_directory("/data/u-0")
    assert stage.files.exists(before)
    assert before == stage.log.directory


def test_a_step_with_a_fault_is_not_tried_again_either(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage()
    stage.log.truncate_to(10, NOW_MS)
    sync = stage.files.sync_dir

    def fails(_path: str) -> None:
        raise KeyError("a fault of our own")

    monkeypatch.setattr(stage.files, "sync_dir", fails)
    with pytest.raises(KeyError):
        stage.log.append_as_leader(sent(1), 0, NOW_MS)
    monkeypatch.setattr(stage.files, "sync_dir", sync)
    with pytest.raises(KeyError):
        stage.log.append_as_leader(sent(1), 0, NOW_MS)
    assert ([], 10) == (stage.checkpoints, stage.log.log_end_offset)


def _unflushed_log(counts: list[int]) -> tuple[MemoryFiles, LocalLog]:
    """Return a log whose rolled segments are not flushed yet: the tasks that flush are held."""
    files = MemoryFiles()
    log, _ = open_log(files, SMALL, hooks_of(HeldTasks()))
    files.sync_all()
    fill(log, counts)
    # A flush that ended before syncs the names of all files.
    files.sync_dir(log.directory)
    assert log.recovery_point == 0
    assert len(log.segments.bases) > 2
    return files, log


def _assert_no_gap(files: MemoryFiles) -> None:
    """Check that a log has all records below its end after a power cut."""
    log, _ = open_log(files.after_crash(), SMALL)
    end = 0
    for base, raw in batches_of(log):
        assert base == end, f"{base} follows {end}"
        end = base + int.from_bytes(raw[23:27], "big") + 1
    assert end == log.log_end_offset


def _cut_at_each_operation(
    files_of: Callable[[], tuple[MemoryFiles, Callable[[], object]]],
) -> None:
    """Cut the power before each operation of a change, and look for a gap each time."""
    cuts, is_ended = 0, False
    while not is_ended:
        files, change = files_of()
        files.stop_at(files.operations + cuts)
        try:
            change()
            is_ended = True
        except MachineStopped:
            cuts += 1
        files.go_on()
        _assert_no_gap(files)
    assert cuts > 3


def test_a_loaded_log_is_synced_from_its_first_segment_on() -> None:
    def loading() -> tuple[MemoryFiles, Callable[[], object]]:
        files, _ = _unflushed_log([10] * 5)
        return files, lambda: open_log(files, SMALL)

    _cut_at_each_operation(loading)


def test_a_segment_that_recovery_truncates_is_synced_after_those_before_it() -> None:
    def recovering() -> tuple[MemoryFiles, Callable[[], object]]:
        files, log = _unflushed_log([10] * 5)
        torn = files.open(log.segments.active.path(FileKind.LOG), write=True)
        torn.append((b"torn" * 9,))
        return files, lambda: open_log(files, SMALL)

    _cut_at_each_operation(recovering)


def test_a_segment_with_a_lost_index_is_synced_after_those_before_it() -> None:
    def recovering() -> tuple[MemoryFiles, Callable[[], object]]:
        files, log = _unflushed_log([10] * 5)
        files.remove(list(log.segments)[-2].path(FileKind.INDEX))
        return files, lambda: open_log(files, SMALL)

    _cut_at_each_operation(recovering)


def test_a_truncated_segment_is_synced_after_those_before_it() -> None:
    def truncating() -> tuple[MemoryFiles, Callable[[], object]]:
        files, log = _unflushed_log([10, 10, 10, 10, 5, 5])

        def truncate() -> None:
            log.truncate_to(45, NOW_MS)
            log.append_as_leader(sent(1), 9, NOW_MS)

        return files, truncate

    _cut_at_each_operation(truncating)


def test_the_active_segment_is_synced_last_as_a_log_is_closed() -> None:
    def closing() -> tuple[MemoryFiles, Callable[[], object]]:
        files, log = _unflushed_log([10] * 5)
        return files, lambda: log.close(NOW_MS)

    _cut_at_each_operation(closing)


def test_each_unflushed_segment_is_synced_at_most_twice_though_all_have_lost_their_index(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files, log = _unflushed_log([10] * 40)
    for segment in log.segments:
        files.remove(segment.path(FileKind.INDEX))
    synced: list[int] = []
    sync = Segment.sync

    def counted(self: Segment, *, with_indexes: bool) -> None:
        synced.append(self.base_offset)
        sync(self, with_indexes=with_indexes)

    monkeypatch.setattr(Segment, "sync", counted)
    open_log(files, SMALL)
    assert len(synced) <= 2 * len(log.segments.bases)
