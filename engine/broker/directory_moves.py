"""Move replicas to other log directories, one chunk in each turn of the loop, within the throttle.

```
 move_to ── -future log created or present ──> moving ── complete ──> replaces the log
 resume  ── -future log from before a restart ──^ │
                              stopped, failed ──> the -future log stays, or is deleted
```

Source: REPL-14, KIP-113; ReplicaManager.alterReplicaLogDirs, ReplicaAlterLogDirsManager.
Differs: there are no threads to end when nothing moves (SCH-4).
"""

from __future__ import annotations

import logging
import sys
from collections import deque
from collections.abc import Callable

from engine.errors import ApiError, StorageError, api_error
from engine.host.ports import Clock, Timers
from engine.kafka_errors import CORRUPT_MESSAGE, INVALID_TOPIC_EXCEPTION, LOG_DIR_NOT_FOUND
from engine.log.directory.log_manager import LogManager
from engine.log.local_log import LocalLog
from engine.model import TopicPartition
from engine.replication.directory_move import DirectoryMove, FlushedCopy
from engine.replication.effects import RoleChanged
from engine.replication.errors import ReplicaStorageFailed
from engine.replication.replica_manager import ReplicaManager
from engine.replication.replication_quota import ReplicationQuota

_log = logging.getLogger("kafka.server.ReplicaAlterLogDirsManager")
#: The longest file name, part of which is the suffix of a -future directory.
_FILE_NAME_BYTES_MAX = 255
_FUTURE_SUFFIX_BYTES = len(".") + 32 + len("-future")


