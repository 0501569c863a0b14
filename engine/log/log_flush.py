"""The recovery point of one log, and the flushes that raise it.

```
recovery point   all records below it are on disk; a power cut may lose records above it, and the
                 next start reads them again
flush            at once, on the caller's thread: flush.messages, flush.ms, close
flush later      a rolled segment: on a worker thread; the recovery point rises afterwards, but not
                 above a truncation meanwhile: records appended there since were not synced
```

A log may be deleted while it is flushed: a missing folder is no failed disk.

Source: LOG-11; Kafka's UnifiedLog.flush, LocalLog, Utils.flushDirIfExists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from threading import Lock

from engine.errors import StorageError
from engine.host.ports import FileMissing, Files
from engine.log.producer_snapshots import ProducerSnapshots
from engine.log.segment import Segment
from engine.log.segment_list import SegmentList
from engine.log.tasks import LogHooks


class LogFlush:
    """Flushes one log, and keeps its recovery point."""

    __slots__ = (
        "_end_offset",
        "_files",
        "_has_new_names",
        "_hooks",
        "_in_progress",
        "_naming",
        "_segments",
        "_snapshots",
        "directory",
        "last_flush_ms",
        "recovery_point",
    )

    def __init__(
        self,
        files: Files,
        directory: str,
        segments: SegmentList,
        snapshots: ProducerSnapshots,
        hooks: LogHooks,
        end_offset: Callable[[], int],
        *,
        recovery_point: int,
    ) -> None:
        """Start at `recovery_point`; `end_offset` returns the current log end offset."""
        self._files = files
        #: Guards the folder's name: flushes on worker threads use it, and the loop renames the
        #: folder when a move ends or the log is deleted.
        self._naming = Lock()
        self.directory = directory
        self._segments = segments
        self._snapshots = snapshots
        self._hooks = hooks
        self._end_offset = end_offset
        #: Up to where each flush under way may lift the recovery point, by its number.
        self._in_progress: dict[int, int] = {}
        #: Rises to the end of each flush that succeeds; falls by truncation.
        self.recovery_point = recovery_point
        #: Wall time of the last flush, 0 before the first.
        self.last_flush_ms = 0
        #: Whether files were created or renamed since the last fsync of the directory.
        self._has_new_names = True

    def note_new_names(self) -> None:
        """Make the next flush sync the partition's folder too, because files were created in it."""
        self._has_new_names = True

    def flush(self, now_ms: int) -> None:
        """Flush all records now; the recovery point moves to the log end offset."""
        if self._end_offset() > self.recovery_point:
            self._flush_all(now_ms)
        else:
            self._mark_flushed(self._end_offset(), now_ms)

    def close(self, now_ms: int) -> None:
        """Flush all records and sync the partition's folder."""
        self._has_new_names = True
        self._flush_all(now_ms)

    def _flush_all(self, now_ms: int) -> None:
        """Flush all records on this thread, then move the recovery point to the log end offset."""
        end = self._end_offset()
        segments = self._segments_up_to(end)
        snapshots = self._snapshots.unsynced
        self._sync(segments, snapshots)
        self._snapshots.note_synced(snapshots)
        self._mark_flushed(end, now_ms)

    def start_flush(
        self, offset: int, now_ms: int, on_end: Callable[[], None] | None = None
    ) -> None:
        """Flush all records below `offset`, and unsynced snapshots, on a worker thread.

        Then the recovery point rises to `offset`, or to the offset of a truncation meanwhile.
        `on_end` is called after that, and after a failure too.
        """
        snapshots = self._snapshots.unsynced
        segments = self._segments_up_to(offset)
        number = max(self._in_progress, default=0) + 1
        self._in_progress[number] = offset
        faults: list[BaseException] = []
        for segment, _ in segments:
            segment.borrow()

        def work() -> None:
            """Sync on a worker thread; pass any fault but StorageError to `done`."""
            try:
                self._sync(segments, snapshots)
            except StorageError:
                raise
            except BaseException as fault:
                # Raised on the loop, once the segments are given back.
                faults.append(fault)

        def done(failure: StorageError | None) -> None:
            """Advance the recovery point after the syncs; a failure takes the directory offline."""
            flushed_offset = self._in_progress.pop(number)
            try:
                unclosed = _give_back(segments)
                failure = failure or unclosed
                if failure is not None:
                    self._hooks.on_failure(failure)
                elif not faults:
                    self._snapshots.note_synced(snapshots)
                    self._mark_flushed(flushed_offset, now_ms)
                if faults:
                    raise faults[0]
            finally:
                if on_end is not None:
                    on_end()

        self._hooks.tasks.offload("flush-log", work, done)

    def lower_to(self, offset: int) -> None:
        """Lower the recovery point to the truncation offset, also for running flushes.

        Otherwise records that are appended later would count as flushed.
        """
        for number, flushed_offset in self._in_progress.items():
            self._in_progress[number] = min(flushed_offset, offset)
        self.recovery_point = min(self.recovery_point, offset)

    def sync_names(self) -> None:
        """Sync the log's folder, so that new file names survive a crash. For any thread."""
        with self._naming, suppress(FileMissing):
            self._has_new_names = False
            self._files.sync_dir(self.directory)

    def rename(self, directory: str) -> None:
        """Rename the log's folder, under the lock that `sync_names` on worker threads takes."""
        with self._naming:
            self._files.rename(self.directory, directory)
            self.directory = directory

    def unflushed_segments(self, offset: int) -> list[Segment]:
        """Return the segments with records in [recovery point, offset), oldest first."""
        return self._segments.between(self.recovery_point, offset)

    def _segments_up_to(self, offset: int) -> list[tuple[Segment, bool]]:
        """Return (segment, True to flush its indexes too) for the segments to flush below `offset`.

        Call it on the loop only: other threads may see the list of segments in the middle of a
        change.
        """
        active = self._segments.active
        segments = self.unflushed_segments(offset)
        return [(segment, segment is not active) for segment in segments]

    def _sync(self, segments: Iterable[tuple[Segment, bool]], snapshots: Iterable[int]) -> None:
        """Sync segments and snapshots chosen on the loop. May run on a worker thread."""
        times = self._hooks.flush_times
        for segment, with_indexes in segments:
            began_ns = times.now_ns()
            segment.sync(with_indexes=with_indexes)
            times.note(began_ns)
        self._snapshots.sync_snapshots(snapshots)
        if self._has_new_names:
            self.sync_names()

    def _mark_flushed(self, offset: int, now_ms: int) -> None:
        """Raise the recovery point to `offset`, unless a later flush has raised it further.

        `now_ms` becomes the time of the last flush, from which flush.ms counts.
        """
        self.recovery_point = max(self.recovery_point, offset)
        self.last_flush_ms = now_ms


def _give_back(segments: Iterable[tuple[Segment, bool]]) -> StorageError | None:
    """Give back all segments that were borrowed for a flush; return the first error.

    The file of a segment that was deleted meanwhile is closed then, which may fail.
    """
    failure: StorageError | None = None
    for segment, _ in segments:
        try:
            segment.give_back()
        except StorageError as error:
            failure = failure or error
    return failure
