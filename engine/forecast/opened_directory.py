"""Opens a log directory that no broker uses as a broker does at its start, and closes it.

```
1 take the lock, recover what a crash left
2 work on the logs
3 remove at once the files that would wait for file.delete.delay.ms
4 close as in a clean stop: checkpoints, .kafka_cleanshutdown
```

Source: Kafka's LogManager.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from engine.errors import EngineError, StorageError
from engine.host.ports import Clock, Entropy, Files
from engine.log.directory.log_dir import find_log_dir
from engine.log.directory.log_directory import DirectoryLock
from engine.log.directory.log_manager import LogManager
from engine.log.directory.log_manager_ports import LogManagerConfig, LogManagerPorts
from engine.log.directory.offset_checkpoint import HIGH_WATERMARKS
from engine.log.local_log import LocalLog
from engine.log.log_config import LONG_MAX, LogConfig
from engine.log.tasks import InlineTasks
from engine.model import TopicPartition

_NO_WATERMARK: Final = LONG_MAX


class NoBrokersDirectory(EngineError):
    """A directory has no meta.properties of a broker with ZooKeeper: no such broker opens it."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.hint = "name a broker's log directory; `kctl retention plan --dir` reads any"
        super().__init__(f"{path}: {reason}")


class DirectoryFailed(EngineError):
    """Reading or writing a log directory failed."""

    def __init__(self, path: str, error: StorageError) -> None:
        self.path = path
        self.error = error
        self.hint = "`kctl logs verify` shows what is wrong there"
        super().__init__(f"{path}: {error}")


class DirectoryHost(NamedTuple):
    """The ports that an opened directory needs."""

    files: Files
    clock: Clock
    entropy: Entropy
    lock: DirectoryLock


class OpenedDirectory:
    """The logs of a directory that is open."""

    def __init__(self, manager: LogManager, watermarks: Callable[[TopicPartition], int]) -> None:
        """Create the access to the logs of `manager`, which is started.

        `watermarks` returns the high watermark of a partition by its checkpoint.
        """
        self.manager = manager
        self._watermarks = watermarks

    def logs(self, is_wanted: Callable[[str], bool]) -> list[LocalLog]:
        """Return the logs of the wanted topics, sorted by partition."""
        found = sorted(self.manager.logs.items())
        return [log for key, log in found if is_wanted(key.topic)]

    def high_watermark(self, log: LocalLog) -> int:
        """Return a log's high watermark: the checkpoint but at most its end.

        It is the log's end without a checkpoint.
        """
        return min(self._watermarks(log.topic_partition), log.log_end_offset)


@contextmanager
def opened_directory(
    host: DirectoryHost, path: str, config_of: Callable[[str], LogConfig]
) -> Iterator[OpenedDirectory]:
    """Open the logs of a directory with the settings of each topic, for a `with` block.

    Raises LogDirectoryLocked while a broker uses it, NoBrokersDirectory, DirectoryFailed.
    """
    log_dir = find_log_dir(host.files, path)
    state = log_dir.state
    if not log_dir.is_whole or state.meta is None:
        raise NoBrokersDirectory(path, "it has no meta.properties")
    if state.meta.version or state.meta.node_id is None or state.meta.cluster_id is None:
        raise NoBrokersDirectory(path, "its broker runs without ZooKeeper")
    failures: list[StorageError] = []
    checkpoint = state.checkpoints.get(HIGH_WATERMARKS, {})

    def watermark_of(key: TopicPartition) -> int:
        """Return the high watermark in the checkpoint."""
        return checkpoint.get(key, _NO_WATERMARK)

    tasks = InlineTasks()
    ports = LogManagerPorts(
        tasks,
        host.clock,
        host.entropy,
        host.lock,
        config_of,
        watermark_of,
        lambda _path, error, _partitions: failures.append(error),
    )
    config = LogManagerConfig([path], state.meta.node_id, state.meta.cluster_id)
    manager = LogManager(host.files, config, ports)
    manager.start()
    try:
        yield OpenedDirectory(manager, watermark_of)
        tasks.run_waiting()
    finally:
        manager.stop()
    if failures:
        raise DirectoryFailed(path, failures[0])
