"""What a truncation owes the disk is paid on a worker thread, once, before the next append."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest

from engine.errors import StorageError
from engine.host.memory import MemoryFiles
from engine.host.ports import LogDirOffline
from engine.log.local_log import LocalLog
from engine.log.log_messages import LogStartReason
from engine.log.log_types import AppendInfo
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
