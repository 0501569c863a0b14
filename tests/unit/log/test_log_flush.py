"""How far a log is durable: segments, snapshots and names, now or on a worker thread."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread

import pytest

from engine.errors import StorageError
from engine.host.memory import MemoryFiles
from engine.host.ports import File, LogDirOffline
from engine.log.producer_snapshot import read_producer_snapshot
from engine.log.segment import Segment
from tests.unit.log.hooks import hooks_of
from tests.unit.log.managing import T0, A, Host
from tests.unit.log.test_local_log import SMALL, HeldTasks
from tests.unit.log.writing import NOW_MS, fill, open_log, sent_by

SNAPSHOT = "00000000000000000010.snapshot"


def test_a_roll_makes_the_producers_snapshot_durable_with_its_segment() -> None:
    files, tasks = MemoryFiles(), HeldTasks()
    log, _ = open_log(files, SMALL, hooks_of(tasks))
    files.sync_all()
    log.append_as_leader(sent_by(1, 0, 10), 0, NOW_MS)
    log.roll(NOW_MS)
    path = f"{log.directory}/{SNAPSHOT}"
    assert not files.after_crash().exists(path)
    for work in tasks.held:
        work()
    (producer,) = read_producer_snapshot(files.after_crash(), path)
    assert (1, 9) == (producer.producer_id, producer.last_sequence)
    assert 10 == log.recovery_point


def test_a_flush_without_new_records_only_notes_the_time() -> None:
    files = MemoryFiles()
    log, _ = open_log(files, SMALL, hooks_of())
    log.append_as_leader(sent_by(1, 0, 10), 0, NOW_MS)
    log.flush(NOW_MS)
    files.fail("sync", 5, times=99)
    log.flush(NOW_MS + 5)
    assert (10, NOW_MS + 5) == (log.recovery_point, log.last_flush_ms)


def test_a_recovery_point_follows_a_cut_down_and_never_rises_above_the_end() -> None:
    files, tasks = MemoryFiles(), HeldTasks()
    log, _ = open_log(files, SMALL, hooks_of(tasks))
    log.append_as_leader(sent_by(1, 0, 10), 0, NOW_MS)
    log.append_as_leader(sent_by(1, 10, 10), 0, NOW_MS)
    log.roll(NOW_MS)
    log.truncate_to(10, NOW_MS)
    for work in tasks.held:
        work()
    assert 10 == log.recovery_point


class SyncedFiles(MemoryFiles):
    """A disk that notes which snapshots were synced."""

    def __init__(self) -> None:
        super().__init__()
        self.synced_snapshots: list[str] = []

    def act(self, operation: str, path: str) -> int:
        if operation == "sync" and path.endswith(".snapshot"):
            self.synced_snapshots.append(path.rpartition("/")[2])
        return super().act(operation, path)


class RenamingFiles(MemoryFiles):
    """A disk on which somebody else looks for a folder during its renaming."""

    def __init__(self) -> None:
        super().__init__()
        self.looks: list[Callable[[], None]] = []
        self.synced_paths: list[str] = []
        self.looking: list[Thread] = []

    def rename(self, source: str, target: str) -> None:
        self.looking = [Thread(target=look) for look in self.looks]
        for thread in self.looking:
            thread.start()
            # Time to look at the old name, where nothing keeps it from that.
            thread.join(0.05)
        super().rename(source, target)

    def sync_dir(self, path: str) -> None:
        self.synced_paths.append(path)
        super().sync_dir(path)


def test_names_that_are_synced_beside_a_renaming_are_those_of_the_new_folder() -> None:
    files, tasks = RenamingFiles(), HeldTasks()
    log, _ = open_log(files, SMALL, hooks_of(tasks))
    log.append_as_leader(sent_by(1, 0, 10), 0, NOW_MS)
    log.roll(NOW_MS)
    files.looks = list(tasks.held)
    files.synced_paths.clear()
    log.rename_directory("/data/u-0")
    for thread in files.looking:
        thread.join()
    assert ["/data/u-0"] == files.synced_paths


def test_a_late_flush_lifts_no_recovery_point_over_what_came_after_a_truncation() -> None:
    files, tasks = MemoryFiles(), HeldTasks()
    log, _ = open_log(files, SMALL, hooks_of(tasks))
    log.append_as_leader(sent_by(1, 0, 10), 0, NOW_MS)
    log.append_as_leader(sent_by(1, 10, 10), 0, NOW_MS)
    log.roll(NOW_MS)
    late_flush = tasks.held.pop()
    log.truncate_to(10, NOW_MS)
    tasks.held.pop()()
    log.append_as_leader(sent_by(2, 0, 10), 1, NOW_MS)
    log.append_as_leader(sent_by(2, 10, 10), 1, NOW_MS)
    files.sync_all()
    log.append_as_leader(sent_by(2, 20, 5), 1, NOW_MS)
    late_flush()
    assert 10 == log.recovery_point
    log.flush(NOW_MS)
    assert 35 == log.recovery_point


def test_a_directory_that_is_removed_during_a_flush_is_no_failed_disk() -> None:
    host = Host()
    host.tasks = tasks = HeldTasks()
    manager = host.started(dirs=(A,))
    log = manager.get_or_create(T0, is_new=True)
    fill(log, [10])
    log.roll(NOW_MS)
    _, flush = tasks.held
    manager.delete([T0])
    tasks.run_waiting()
    assert [] == [name for name in host.files.list_dir(A) if name.startswith("t-0")]
    flush()
    assert [] == host.offline


def test_a_flush_syncs_each_snapshot_once() -> None:
    files = SyncedFiles()
    log, _ = open_log(files, SMALL, hooks_of())
    for number in range(5):
        log.append_as_leader(sent_by(1, 10 * number, 10), 0, NOW_MS)
        log.roll(NOW_MS)
        log.flush(NOW_MS)
    log.close(NOW_MS)
    assert [f"{10 * number:020d}.snapshot" for number in range(1, 6)] == files.synced_snapshots


def test_a_snapshot_that_is_written_again_during_its_sync_is_synced_again() -> None:
    files, tasks = SyncedFiles(), HeldTasks()
    log, _ = open_log(files, SMALL, hooks_of(tasks))
    log.append_as_leader(sent_by(1, 0, 10), 0, NOW_MS)
    log.roll(NOW_MS)
    log.snapshots.write_snapshot(10, ())
    tasks.held.pop()()
    log.append_as_leader(sent_by(1, 10, 1), 0, NOW_MS)
    log.flush(NOW_MS)
    assert [SNAPSHOT, SNAPSHOT] == files.synced_snapshots


class CreatingFiles(MemoryFiles):
    """A disk on which worker threads go on while a file is made."""

    def __init__(self) -> None:
        super().__init__()
        self.works: list[Callable[[], None]] = []

    def open(self, path: str, *, write: bool = False, create: bool = False) -> File:
        while create and self.works:
            self.works.pop()()
        return super().open(path, write=write, create=create)


def test_a_flush_may_run_while_a_log_that_restarts_has_no_segment() -> None:
    files, tasks = CreatingFiles(), HeldTasks()
    log, _ = open_log(files, SMALL, hooks_of(tasks))
    fill(log, [10])
    log.roll(NOW_MS)
    rolled = log.segments.first
    files.works = [tasks.held.pop()]
    log.restart_at(50, NOW_MS)
    assert [] == files.works
    assert 0 == rolled._log_borrows


class FaultyFiles(MemoryFiles):
    """A disk whose next sync of a .log meets a fault of our own."""

    fault: BaseException | None = None

    def act(self, operation: str, path: str) -> int:
        if operation == "sync" and path.endswith(".log") and self.fault is not None:
            fault, self.fault = self.fault, None
            raise fault
        return super().act(operation, path)


def test_a_flush_that_ends_with_a_fault_gives_its_segments_back() -> None:
    files, tasks = FaultyFiles(), HeldTasks()
    log, _ = open_log(files, SMALL, hooks_of(tasks))
    fill(log, [10])
    log.roll(NOW_MS)
    files.fault = ArithmeticError("ours")
    with pytest.raises(ArithmeticError):
        tasks.held.pop()()
    assert (0, {}) == (log.segments.first._log_borrows, log._flush._in_progress)
    assert 0 == log.recovery_point
    fill(log, [10])
    log.flush(NOW_MS)
    assert 20 == log.recovery_point


def test_who_waits_for_a_flush_hears_of_its_end_though_a_file_cannot_be_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failures: list[StorageError] = []
    tasks, ends = HeldTasks(), list[int]()
    log, _ = open_log(MemoryFiles(), SMALL, hooks_of(tasks, on_failure=failures.append))
    fill(log, [10])
    failure = LogDirOffline(log.directory, "close", "Input/output error", 5)

    def give_back(self: Segment) -> None:
        raise failure

    log.start_flush(NOW_MS, lambda: ends.append(log.recovery_point))
    monkeypatch.setattr(Segment, "give_back", give_back)
    tasks.held.pop()()
    assert ([failure], [0], {}) == (failures, ends, log._flush._in_progress)


def test_who_waits_for_a_flush_hears_of_its_end_though_a_fault_ends_it() -> None:
    files, tasks, ends = FaultyFiles(), HeldTasks(), list[int]()
    log, _ = open_log(files, SMALL, hooks_of(tasks))
    fill(log, [10])
    log.start_flush(NOW_MS, lambda: ends.append(log.recovery_point))
    files.fault = ArithmeticError("ours")
    with pytest.raises(ArithmeticError):
        tasks.held.pop()()
    log.start_flush(NOW_MS, lambda: ends.append(log.recovery_point))
    tasks.held.pop()()
    assert [0, 10] == ends
