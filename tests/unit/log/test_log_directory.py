"""A log directory's own life: made, taken, kept."""

from __future__ import annotations

import pytest

from engine.host.memory import MemoryFiles
from engine.log.log_directory import LogDirectory


@pytest.mark.parametrize("path", ["/logs", "/var/lib/kafka/logs"])
def test_a_directory_that_was_made_outlives_a_power_cut(path: str) -> None:
    files = MemoryFiles()
    LogDirectory(files, path, lambda _path: lambda: None).open(1, "cluster", now_ms=7)
    left = files.after_crash()
    assert left.exists(f"{path}/meta.properties")


def test_parents_that_are_there_are_not_synced() -> None:
    files = MemoryFiles()
    files.make_dir("/var/lib")
    files.sync_everything()
    files.fail("sync", 5, path_end="/var")
    LogDirectory(files, "/var/lib/kafka", lambda _path: lambda: None).open(1, "c", now_ms=7)
    assert files.after_crash().exists("/var/lib/kafka")
