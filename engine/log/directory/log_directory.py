"""One log directory in use: its lock, its identity, its checkpoints, its logs.

```
open   1 .lock taken   2 meta.properties read, or written the first time
load   3 .kafka_cleanshutdown recorded and removed: later deaths of the broker are unclean stops
       4 checkpoints read: a damaged one counts as empty, which costs time but no records
       5 lines of partitions without a folder removed from the checkpoints
       6 each <topic>-<partition> and -future opened   7 -delete listed for removal, -stray kept
close  8 logs closed   9 checkpoints written   10 .kafka_cleanshutdown written   11 .lock removed
```

A log that could not be opened keeps its lines in all checkpoints: after its repair it continues
with its log start offset, high watermark, recovery point and first dirty offset. (Kafka has no such
log: its directory goes offline, or the broker stops.) A log without a folder loses its lines.

An I/O error takes only this directory offline (D20): it is not read or written any more, its lock
remains, and at the next start its logs are recovered.

Source: Kafka's LogManager, BrokerMetadataCheckpoint; `formats.md` on directories; PART-13.
"""

from __future__ import annotations

import os.path
from collections.abc import Callable, Iterable, Mapping, Set
from contextlib import suppress
from threading import Lock
from typing import NamedTuple, Protocol

from engine.errors import StorageError
from engine.host.ports import FileMissing, FileRefused, Files, LogDirOffline
from engine.log.directory import clean_shutdown, meta_properties
from engine.log.directory.clean_shutdown import CleanShutdown, encode_clean_shutdown
from engine.log.directory.cleaner_points import CleanerPoints
from engine.log.directory.log_dir import (
    LOCK_FILE,
    LogDir,
    LogDirState,
    PartitionFolder,
    read_log_dir,
)
from engine.log.directory.meta_properties import (
    MetaProperties,
    encode_meta_properties,
    read_meta_properties,
)
from engine.log.directory.offset_checkpoint import (
    CLEANER_POINTS,
    HIGH_WATERMARKS,
    LOG_STARTS,
    RECOVERY_POINTS,
    encode_offsets,
)
from engine.log.directory.text_checkpoint import create_text_checkpoint
from engine.log.local_log import LocalLog
from engine.log.log_config import LogConfig
from engine.log.recovery.loader import LoadReport, LoadRequest, load_log
from engine.log.tasks import LogHooks
from engine.model import TopicPartition
from engine.naming import CLUSTER_METADATA_TOPIC, DirectoryKind


class DirectoryLock(Protocol):
    """Locks a log directory against other processes."""

    def __call__(self, path: str) -> Callable[[], None]:
        """Lock the file, creating it if needed; return the function that unlocks it.

        Raises LogDirectoryLocked if another process holds the lock.
        """
        ...


class LogDirectoryLocked(StorageError):
    """Another process uses the log directory."""

    hint = "stop the broker that runs on this directory"

    def __init__(self, path: str) -> None:
        super().__init__(f"{path}: in use by another process")
        self.path = path


class ForeignLogDirectory(StorageError):
    """A log directory belongs to another broker or cluster."""

    hint = "check broker.id, zookeeper.connect and log.dirs"

    def __init__(self, path: str, setting: str, stored: object, expected: object) -> None:
        super().__init__(f"{path}: {setting} is {stored} there, {expected} here")
        self.path = path
        self.setting = setting
        self.stored = stored
        self.expected = expected


class FailedLog(NamedTuple):
    """A partition directory that could not be opened as a log; its files are not changed."""

    topic_partition: TopicPartition
    directory: str
    error: StorageError
    #: Whether it was a future replica, which was being moved from another log directory.
    is_future: bool = False


class LoadedDirectory(NamedTuple):
    """The result of loading a directory; paths are those of partition directories."""

    logs: Mapping[TopicPartition, LocalLog]
    futures: Mapping[TopicPartition, LocalLog]
    failed: tuple[FailedLog, ...]
    to_delete: tuple[str, ...]
    strays: tuple[str, ...]
    unknown: tuple[str, ...]
    reports: Mapping[str, LoadReport]
    problems: tuple[StorageError, ...]