class DirectoryMoves:
    """The moves of one broker; implements `engine.replication.ports.DirectoryMoving`."""

    def __init__(
        self,
        replicas: Callable[[], ReplicaManager],
        logs: LogManager,
        quota: ReplicationQuota,
        timers: Timers,
        clock: Clock,
        *,
        chunk_bytes: int,
        backoff_ms: int,
        abort_cleaning: Callable[[TopicPartition], None],
    ) -> None:
        """Create the moves of replicas between log directories, without any; each copies in chunks.

        `replicas` returns the replica manager. `abort_cleaning` ends a running compaction of a log.
        """
        self._replicas = replicas
        self._abort_cleaning = abort_cleaning
        self._logs = logs
        self._quota = quota
        self._timers = timers
        self._clock = clock
        self._chunk_bytes = chunk_bytes
        self._backoff_ms = backoff_ms
        #: Partitions that are being moved; the next chunk is copied for the first one.
        self._moving: deque[TopicPartition] = deque()
        #: Partitions whose -future log is being flushed; their moves wait for it.
        self._flushing: set[TopicPartition] = set()
        #: The -future logs that were flushed.
        self._flushed: dict[TopicPartition, FlushedCopy] = {}
        #: Whether a step is scheduled.
        self._is_busy = False
        self._is_stopped = False
        #: Cancels the timer of the next step while the throttle is exceeded.
        self._cancel: Callable[[], None] | None = None

    def move_to(self, topic_partition: TopicPartition, directory: str) -> None:
        """Start to move a replica to another log directory; its present directory cancels a move.

        A partition that this broker does not have yet will be created in that directory. Raises
        INVALID_TOPIC_EXCEPTION for a name too long, LOG_DIR_NOT_FOUND, KAFKA_STORAGE_ERROR, and the
        errors of `find`.
        """
        if len(str(topic_partition)) + _FUTURE_SUFFIX_BYTES > _FILE_NAME_BYTES_MAX:
            raise api_error(INVALID_TOPIC_EXCEPTION)
        self._require_online(topic_partition, directory)
        future = self._logs.get(topic_partition, is_future=True)
        if future is not None and self._logs.directory_of(future) != directory:
            self.stop(topic_partition)
            self._logs.delete([topic_partition], only_future=True)
            future = None
        log = self._logs.get(topic_partition)
        if log is None:
            self._logs.prefer(topic_partition, directory)
        self._replicas().find(topic_partition)
        assert log is not None
        if self._logs.directory_of(log) == directory:
            _log.info("%s is in %s already", topic_partition, directory)
            return
        if future is None:
            self._make_future(topic_partition, directory, log.topic_id)
        self.resume(topic_partition)

    def _require_online(self, topic_partition: TopicPartition, directory: str) -> None:
        """Raise LOG_DIR_NOT_FOUND for an unknown directory, KAFKA_STORAGE_ERROR if offline."""
        homes = {home.path: home for home in self._logs.directories}
        if directory not in homes:
            raise api_error(LOG_DIR_NOT_FOUND)
        if not homes[directory].is_online:
            raise ReplicaStorageFailed(topic_partition, f"{directory} is offline")

    def _make_future(
        self, topic_partition: TopicPartition, directory: str, topic_id: str | None
    ) -> None:
        """Create an empty -future log in the directory, with the topic's id."""
        self._flushed.pop(topic_partition, None)
        # A -future log that could not be opened has no records that the log lacks.
        self._logs.delete([topic_partition], only_future=True)
        future = self._logs.get_or_create(topic_partition, is_future=True, directory=directory)
        self._abort_cleaning(topic_partition)
        if topic_id is not None:
            future.assign_topic_id(topic_id)
        _log.info("%s begins to move to %s", topic_partition, directory)

    def resume(self, topic_partition: TopicPartition) -> None:
        """Continue the move of a partition if its -future log exists, as after a role change."""
        if self._logs.get(topic_partition, is_future=True) is None or self._is_stopped:
            return
        if topic_partition not in self._moving:
            self._moving.append(topic_partition)
        self._schedule_step()

    def stop(self, topic_partition: TopicPartition) -> None:
        """Stop the move of a partition, if there is one; its files remain."""
        self._flushed.pop(topic_partition, None)
        if topic_partition in self._moving:
            self._moving.remove(topic_partition)

    def close(self) -> None:
        """Stop all moves; the -future logs remain for the next start."""
        self._is_stopped = True
        self._moving.clear()
        cancel, self._cancel = self._cancel, None
        if cancel is not None:
            cancel()

    def _schedule_step(self) -> None:
        """Copy the next chunk in a later turn of the event loop, unless a step is pending."""
        if not self._is_busy:
            self._is_busy = True
            self._timers.call_soon(self._copy_next_chunk)

    def _copy_next_chunk(self) -> None:
        """Copy one chunk of the first move in the queue, which then goes to the queue's end.

        While the throttle is exceeded it waits. An error ends only the move that has it.
        """
        self._is_busy = False
        self._cancel = None
        if not self._moving:
            return
        if self._quota.is_exceeded:
            self._is_busy = True
            due_ms = self._clock.monotonic_ms() + self._backoff_ms
            self._cancel = self._timers.call_at(due_ms, self._copy_next_chunk)
            return
        topic_partition = self._moving.popleft()
        is_over = True
        try:
            is_over = self._advance(topic_partition)
        except (ApiError, StorageError) as failure:
            error = self._replicas().answer_to(topic_partition, failure)
            _log.error("%s is not moved on: %s", topic_partition, error)
            if error.code == CORRUPT_MESSAGE:
                self._resume_later(topic_partition)
        finally:
            # An error of one move does not stop the others.
            if not is_over:
                self._moving.append(topic_partition)
            if self._moving:
                self._schedule_step()

    def _resume_later(self, topic_partition: TopicPartition) -> None:
        """Resume a failed move after the back-off: a read may succeed then, or the log be deleted.

        Source: Kafka's AbstractFetcherThread, which delays a partition with invalid records.
        """
        due_ms = self._clock.monotonic_ms() + self._backoff_ms
        self._timers.call_at(due_ms, lambda: self.resume(topic_partition))

    def _start_flush(self, topic_partition: TopicPartition, move: DirectoryMove) -> None:
        """Flush a -future log on a worker thread, and resume its move then."""
        self._flushing.add(topic_partition)
        try:
            future, truncation_count = move.future, move.partition.log.truncation_count
            end_offset, flushed = future.log_end_offset, self._flushed.pop(topic_partition, None)
            future.start_flush(
                self._clock.wall_ms(), lambda: self._on_flush_end(topic_partition, end_offset)
            )
            copied_bytes = sys.maxsize
            if flushed is not None and flushed.truncation_count == truncation_count:
                copied_bytes = flushed.copied_bytes
            self._flushed[topic_partition] = FlushedCopy(
                truncation_count, copied_bytes_before=copied_bytes
            )
        except BaseException:
            self._flushing.discard(topic_partition)
            raise

    def _on_flush_end(self, topic_partition: TopicPartition, end_offset: int) -> None:
        """Resume a move that waited for the flush of its -future log, if that still exists.

        After a fault, by which the log is not flushed up to `end_offset`, it is resumed after the
        back-off, and flushed again.
        """
        self._flushing.discard(topic_partition)
        future = self._logs.get(topic_partition, is_future=True)
        if future is not None and future.recovery_point < end_offset:
            self._flushed.pop(topic_partition, None)
            self._resume_later(topic_partition)
        else:
            self.resume(topic_partition)

    def _count(
        self, topic_partition: TopicPartition, future: LocalLog, copied_bytes: int, end_before: int
    ) -> None:
        """Count what a step has copied to a -future log since its flush.

        `end_before` is the log end offset before the step. A log that was truncated is to be
        flushed again: some of what it had was on disk.
        """
        flushed = self._flushed.get(topic_partition)
        if flushed is None:
            return
        if future.log_end_offset < end_before:
            del self._flushed[topic_partition]
        elif future.log_start_offset == future.log_end_offset:
            # The log start offset has passed its end: it begins again.
            self._flushed[topic_partition] = flushed._replace(copied_bytes=0)
        else:
            total_bytes = flushed.copied_bytes + copied_bytes
            self._flushed[topic_partition] = flushed._replace(copied_bytes=total_bytes)

    def _advance(self, topic_partition: TopicPartition) -> bool:
        """Copy one chunk of a move, or exchange the logs when all is copied and flushed.

        True if the move is complete or impossible, or waits for a flush, after which it is resumed.
        False if more remains to be copied.
        """
        replicas = self._replicas()
        partition = replicas.partitions.get(topic_partition)
        future = self._logs.get(topic_partition, is_future=True)
        if partition is None or future is None:
            return True
        move = DirectoryMove(partition, future)
        if topic_partition in self._flushing:
            return True
        if move.needs_flush(self._flushed.get(topic_partition)):
            self._start_flush(topic_partition, move)
            return True
        end_before = future.log_end_offset
        copied_bytes = move.run_step(self._chunk_bytes, self._clock.wall_ms())
        if copied_bytes is not None:
            self._quota.record(topic_partition, copied_bytes)
            self._count(topic_partition, future, copied_bytes, end_before)
            return False
        self._flushed.pop(topic_partition, None)
        partition.log = self._logs.promote_future(topic_partition)
        _log.info("%s has moved to %s", topic_partition, self._logs.directory_of(partition.log))
        # Delayed operations with positions in the old files are checked again.
        replicas.perform((RoleChanged(topic_partition, partition.leader_epoch),))
        return True
