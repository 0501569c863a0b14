"""Retention of a log directory that no broker uses, as a broker would do it on its next start.

```
1 the directory is opened as a broker opens it: its lock, recovery after an unclean stop
2 segments that are due go from each log, by the settings that are given
3 their files are removed at once, no file.delete.delay.ms
4 everything is closed as in a clean stop: checkpoints, .kafka_cleanshutdown
```

Source: RET-1 … RET-9; Kafka's LogManager.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from engine.errors import EngineError, StorageError
from engine.host.ports import Clock, Entropy, Files
from engine.log.local_log import LocalLog
from engine.log.log_config import LONG_MAX, LogConfig
from engine.log.log_dir import find_log_dir
from engine.log.log_directory import DirectoryLock
from engine.log.log_manager import LogManager, LogManagerConfig, LogSurroundings
from engine.log.offset_checkpoint import HIGH_WATERMARKS
from engine.log.retention import RetentionReason
from engine.log.tasks import InlineTasks
from engine.model import TopicPartition

_NO_WATERMARK: Final = LONG_MAX


class NoBrokersDirectory(EngineError):
    """A directory has no meta.properties of a broker with ZooKeeper, so none could open it."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.hint = "name a broker's log directory; `kctl retention plan --dir` looks at any"
        super().__init__(f"{path}: {reason}")


class DirectoryFailed(EngineError):
    """A log directory could not be used to its end."""

    def __init__(self, path: str, error: StorageError) -> None:
        self.path = path
        self.error = error
        self.hint = "`kctl logs verify` says what is wrong there"
        super().__init__(f"{path}: {error}")


class RetainedLog(NamedTuple):
    """What went from one log."""

    topic_partition: TopicPartition
    reasons: tuple[RetentionReason, ...]
    freed_segments: int
    freed_bytes: int
    left_bytes: int
    log_start_offset: int
    log_end_offset: int


class RunHost(NamedTuple):
    """What a run needs of the machine."""

    files: Files
    clock: Clock
    entropy: Entropy
    lock: DirectoryLock


def run_retention(
    host: RunHost,
    path: str,
    config_of: Callable[[str], LogConfig],
    is_wanted: Callable[[str], bool],
    on_log: Callable[[RetainedLog], None],
) -> None:
    """Apply retention to the logs of a directory; topics that are not wanted keep everything.

    Errors: LogDirectoryLocked while a broker uses it, NoBrokersDirectory, DirectoryFailed.
    """
    log_dir = find_log_dir(host.files, path)
    state = log_dir.state
    if not log_dir.is_whole or state.meta is None:
        raise NoBrokersDirectory(path, "it has no meta.properties")
    if state.meta.version or state.meta.node_id is None or state.meta.cluster_id is None:
        raise NoBrokersDirectory(path, "its broker runs without ZooKeeper")
    failures: list[StorageError] = []
    watermarks = state.checkpoints.get(HIGH_WATERMARKS, {})
    tasks = InlineTasks()
    manager = LogManager(
        host.files,
        LogManagerConfig([path], state.meta.node_id, state.meta.cluster_id),
        LogSurroundings(
            tasks,
            host.clock,
            host.entropy,
            host.lock,
            config_of,
            lambda key: watermarks.get(key, _NO_WATERMARK),
            lambda _path, error, _partitions: failures.append(error),
        ),
    )
    manager.start()
    try:
        now_ms = host.clock.wall_ms()
        for key, log in sorted(manager.logs.items()):
            if is_wanted(key.topic):
                # What was not replicated stays; without a checkpoint all was.
                watermark = min(watermarks.get(key, _NO_WATERMARK), log.log_end_offset)
                on_log(_retain(log, watermark, now_ms))
        tasks.run_waiting()
    finally:
        manager.stop()
    if failures:
        raise DirectoryFailed(path, failures[0])


def _retain(log: LocalLog, watermark: int, now_ms: int) -> RetainedLog:
    before_bytes = log.size_bytes
    gone = log.delete_old_segments(watermark, now_ms)
    return RetainedLog(
        log.topic_partition,
        tuple(gone),
        sum(gone.values()),
        before_bytes - log.size_bytes,
        log.size_bytes,
        log.log_start_offset,
        log.log_end_offset,
    )
