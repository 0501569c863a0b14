"""The settings of a broker's log manager, and the functions of the broker that it calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from engine.errors import StorageError
from engine.host.parallel import RunAll, run_in_order
from engine.host.ports import Clock, Entropy
from engine.host.turns import no_time
from engine.log.directory.log_directory import DirectoryLock
from engine.log.log_config import LONG_MAX, LogConfig
from engine.log.tasks import LogTasks
from engine.model import TopicPartition


class LogManagerConfig(NamedTuple):
    """The broker's settings for logs, with Kafka's defaults."""

    log_dirs: Sequence[str]
    broker_id: int
    cluster_id: str
    retention_check_interval_ms: int = 300_000
    flush_scheduler_interval_ms: int = LONG_MAX
    recovery_point_checkpoint_ms: int = 60_000
    log_start_offset_checkpoint_ms: int = 60_000
    producer_id_expiration_check_ms: int = 600_000
    initial_task_delay_ms: int = 30_000


class LogManagerPorts(NamedTuple):
    """The functions of the broker that the log manager calls.

    `on_offline` is called with the directory, the error, and its partitions. `run_all` runs the
    loading of the directories.
    """

    tasks: LogTasks
    clock: Clock
    entropy: Entropy
    lock: DirectoryLock
    config_of: Callable[[str], LogConfig]
    high_watermark_of: Callable[[TopicPartition], int]
    on_offline: Callable[[str, StorageError, Sequence[TopicPartition]], None]
    run_all: RunAll = run_in_order
    #: A clock of nanoseconds, to measure syncs by.
    work_ns: Callable[[], int] = no_time
