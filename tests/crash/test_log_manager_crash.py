"""The power is cut at every operation of a broker's logs: each partition is there or gone (L8)."""

from __future__ import annotations

from contextlib import suppress

from engine.host.memory import MachineStopped, MemoryFiles
from engine.log.directory.log_manager import LogManager
from tests.unit.log.managing import T0, T1, U0, Host
from tests.unit.log.writing import NOW_MS, fill, image

DIRS = ("/a",)


class Life:
    """One broker with one directory, and what a cut must have left at least."""

    def __init__(self, files: MemoryFiles) -> None:
        self.host = Host(files)
        self.flushed = {T0: 0, T1: 0}
        self.made: set[object] = set()
        self.is_deleting = self.is_deleted = False

    def run(self) -> None:
        self.host.files.make_dir("/a")
        self.host.files.sync_dir("/")
        manager = self.host.started(dirs=DIRS)
        for key in (T0, T1):
            manager.get_or_create(key, is_new=True)
            self.made.add(key)
        self.write(manager)
        manager.checkpoint_recovery_points()
        manager.checkpoint_log_starts()
        manager.checkpoint_high_watermarks({T0: 20, T1: 20})
        self.is_deleting = True
        manager.delete([T1])
        self.is_deleted = True
        manager.get_or_create(U0, is_new=True)
        self.host.tasks.run_waiting()
        manager.stop()
        self.flushed[T0] = 50

    def write(self, manager: LogManager) -> None:
        for key in (T0, T1):
            log = manager.logs[key]
            fill(log, [10] * 5)
            log.flush(NOW_MS)
            self.flushed[key] = 50

    def check(self, disk: MemoryFiles) -> None:
        manager = Host(disk).started(dirs=DIRS)
        assert manager.directories[0].is_online
        for key in (T0, T1):
            log = manager.get(key)
            if key == T1 and self.is_deleting:
                assert log is None or log.log_end_offset == 50
                assert log is None or not self.is_deleted
            elif key in self.made:
                assert log is not None
                assert log.log_end_offset >= self.flushed[key]
        manager.stop()
        found = Host(disk).manager(dirs=DIRS)
        (loaded,) = found.start().values()
        assert all(report.recovered_segments == 0 for report in loaded.reports.values())


def test_partitions_are_found_or_gone_after_every_cut() -> None:
    files = MemoryFiles()
    Life(files).run()
    count = files.operations
    assert count > 80
    seen: set[object] = set()
    for number in range(count):
        files = MemoryFiles()
        files.stop_at(number)
        life = Life(files)
        with suppress(MachineStopped):
            life.run()
        changes = files.unsynced_changes()
        for kept in sorted({0, changes // 2, changes}):
            disk = files.after_crash(kept_changes=kept, torn_bytes=30)
            found = hash((image(disk), *life.flushed.values(), life.is_deleting, life.is_deleted))
            if found not in seen:
                seen.add(found)
                life.check(disk)