class LogDirectory:
    """One of the broker's log directories; `offline` is the error that took it out of use."""

    def __init__(self, files: Files, path: str, lock: DirectoryLock) -> None:
        """Create the directory's object; `open` locks and reads the directory."""
        self._files = files
        self.path = path
        self._lock = lock
        #: Releases the lock of the directory. None before it is locked, and after the close.
        self._unlock: Callable[[], None] | None = None
        #: Held while a checkpoint is written: the loop and worker threads may both do so.
        self._writing = Lock()
        #: The failure that took the directory offline, None while it is in use. It is never reset.
        self.offline: StorageError | None = None
        #: Whether the directory had the marker of a clean shutdown, so that logs need no recovery.
        self.was_stopped_cleanly = False
        #: Folders of logs that could not be opened. While there are any, no marker of a clean
        #: shutdown is written: the next start must check these logs again.
        self._failed_paths: set[str] = set()
        #: High watermarks as the checkpoint file has them now.
        self._high_watermarks: dict[TopicPartition, int] = {}
        #: Whether `_high_watermarks` has changed since the file was written.
        self._has_stale_watermarks = False
        #: High watermarks of stopped replicas whose log is kept, to write them on with the others.
        self._stopped: dict[TopicPartition, int] = {}
        #: The offsets that each checkpoint file had for logs that could not be opened, by file
        #: name. They are written again, so that a repaired log finds them.
        self._kept: dict[str, dict[TopicPartition, int]] = {}
        self.cleaner_points = CleanerPoints(files, path)
        #: Numbers of folders created, and of these durable in the directory. Each caller of a sync
        #: waits until its folder is covered; one fsync covers many.
        self._made_count = self._synced_count = 0
        #: Held during the fsync of the directory. Callers that wait for it need none of their own.
        self._syncing = Lock()
        #: The failed fsync; every later sync raises it, because its folders may be lost.
        self._sync_failure: StorageError | None = None

    def note_new_name(self) -> None:
        """Record that a folder was created in the directory; `sync_new_folders` must follow."""
        self._made_count += 1

    def sync_new_folders(self) -> None:
        """Sync the directory, so that the folders that were created before survive a crash.

        Concurrent callers share one sync. May run on a worker thread. Raises the StorageError of
        the sync, also for all later callers, because the state after a failed sync is unknown
        (D20).
        """
        with self._syncing:
            if self._sync_failure is not None:
                raise self._sync_failure
            made_count = self._made_count
            if self._synced_count < made_count:
                try:
                    self._files.sync_dir(self.path)
                except StorageError as error:
                    self._sync_failure = error
                    raise
                self._synced_count = made_count

    @property
    def is_online(self) -> bool:
        """Return True if the directory is in use."""
        return self.offline is None

    def open(self, broker_id: int, cluster_id: str, *, now_ms: int) -> None:
        """Lock the directory and verify meta.properties; write the file at the first start.

        Steps 1 and 2 of the start. Raises LogDirectoryLocked, ForeignLogDirectory and the errors of
        the host.
        """
        _create_dir_durably(self._files, self.path)
        self._unlock = self._lock(f"{self.path}/{LOCK_FILE}")
        path = f"{self.path}/{meta_properties.FILE_NAME}"
        try:
            properties = read_meta_properties(self._files, path)
        except FileMissing:
            meta = MetaProperties(0, cluster_id, broker_id)
            self._files.replace_file(path, encode_meta_properties(meta, now_ms))
            return
        if properties.node_id is not None and properties.node_id != broker_id:
            raise ForeignLogDirectory(self.path, "the broker's id", properties.node_id, broker_id)
        if properties.cluster_id is not None and properties.cluster_id != cluster_id:
            raise ForeignLogDirectory(
                self.path, "the cluster's id", properties.cluster_id, cluster_id
            )

    def load_logs(
        self, config_of: Callable[[str], LogConfig], hooks: LogHooks, *, now_ms: int
    ) -> LoadedDirectory:
        """Open every log, and recover those that need it: steps 3 to 7 of the start.

        May run on a separate thread. A log that cannot be read is returned as failed. Raises the
        host's errors, which take the directory offline; all logs are then closed.
        """
        content = read_log_dir(self._files, self.path)
        state = self._drop_lines_without_folder(content)
        self.was_stopped_cleanly = state.clean_shutdown is not None
        if self.was_stopped_cleanly:
            self._files.remove(f"{self.path}/{clean_shutdown.FILE_NAME}")
        # Also makes folders durable that a killed process has created: records will be appended.
        self._files.sync_dir(self.path)
        for name in (RECOVERY_POINTS, LOG_STARTS, HIGH_WATERMARKS):
            create_text_checkpoint(self._files, f"{self.path}/{name}")
        self._high_watermarks = dict(state.checkpoints.get(HIGH_WATERMARKS, {}))
        self.cleaner_points.take(state.checkpoints.get(CLEANER_POINTS, {}))
        logs: dict[TopicPartition, LocalLog] = {}
        futures: dict[TopicPartition, LocalLog] = {}
        failed: list[FailedLog] = []
        to_delete: list[str] = []
        strays: list[str] = []
        reports: dict[str, LoadReport] = {}
        try:
            for partition in content.partitions:
                key, kind = _partition_and_kind(partition)
                path = partition.files.path
                if kind is DirectoryKind.DELETE:
                    to_delete.append(path)
                elif kind is DirectoryKind.STRAY:
                    strays.append(path)
                elif key is not None and key.topic != CLUSTER_METADATA_TOPIC:
                    request = LoadRequest(
                        path,
                        key,
                        config_of(key.topic),
                        now_ms,
                        recovery_point=state.offset(RECOVERY_POINTS, key) or 0,
                        log_start_offset=state.offset(LOG_STARTS, key) or 0,
                        was_stopped_cleanly=self.was_stopped_cleanly,
                        was_cleaned=self.cleaner_points.get(key) is not None,
                    )
                    try:
                        log, reports[path] = load_log(self._files, request, hooks)
                    except StorageError as error:
                        if is_failure_of_directory(error):
                            raise
                        is_future = kind is DirectoryKind.FUTURE
                        failed.append(FailedLog(key, path, error, is_future))
                        self._failed_paths.add(path)
                        continue
                    (logs if kind is DirectoryKind.LIVE else futures)[key] = log
        except BaseException:
            for log in (*logs.values(), *futures.values()):
                log.close_files()
            raise
        failed_keys = {log.topic_partition for log in failed}
        self._keep_failed_entries(state, failed_keys)
        self._lower_recovery_points(state, logs)
        self._lower_high_watermarks(logs)
        self.cleaner_points.keep(logs.keys() | failed_keys)
        return LoadedDirectory(
            logs,
            futures,
            tuple(failed),
            tuple(to_delete),
            tuple(strays),
            content.unknown,
            reports,
            state.problems,
        )

    # Checkpoints

    def _drop_lines_without_folder(self, content: LogDir) -> LogDirState:
        """Remove the checkpoint lines of partitions without a folder; return the new content.

        A kill in the middle of a deletion leaves such lines, and so does a folder removed by hand.

        Differs: Kafka's files keep the lines for up to a minute. A broker that is killed meanwhile
        applies them to a new log of the same name: a log that ends below the old log start offset
        is deleted.
        """
        keys = (_partition_and_kind(folder) for folder in content.partitions)
        here = {key for key, kind in keys if kind in (DirectoryKind.LIVE, DirectoryKind.FUTURE)}
        checkpoints: dict[str, Mapping[TopicPartition, int]] = {}
        for name, offsets in content.state.checkpoints.items():
            checkpoints[name] = {key: at for key, at in offsets.items() if key in here}
            if len(checkpoints[name]) < len(offsets):
                self._files.replace_file(f"{self.path}/{name}", encode_offsets(checkpoints[name]))
        return content.state._replace(checkpoints=checkpoints)

    def _keep_failed_entries(self, state: LogDirState, partitions: Set[TopicPartition]) -> None:
        """Keep the checkpoint lines of logs that failed to load, for all later checkpoints.

        `partitions` are those of the failed logs. An administrator may repair them before the next
        start.
        """
        self._kept = {
            name: {key: offset for key, offset in offsets.items() if key in partitions}
            for name, offsets in state.checkpoints.items()
        }

    def _lower_recovery_points(
        self, state: LogDirState, logs: Mapping[TopicPartition, LocalLog]
    ) -> None:
        """Write the recovery points if a loaded log ends below its checkpointed recovery point.

        Recovery may have truncated the log: a checkpoint above its end would mark records that are
        appended later as flushed.
        """
        written = {key: state.offset(RECOVERY_POINTS, key) or 0 for key in logs}
        if any(log.recovery_point < written[key] for key, log in logs.items()):
            self.write_recovery_points(logs.values)

    def _lower_high_watermarks(self, logs: Mapping[TopicPartition, LocalLog]) -> None:
        """Write the high watermark checkpoint if a loaded log ends below its high watermark.

        Differs: Kafka's file keeps the old high watermark until its next write. A broker that is
        killed before that regards records as committed that were appended again since, and were
        not.
        """
        ends = {key: log.log_end_offset for key, log in logs.items()}
        if any(ends[key] < self.high_watermark(key) for key in ends):
            lowered = self._high_watermarks.items()
            self._high_watermarks = {key: min(at, ends.get(key, at)) for key, at in lowered}
            self._write(HIGH_WATERMARKS, self._high_watermarks)

    def lower_high_watermark(self, key: TopicPartition, end_offset: int) -> None:
        """Write the checkpoint of high watermarks if this log was truncated below its own.

        `end_offset` is the log's new end, which becomes its high watermark. May be called on a
        worker thread.

        Differs: Kafka's file keeps the old high watermark until its next write.
        """
        with self._writing:
            if self.high_watermark(key) > end_offset:
                self._high_watermarks[key] = end_offset
                self._write(HIGH_WATERMARKS, dict(self._high_watermarks))

    def write_recovery_points(self, logs_here: Callable[[], Iterable[LocalLog]]) -> None:
        """Write the recovery point of each log in this directory to its checkpoint.

        May be called on a worker thread. `logs_here` is called under the lock, so that the later of
        two writers has the newer offsets.
        """
        with self._writing:
            points = {log.topic_partition: log.recovery_point for log in logs_here()}
            self._write(RECOVERY_POINTS, points)

    def write_log_start_offsets(self, logs: Iterable[LocalLog]) -> None:
        """Write the checkpoint of the log start offsets above the first segment's base offset.

        Other logs start at their first segment, and need no line.
        """
        starts = {
            log.topic_partition: log.log_start_offset
            for log in logs
            if log.log_start_offset > log.segments.first.base_offset
        }
        self._write(LOG_STARTS, starts)

    def write_high_watermarks(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Write the high watermark checkpoint of this directory's partitions.

        Adds the lines of stopped replicas without a role, and of logs that could not be opened.
        """
        for key in self._stopped.keys() & offsets.keys():
            del self._stopped[key]
        kept = self._kept.get(HIGH_WATERMARKS, {})
        with self._writing:
            self._high_watermarks = {**kept, **self._stopped, **offsets}
            self._has_stale_watermarks = False
            self._write(HIGH_WATERMARKS, self._high_watermarks)

    def high_watermark(self, key: TopicPartition) -> int:
        """Return the last checkpointed high watermark of a partition, 0 without one."""
        return self._high_watermarks.get(key, 0)

    @property
    def keeps_watermarks(self) -> bool:
        """Return True if the directory has stopped replicas, whose watermarks must be written."""
        return bool(self._stopped)

    def keep_high_watermark(self, key: TopicPartition, high_watermark: int) -> None:
        """Keep the high watermark of a stopped replica, until it has a role again or is deleted.

        Otherwise the next checkpoint would lack it, and the replica would start again at 0.

        Source: ReplicaManager.stopPartitions, which drops only deleted replicas.
        """
        self._stopped[key] = self._high_watermarks[key] = high_watermark

    def forget_high_watermark(self, key: TopicPartition) -> None:
        """Drop the high watermark of a removed log, before a topic of the same name gets a log.

        Differs: Kafka's file keeps it until its next write, and a broker that is killed before that
        starts the new topic's log with it.
        """
        self._stopped.pop(key, None)
        if self._high_watermarks.pop(key, None) is not None:
            self._has_stale_watermarks = True

    def forget_failed(self, failed: FailedLog) -> None:
        """Drop the checkpoint lines of a failed log that is deleted; a future replica has none.

        Otherwise a new log of the same partition would start with the offsets of the damaged one.
        """
        self._failed_paths.discard(failed.directory)
        if not failed.is_future:
            for lines in self._kept.values():
                lines.pop(failed.topic_partition, None)
            self.cleaner_points.forget(failed.topic_partition)
            self.forget_high_watermark(failed.topic_partition)

    def write_forgotten_watermarks(self) -> None:
        """Write the high watermark checkpoint if any were dropped since the last write."""
        if self._has_stale_watermarks:
            with self._writing:
                self._has_stale_watermarks = False
                self._write(HIGH_WATERMARKS, dict(self._high_watermarks))

    def _write(self, name: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Replace a checkpoint file; lines of logs that could not be opened are kept."""
        lines = {**self._kept.get(name, {}), **offsets}
        self._files.replace_file(f"{self.path}/{name}", encode_offsets(lines))

    # The end

    def close_cleanly(self, logs: Iterable[LocalLog], *, now_ms: int) -> None:
        """Close the logs, write checkpoints and the clean shutdown marker, unlock the directory.

        Steps 8 to 11. The marker is left out if a log has failed, so that the next start recovers
        all logs.
        """
        closed_logs = list(logs)
        for log in closed_logs:
            log.close(now_ms)
        self.write_recovery_points(lambda: closed_logs)
        self.write_log_start_offsets(closed_logs)
        if not self._failed_paths:
            marker = encode_clean_shutdown(CleanShutdown())
            self._files.replace_file(f"{self.path}/{clean_shutdown.FILE_NAME}", marker)
        self._files.remove(f"{self.path}/{LOCK_FILE}")
        self.unlock()

    def unlock(self) -> None:
        """Unlock the directory for other processes; the lock file remains."""
        unlock, self._unlock = self._unlock, None
        if unlock is not None:
            unlock()


def _create_dir_durably(files: Files, path: str) -> None:
    """Create a directory and its missing parents, and sync the parent of each created one.

    Source: LogManager.createAndValidateLogDirs. Differs: Kafka syncs only the nearest parent.
    """
    missing: list[str] = []
    folder = path
    while not files.exists(folder):
        missing.append(folder)
        folder = os.path.dirname(folder) or "."
    files.make_dir(path)
    for made in reversed(missing):
        files.sync_dir(os.path.dirname(made) or ".")


def remove_folder(files: Files, path: str) -> None:
    """Remove a log's folder and its files; the folder remains if it contains other folders."""
    for name in files.list_dir(path):
        with suppress(FileMissing):
            if not files.is_dir(f"{path}/{name}"):
                files.remove(f"{path}/{name}")
    with suppress(FileRefused):
        files.remove(path)


def is_failure_of_directory(error: StorageError) -> bool:
    """Return True if an error takes the log directory offline: it comes from the host.

    False for an error in a file's content, which fails only one log.
    """
    return isinstance(error, LogDirOffline | FileMissing | FileRefused)


def _partition_and_kind(partition: PartitionFolder) -> tuple[TopicPartition | None, DirectoryKind]:
    """Return partition and kind of a folder; (None, LIVE) if its name has none."""
    directory = partition.directory
    if directory is None:
        return None, DirectoryKind.LIVE
    return directory.topic_partition, directory.kind
