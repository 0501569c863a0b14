"""All logs of one broker, over its log directories: loaded, created, moved, deleted, checkpointed.

| task (names and periods are Kafka's) | what it does                                             |
|--------------------------------------|----------------------------------------------------------|
| kafka-log-retention                  | retention of every log that is not compacted; the cleaner |
|                                      | applies it to compacted logs                             |
| kafka-log-flusher                    | flush.ms                                                 |
| kafka-recovery-point-checkpoint      | recovery points of each directory                        |
| kafka-log-start-offset-checkpoint    | log start offsets of each directory                      |
| kafka-delete-logs                    | removes a `-delete` directory after its delay            |
| PeriodicProducerExpirationCheck      | producer.id.expiration.ms                                |

An I/O error takes the directory offline: its logs are removed, other logs continue, and
`on_offline` is called with the affected partitions. One thread owns all this; only loading uses
one thread for each directory.

State after a crash during a change of names (each step is synced before the next):

```
create   folder made · topic's id written · name synced         an empty log, or nothing
delete   <log> → -delete · checkpoints · files removed later    the log, or a leftover to remove
move     -future → <log> · old <log> → -delete                  between the two: both logs, which
                                                                stops the next start (as in Kafka)
```

Source: SCH-5 … SCH-9, REPL-14; Kafka's LogManager; KIP-112, KIP-113.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache, partial

from engine.errors import StorageError
from engine.host.ports import FileMissing, Files
from engine.log.directory.directory_guard import DirectoryGuard
from engine.log.directory.failed_logs import FailedLogs
from engine.log.directory.log_directory import (
    LoadedDirectory,
    LogDirectory,
    is_failure_of_directory,
    remove_folder,
)
from engine.log.directory.log_manager_ports import LogManagerConfig, LogManagerPorts
from engine.log.directory.log_placement import LogPlacement
from engine.log.directory.log_refusals import DuplicateLog, KafkaStorageError
from engine.log.flush_times import FlushTimes
from engine.log.local_log import LocalLog
from engine.log.log_config import LONG_MAX
from engine.log.recovery.loader import LoadRequest, load_log
from engine.log.tasks import DeferredTasks, LogHooks, LogTasks, Steps, take_all
from engine.model import TopicPartition
from engine.naming import DirectoryKind

_manager_log = logging.getLogger("kafka.log.LogManager")


class LogManager:
    """The logs of one broker. Source: LOG-10."""

    def __init__(self, files: Files, config: LogManagerConfig, ports: LogManagerPorts) -> None:
        """Create the directories' objects; `start` reads the disks and opens the logs."""
        self._files = files
        self._config = config
        self._ports = ports
        self.directories = [LogDirectory(files, path, ports.lock) for path in config.log_dirs]
        #: Current logs, and future replicas that a move between directories is filling.
        self._logs: dict[TopicPartition, LocalLog] = {}
        self._futures: dict[TopicPartition, LocalLog] = {}
        #: Chooses the directory of a new log: the requested one, or the one with the fewest logs.
        self._placement = LogPlacement(
            ports.entropy, lambda directory: len(self._logs_in(directory))
        )
        #: Durations of fsyncs, for the LogFlushRateAndTimeMs meter.
        self.flush_times = FlushTimes(ports.work_ns)
        #: Logs whose open failed at the start; their partitions are offline.
        self.failed = FailedLogs(files, self.directories)
        #: The log directory of each log, by the path of the log's folder.
        self._home: dict[str, LogDirectory] = {}
        self._is_stopped = False

    # Starting

    def start(self) -> dict[str, LoadedDirectory]:
        """Open all directories and logs; return the logs of each directory that works.

        A directory that fails goes offline. Raises LogDirectoryLocked, ForeignLogDirectory,
        DuplicateLog; KafkaStorageError if no directory is left. Then everything is closed again,
        and the logs are recovered at the next start.
        """
        loaded: dict[str, LoadedDirectory] = {}
        try:
            self._start(loaded)
        except BaseException:
            self._close_without_checkpoints(loaded)
            raise
        return loaded

    def _start(self, loaded: dict[str, LoadedDirectory]) -> None:
        """Open the directories and their loaded logs, and schedule the periodic tasks."""
        now_ms = self._ports.clock.wall_ms()
        for directory in self.directories:
            with self._guarded(directory):
                directory.open(self._config.broker_id, self._config.cluster_id, now_ms=now_ms)
        self._load_directories(loaded, now_ms)
        for directory in self._online():
            self._add_loaded(directory, loaded[directory.path])
        if not self._online():
            reasons = "; ".join(str(directory.offline) for directory in self.directories)
            raise KafkaStorageError(f"no log directory can be used: {reasons}")
        self._schedule_tasks()

    def _close_without_checkpoints(self, loaded_directories: Mapping[str, LoadedDirectory]) -> None:
        """Close all files without writing checkpoints, and unlock the directories."""
        for loaded in loaded_directories.values():
            for log in (*loaded.logs.values(), *loaded.futures.values()):
                log.close_files()
        for directory in self.directories:
            directory.unlock()

    def _load_directories(self, loaded: dict[str, LoadedDirectory], now_ms: int) -> None:
        """Load each log directory on its own thread; a directory that fails goes offline.

        Tasks that loading schedules start after all threads have ended. Raises the first error that
        is not a StorageError.
        """
        failures: dict[str, StorageError] = {}
        faults: list[BaseException] = []
        waiting: list[DeferredTasks] = []

        def load(directory: LogDirectory, hooks: LogHooks) -> None:
            """Load one directory on its thread; store its logs, I/O failure, or fault."""
            try:
                loaded[directory.path] = directory.load_logs(
                    self._ports.config_of, hooks, now_ms=now_ms
                )
            except StorageError as error:
                failures[directory.path] = error
            except BaseException as error:
                # Raised in a thread it would be lost.
                faults.append(error)

        works = []
        for directory in self._online():
            tasks = DeferredTasks(self._ports.tasks)
            waiting.append(tasks)
            works.append(partial(load, directory, self._create_hooks(directory, tasks)))
        self._ports.run_all(works)
        if faults:
            raise faults[0]
        for tasks in waiting:
            tasks.release()
        for directory in self._online():
            if directory.path in failures:
                self._take_directory_offline(directory, failures[directory.path])

    def _create_hooks(self, directory: LogDirectory, tasks: LogTasks) -> LogHooks:
        """Return the callbacks of a directory's logs: an I/O failure takes it offline."""
        return LogHooks(
            tasks,
            on_failure=lambda error: self.take_offline(directory.path, error),
            on_truncated=partial(self._write_truncated_points, directory),
            jitter_ms=self._ports.entropy.random_below,
            flush_times=self.flush_times,
        )

    def _add_loaded(self, directory: LogDirectory, loaded: LoadedDirectory) -> None:
        """Add the logs of a loaded directory; raises DuplicateLog if a partition has another log.

        Schedules the removal of its `-delete` folders, which an earlier run of the broker renamed.
        """
        for logs, taken in ((loaded.logs, self._logs), (loaded.futures, self._futures)):
            for key, log in logs.items():
                if key in taken:
                    raise DuplicateLog(key, taken[key].directory, log.directory)
                taken[key] = log
                self._home[log.directory] = directory
        for failed in loaded.failed:
            self.failed.note(failed)
        for path in loaded.to_delete:
            self._remove_later(directory, path, self._ports.config_of("").file_delete_delay_ms)

    def _schedule_tasks(self) -> None:
        """Schedule the periodic tasks; a period of Long.MAX_VALUE turns a task off."""
        config, tasks = self._config, self._ports.tasks
        first = config.initial_task_delay_ms
        for name, period, steps in (
            ("kafka-log-retention", config.retention_check_interval_ms, self.apply_retention),
            ("kafka-log-flusher", config.flush_scheduler_interval_ms, self.flush_dirty),
            (
                "PeriodicProducerExpirationCheck",
                config.producer_id_expiration_check_ms,
                self.expire_producers,
            ),
        ):
            if period < LONG_MAX:
                tasks.every_in_steps(name, period, steps, first_after_ms=first)
        for name, period, action in (
            (
                "kafka-recovery-point-checkpoint",
                config.recovery_point_checkpoint_ms,
                self.checkpoint_recovery_points,
            ),
            (
                "kafka-log-start-offset-checkpoint",
                config.log_start_offset_checkpoint_ms,
                self.checkpoint_log_starts,
            ),
        ):
            if period < LONG_MAX:
                tasks.every(name, period, action, first_after_ms=first)

    # Lookup and creation

    @property
    def logs(self) -> Mapping[TopicPartition, LocalLog]:
        """Return the current log of each partition."""
        return self._logs

    @property
    def futures(self) -> Mapping[TopicPartition, LocalLog]:
        """Return the future logs, to which partitions are being moved."""
        return self._futures

    def get(self, topic_partition: TopicPartition, *, is_future: bool = False) -> LocalLog | None:
        """Return a partition's log, None if this broker has none."""
        return (self._futures if is_future else self._logs).get(topic_partition)

    def directory_of(self, log: LocalLog) -> str:
        """Return the log directory that contains a log."""
        return self._home[log.directory].path

    def checkpointed_high_watermark(self, topic_partition: TopicPartition) -> int:
        """Return a log's checkpointed high watermark, within the log's offsets (PART-2).

        0 without a log.
        """
        log = self._logs.get(topic_partition)
        if log is None:
            return 0
        stored = self._home[log.directory].high_watermark(topic_partition)
        return max(min(stored, log.log_end_offset), log.log_start_offset)

    def keep_high_watermark(self, topic_partition: TopicPartition, high_watermark: int) -> None:
        """Keep the high watermark of a stopped replica, for later checkpoints and its next role."""
        log = self._logs.get(topic_partition)
        if log is not None:
            self._home[log.directory].keep_high_watermark(topic_partition, high_watermark)

    def get_or_create(
        self,
        topic_partition: TopicPartition,
        *,
        is_new: bool = False,
        is_future: bool = False,
        directory: str | None = None,
        topic_id: str | None = None,
    ) -> LocalLog:
        """Return a partition's log; create it if this broker has none.

        A new log is created in `directory`, or in the log directory with the fewest logs, with the
        topic's id. Unless `is_new`, no log is created while a log directory is offline: the
        partition's log may be in that directory.

        Raises KafkaStorageError, also for a log that could not be opened at the start.
        """
        log = self.get(topic_partition, is_future=is_future)
        if log is not None:
            return log
        failed = self.failed.get(topic_partition, is_future=is_future)
        if failed is not None:
            raise KafkaStorageError(f"the log of {topic_partition} is damaged: {failed.error}")
        offline = [home.path for home in self.directories if not home.is_online]
        if offline and not is_new:
            raise KafkaStorageError(f"{topic_partition} may be in {offline[0]}, which is offline")
        home = self._placement.choose_directory(topic_partition, self._online(), directory)
        kind = DirectoryKind.FUTURE if is_future else DirectoryKind.LIVE
        path = f"{home.path}/{self._placement.create_folder_name(topic_partition, kind)}"
        with self._guarded(home):
            log = self._open_log(home, topic_partition, path)
            (self._futures if is_future else self._logs)[topic_partition] = log
            self._home[path] = home
            # A failure in here, which may be reported at once, takes the log back out.
            log.schedule_creation_syncs(topic_id, home.sync_new_folders)
            if home.is_online:
                return log
        raise KafkaStorageError(f"{home.path} is offline")

    def prefer(self, topic_partition: TopicPartition, directory: str) -> None:
        """Set the directory in which the log of a partition will be created (REPL-14)."""
        self._placement.prefer(topic_partition, directory)

    def _open_log(self, home: LogDirectory, key: TopicPartition, path: str) -> LocalLog:
        """Create a log's folder, or open an existing one; `sync_new_folders` must follow."""
        is_created = not self._files.exists(path)
        self._files.make_dir(path)
        home.note_new_name()
        request = LoadRequest(
            path,
            key,
            self._ports.config_of(key.topic),
            self._ports.clock.wall_ms(),
            is_created=is_created,
        )
        log, _ = load_log(self._files, request, self._create_hooks(home, self._ports.tasks))
        return log

    # Deleting and moving

    def delete(
        self, partitions: Iterable[TopicPartition], *, only_future: bool = False
    ) -> list[TopicPartition]:
        """Delete logs in one step of the event loop with `delete_one`, and sync the directories.

        Returns the partitions that had a log. `only_future` keeps the live logs.
        """
        homes: dict[LogDirectory, set[TopicPartition]] = {}
        deleted = [
            key for key in partitions if self.delete_one(key, homes, only_future=only_future)
        ]
        take_all(self.sync_deletions(homes))
        return deleted

    def delete_one(
        self,
        topic_partition: TopicPartition,
        homes: dict[LogDirectory, set[TopicPartition]],
        *,
        only_future: bool = False,
    ) -> bool:
        """Rename a log's folders, live and future, to be removed after file.delete.delay.ms.

        Returns True if there was a log. The partition is added to the set of its directory in
        `homes`, for `sync_deletions`, which must follow before a log of the same name is created.
        Raises KafkaStorageError if the log directory fails: the log then reappears with the
        directory. `only_future` keeps the live log.
        """
        is_deleted = False
        failed_homes: list[str] = []
        for is_future in (True,) if only_future else (False, True):
            failed = self.failed.in_reach(topic_partition, is_future=is_future)
            if failed is not None:
                is_deleted = True
                home = self.failed.home(failed)
                homes.setdefault(home, set()).add(topic_partition)
                with self._guarded(home):
                    name = self._placement.create_folder_name(topic_partition, DirectoryKind.DELETE)
                    path = f"{home.path}/{name}"
                    self.failed.set_aside(failed, path)
                    delay_ms = self._ports.config_of(topic_partition.topic).file_delete_delay_ms
                    self._remove_later(home, path, delay_ms)
                if not home.is_online:
                    failed_homes.append(home.path)
            log = (self._futures if is_future else self._logs).pop(topic_partition, None)
            if log is None:
                continue
            is_deleted = True
            home = self._home[log.directory]
            homes.setdefault(home, set()).add(topic_partition)
            with self._guarded(home):
                path = self._set_aside(log, home, DirectoryKind.DELETE)
                self._remove_later(home, path, log.config.file_delete_delay_ms)
            if not home.is_online:
                failed_homes.append(home.path)
        if failed_homes and not only_future:
            raise KafkaStorageError(f"{topic_partition} is in {failed_homes[0]}, which is offline")
        return is_deleted

    def sync_deletions(self, homes: Iterable[LogDirectory]) -> Steps:
        """Sync the directories after renames, then write their checkpoints, one file a step.

        Runs after `delete_one`, so that a deleted log does not reappear after a crash.
        """
        for home in homes:
            for write in self._steps_after_renames(home):
                # Checked before each write: a directory may have failed, or all logs been closed.
                if home.is_online and not self._is_stopped:
                    with self._guarded(home):
                        write()
                yield

    def mark_stray(self, topic_partition: TopicPartition, reason: str) -> bool:
        """Rename a log that the controller has not assigned to this broker to `-stray`.

        Its files are kept, for an administrator to remove. Returns False if there is no log.
        """
        log = self._logs.pop(topic_partition, None)
        if log is None:
            return False
        home = self._home[log.directory]
        with self._guarded(home):
            path = self._set_aside_durably(log, home, DirectoryKind.STRAY)
            _manager_log.warning(
                "Log for partition %s is marked as stray and renamed to %s: %s",
                topic_partition,
                path,
                reason,
            )
        return True

    def promote_future(self, topic_partition: TopicPartition) -> LocalLog:
        """Replace a log with its future log in another log directory, which has caught up.

        Raises KafkaStorageError if the log directory fails: before the renames are done the old log
        remains, afterwards the partition is offline with the directory.
        """
        future = self._futures[topic_partition]
        home = self._home[future.directory]
        with self._guarded(home):
            self._rename_durably(future, home, f"{home.path}/{topic_partition}")
        if not home.is_online:
            raise KafkaStorageError(f"{home.path} is offline")
        old = self._logs.get(topic_partition)
        first_dirty = None if old is None else self.first_dirty_offset(old)
        self._logs[topic_partition] = self._futures.pop(topic_partition)
        if old is not None:
            old_home = self._home[old.directory]
            with self._guarded(old_home):
                path = self._set_aside_durably(old, old_home, DirectoryKind.DELETE)
                self._remove_later(old_home, path, old.config.file_delete_delay_ms)
        if first_dirty is not None:
            home.cleaner_points.set(topic_partition, first_dirty)
        with self._guarded(home):
            for write in self._checkpoint_writers(home):
                write()
        if not home.is_online:
            raise KafkaStorageError(f"{home.path} is offline")
        return future

    def _set_aside_durably(self, log: LocalLog, home: LogDirectory, kind: DirectoryKind) -> str:
        """Rename a log's folder, close the log and write the checkpoints; return the new path.

        `kind` is the new kind of the folder: stray, or to be deleted.
        """
        path = self._set_aside(log, home, kind)
        for write in self._steps_after_renames(home):
            write()
        return path

    def _set_aside(self, log: LocalLog, home: LogDirectory, kind: DirectoryKind) -> str:
        """Rename the folder of a log that is already out of the maps, and close the log.

        Returns the new path. The caller syncs the directory and writes its checkpoints.
        """
        path = f"{home.path}/{self._placement.create_folder_name(log.topic_partition, kind)}"
        directory = log.directory
        try:
            log.rename_directory(path)
        finally:
            # The log is in no map any more, so close it here even if the rename failed.
            log.close_files()
        del self._home[directory]
        home.cleaner_points.forget(log.topic_partition)
        home.forget_high_watermark(log.topic_partition)
        return path

    def _steps_after_renames(self, home: LogDirectory) -> tuple[Callable[[], None], ...]:
        """Return the steps that must follow renames of folders, in the order of their calls.

        The first syncs the directory, the others write its checkpoints.
        """
        return partial(self._files.sync_dir, home.path), *self._checkpoint_writers(home)

    def _rename_durably(self, log: LocalLog, home: LogDirectory, path: str) -> None:
        """Rename a log's folder, record its new path, and sync the directory."""
        directory = log.directory
        log.rename_directory(path)
        # Before the sync: if it fails, the directory's logs are removed by their paths.
        del self._home[directory]
        self._home[path] = home
        self._files.sync_dir(home.path)

    def _remove_later(self, directory: LogDirectory, path: str, delay_ms: int) -> None:
        """Delete a renamed folder after `delay_ms`, unless its directory is offline by then."""

        def remove() -> None:
            """Delete the folder's files, unless the log directory is offline by then."""
            if directory.is_online:
                with self._guarded(directory), suppress(FileMissing):
                    remove_folder(self._files, path)

        self._ports.tasks.once("kafka-delete-logs", delay_ms, remove)

    # Periodic tasks

    def apply_retention(self) -> Steps:
        """Apply retention to the logs that are not compacted, one log in each step (RET-2).

        The cleaner applies retention to compacted logs itself.
        """
        for directory, log in self._iter_logs():
            if log.config.is_compacted:
                continue
            with self._guard_log(directory, log):
                watermark = self._ports.high_watermark_of(log.topic_partition)
                log.delete_old_segments(watermark, self._ports.clock.wall_ms())
            yield

    def flush_dirty(self) -> Steps:
        """Flush the logs whose flush.ms has passed, one log in each step."""
        for directory, log in self._iter_logs():
            now_ms = self._ports.clock.wall_ms()
            if now_ms - log.last_flush_ms >= log.config.flush_ms:
                with self._guard_log(directory, log):
                    log.flush(now_ms)
            yield

    def checkpoint_recovery_points(self) -> None:
        """Write the recovery points of every online directory, as a periodic task (SCH-7)."""
        for directory in self._online():
            with self._guarded(directory):
                self._write_recovery_points(directory)

    def checkpoint_log_starts(self) -> None:
        """Write the log start offsets of every online directory, as a periodic task (SCH-8)."""
        for directory in self._online():
            with self._guarded(directory):
                directory.write_log_start_offsets(self._logs_in(directory))

    def checkpoint_high_watermarks(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Write the high watermarks of partitions, each to the directory of its log (PART-13).

        A directory without any of these partitions keeps its file, but for dropped partitions.
        Source: ReplicaManager.checkpointHighWatermarks.
        """
        for directory in self._online():
            here = {
                log.topic_partition: offsets[log.topic_partition]
                for log in self._logs_in(directory)
                if log.topic_partition in offsets
            }
            with self._guarded(directory):
                if here or directory.keeps_watermarks:
                    directory.write_high_watermarks(here)
                else:
                    directory.write_forgotten_watermarks()

    def expire_producers(self) -> Steps:
        """Remove producers idle for producer.id.expiration.ms, one log in each step.

        Source: SCH-12.
        """
        for _, log in self._iter_logs():
            now_ms, idle_ms = self._ports.clock.wall_ms(), log.config.producer_id_expiration_ms
            log.producers.remove_expired(now_ms=now_ms, expiration_ms=idle_ms)
            yield

    def reconfigure(self, topic: str | None = None) -> None:
        """Apply changed settings to the logs of a topic, or to all logs if `topic` is None."""
        config_of = cache(self._ports.config_of)
        for log in self._all():
            name = log.topic_partition.topic
            if topic is None or name == topic:
                log.configure(config_of(name))

    def _checkpoint_writers(self, directory: LogDirectory) -> tuple[Callable[[], None], ...]:
        """Return the writers of a directory's checkpoint files, in the order of their calls."""
        return (
            partial(self._write_recovery_points, directory),
            lambda: directory.write_log_start_offsets(self._logs_in(directory)),
            directory.write_forgotten_watermarks,
            directory.cleaner_points.write,
        )

    def _write_truncated_points(self, directory: LogDirectory, key: TopicPartition) -> None:
        """Write the checkpoints that a log's truncation has lowered; called on a worker thread.

        Otherwise a broker that is killed would count records appended later as flushed and clean.
        """
        self._write_recovery_points(directory)
        log = self._logs.get(key)
        if log is not None:
            if self._home.get(log.directory) is directory:
                directory.lower_high_watermark(key, log.log_end_offset)
            directory.cleaner_points.lower(key, log.active_segment.base_offset)
            directory.cleaner_points.write()

    def _write_recovery_points(self, directory: LogDirectory) -> None:
        """Write the recovery points of a directory; may be called on a worker thread."""
        directory.write_recovery_points(lambda: self._logs_in(directory))

    # Cleaning

    def create_cleaner_checkpoints(self) -> None:
        """Create the cleaner checkpoint in every directory; called at the start if enabled."""
        for directory in self._online():
            with self._guarded(directory):
                directory.cleaner_points.create_file()

    def first_dirty_offset(self, log: LocalLog) -> int | None:
        """Return the offset up to which a log was cleaned (exclusive), None if it never was."""
        return self._home[log.directory].cleaner_points.get(log.topic_partition)

    def write_first_dirty_offset(self, log: LocalLog, first_dirty_offset: int) -> None:
        """Sync the log's folder, then write its first dirty offset, on a worker thread.

        A failure takes the log directory offline.
        """
        home, path = self._home[log.directory], log.directory
        home.cleaner_points.set(log.topic_partition, first_dirty_offset)

        def write() -> None:
            """Sync the renamed segments' folder before the checkpoint that relies on them."""
            # The folder of a log that was deleted meanwhile does not exist any more.
            with suppress(FileMissing):
                self._files.sync_dir(path)
            home.cleaner_points.write()

        def done(failure: StorageError | None) -> None:
            """Take the log directory offline if the write has failed."""
            if failure is not None:
                self.take_offline(home.path, failure)

        self._ports.tasks.offload("cleaner-offset-checkpoint", write, done)

    # Directories

    def take_offline(self, path: str, error: StorageError) -> None:
        """Stop using a log directory after an I/O error; this broker has its logs no more.

        `path` is the log directory's. A second call for the directory does nothing.
        """
        for directory in self.directories:
            if directory.path == path and directory.is_online:
                self._take_directory_offline(directory, error)

    def _take_directory_offline(self, directory: LogDirectory, error: StorageError) -> None:
        """Take a directory offline: close its logs and report the lost partitions."""
        directory.offline = error
        lost = []
        for log in self._logs_in(directory):
            if self._futures.get(log.topic_partition) is log:
                # The current log is in another directory, and continues.
                del self._futures[log.topic_partition]
            elif self._logs.pop(log.topic_partition, None):
                lost.append(log.topic_partition)
            with suppress(StorageError):
                log.close_files()
        self._home = {path: home for path, home in self._home.items() if home is not directory}
        self._ports.on_offline(directory.path, error, lost)

    def _guarded(self, directory: LogDirectory) -> DirectoryGuard:
        """Return a guard that takes the directory offline at an I/O error in its block."""
        return DirectoryGuard(self.take_offline, directory.path)

    @contextmanager
    def _guard_log(self, directory: LogDirectory, log: LocalLog) -> Iterator[None]:
        """Guard work on one of many logs: an I/O error takes the directory offline.

        An error of this log alone, such as damage, is only logged, so that the work on other logs
        continues.
        """
        with self._guarded(directory):
            try:
                yield
            except StorageError as error:
                if is_failure_of_directory(error):
                    raise
                _manager_log.error("%s in %s: %s", log.topic_partition, directory.path, error)

    def _online(self) -> list[LogDirectory]:
        """Return the log directories that have not failed."""
        return [directory for directory in self.directories if directory.is_online]

    def _iter_logs(self) -> Iterator[tuple[LogDirectory, LocalLog]]:
        """Yield (directory, log) for every log, as long as its directory is online."""
        for directory in self._online():
            for log in self._logs_in(directory):
                # A failure at one log may have removed other logs of this list.
                if directory.is_online and self._home.get(log.directory) is directory:
                    yield directory, log

    def _all(self) -> list[LocalLog]:
        """Return all logs, including those of future replicas."""
        return [*self._logs.values(), *self._futures.values()]

    def _logs_in(self, directory: LogDirectory) -> list[LocalLog]:
        """Return the logs in a directory, including those of future replicas."""
        return [log for log in self._all() if self._home.get(log.directory) is directory]

    def stop(self) -> None:
        """Close all logs and directories, those online with a clean shutdown marker."""
        self._is_stopped = True
        now_ms = self._ports.clock.wall_ms()
        for directory in self._online():
            logs = self._logs_in(directory)
            with self._guarded(directory):
                directory.close_cleanly(logs, now_ms=now_ms)
        for directory in self.directories:
            directory.unlock()
        self._logs.clear()
        self._futures.clear()
        self._home.clear()
