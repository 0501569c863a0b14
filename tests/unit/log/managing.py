"""A broker's logs in memory, with everything around them by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from engine.errors import StorageError
from engine.host.memory import ManualClock, MemoryFiles, SeededEntropy
from engine.log.directory.log_directory import LogDirectoryLocked
from engine.log.directory.log_manager import LogManager
from engine.log.directory.log_manager_ports import LogManagerConfig, LogManagerPorts
from engine.log.log_config import LogConfig
from engine.log.tasks import InlineTasks
from engine.model import TopicPartition
from tests.unit.log.writing import NOW_MS, SMALL

A, B = "/a", "/b"
T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
CLUSTER = "2Qe4I_4CSUacVq8ogDx2xw"


class Host:
    """One machine: a disk, who holds which lock, and what was reported offline."""

    def __init__(self, files: MemoryFiles | None = None) -> None:
        self.clock = ManualClock(wall_ms=NOW_MS)
        self.files = files or MemoryFiles(clock=self.clock)
        self.tasks = InlineTasks()
        self.locked: set[str] = set()
        self.offline: list[tuple[str, StorageError, list[TopicPartition]]] = []
        self.configs: dict[str, LogConfig] = {}
        self.high_watermarks: dict[TopicPartition, int] = {}
        self.entropy = SeededEntropy(1)

    def lock(self, path: str) -> Callable[[], None]:
        if path in self.locked:
            raise LogDirectoryLocked(path)
        self.files.open(path, write=True, create=True)
        self.locked.add(path)
        return lambda: self.locked.discard(path)

    def manager(
        self,
        *,
        dirs: Sequence[str] = (A, B),
        config_of: Callable[[str], LogConfig] | None = None,
        **settings: Any,
    ) -> LogManager:
        settings = {"broker_id": 1, "cluster_id": CLUSTER, **settings}
        return LogManager(
            self.files,
            LogManagerConfig(dirs, **settings),
            LogManagerPorts(
                tasks=self.tasks,
                clock=self.clock,
                entropy=self.entropy,
                lock=self.lock,
                config_of=config_of or (lambda topic: self.configs.get(topic, SMALL)),
                high_watermark_of=lambda key: self.high_watermarks.get(key, 1 << 60),
                on_offline=lambda path, error, lost: self.offline.append((path, error, list(lost))),
            ),
        )

    def started(self, **settings: Any) -> LogManager:
        manager = self.manager(**settings)
        manager.start()
        return manager

    def killed(self) -> Host:
        """Return the machine after the process was killed: the disk as it is, no locks."""
        host = Host(self.files.after_crash(kept_changes=self.files.unsynced_changes()))
        host.configs = self.configs
        return host
