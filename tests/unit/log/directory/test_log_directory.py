"""A log directory's own life: made, taken, kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.host.memory import MemoryFiles
from engine.host.ports import LogDirOffline
from engine.log.directory.log_directory import LogDirectory
from tests.open_files import open_below
from tests.unit.log.hooks import hooks_of
from tests.unit.log.recovery.test_loader import CONFIG, FailingFiles


@pytest.mark.parametrize("path", ["/logs", "/var/lib/kafka/logs"])
def test_a_directory_that_was_made_outlives_a_power_cut(path: str) -> None:
    files = MemoryFiles()
    LogDirectory(files, path, lambda _path: lambda: None).open(1, "cluster", now_ms=7)
    left = files.after_crash()
    assert left.exists(f"{path}/meta.properties")


def test_parents_that_are_there_are_not_synced() -> None:
    files = MemoryFiles()
    files.make_dir("/var/lib")
    files.sync_all()
    files.fail("sync", 5, path_end="/var")
    LogDirectory(files, "/var/lib/kafka", lambda _path: lambda: None).open(1, "c", now_ms=7)
    assert files.after_crash().exists("/var/lib/kafka")


def test_a_directory_that_fails_in_the_middle_keeps_no_log_open(tmp_path: Path) -> None:
    files = FailingFiles()
    for number in range(3):
        (tmp_path / f"t-{number}").mkdir()
        (tmp_path / f"t-{number}" / f"{7 * number:020d}.log").touch()
    directory = LogDirectory(files, str(tmp_path), lambda _path: lambda: None)
    files.failing = ("open", f"{14:020d}.log")
    with pytest.raises(LogDirOffline):
        directory.load_logs(lambda _topic: CONFIG, hooks_of(), now_ms=7)
    assert [] == open_below(tmp_path)
