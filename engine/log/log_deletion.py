"""Delete the oldest segments of one log, and remove any segment's files.

```
1 log start offset raised to the first kept segment    2 segments renamed, lowest first
3 files unlinked after file.delete.delay.ms
```

A crash between 1 and 2 leaves segments below the log start offset, which the next retention check
deletes; a crash during 2 leaves a log with fewer segments. Files that remain of 2 and 3 are removed
at the next start.

Source: RET-4, RET-8; Kafka's UnifiedLog.deleteSegments.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from engine.host.ports import Files
from engine.log.log_config import LogConfig
from engine.log.log_messages import LogMessages, LogStartReason
from engine.log.producer_snapshots import ProducerSnapshots
from engine.log.retention import LogFacts, RetentionReason, plan_retention
from engine.log.segment import Segment
from engine.log.segment_list import SegmentList
from engine.log.segment_trash import discard_replaced, discard_segments
from engine.log.tasks import LogHooks
from engine.naming import FileState


class DeletableLog(Protocol):
    """The parts of a log that LogDeletion uses."""

    config: LogConfig
    segments: SegmentList
    snapshots: ProducerSnapshots
    log_start_offset: int
    log_end_offset: int

    def roll(self, now_ms: int) -> Segment:
        """Start a new segment at the log end offset."""

    def maybe_increment_log_start_offset(
        self, offset: int, high_watermark: int, reason: LogStartReason
    ) -> bool:
        """Raise the log start offset; return True if it rose."""


class LogDeletion:
    """Deletes, replaces and discards segments of one log."""

    __slots__ = ("_files", "_hooks", "_lines", "_log")

    def __init__(
        self, log: DeletableLog, files: Files, hooks: LogHooks, lines: LogMessages
    ) -> None:
        """Work on the segments of `log`; `lines` writes the log lines about deletions."""
        self._log = log
        self._files = files
        self._hooks = hooks
        self._lines = lines

    def apply_retention(self, high_watermark: int, now_ms: int) -> dict[RetentionReason, int]:
        """Delete segments by retention.ms, retention.bytes and log start offset (RET-4).

        Returns the number of deleted segments for each reason.
        """
        log = self._log
        segments = log.segments.retention_facts(log.log_end_offset)
        facts = LogFacts(segments, log.log_start_offset, high_watermark, now_ms)
        steps = plan_retention(facts, log.config)
        if steps:
            self._lines.log_retention(facts, steps, log.config)
            self._delete_oldest(sum(step.segment_count for step in steps), high_watermark, now_ms)
        return {step.reason: step.segment_count for step in steps}

    def delete_before(self, offset: int, high_watermark: int, now_ms: int) -> int:
        """Delete inactive segments that end at or below `offset`; return their number.

        Segments with records at or above the high watermark remain.
        """
        ends = self._log.segments.bases[1:]
        count = sum(1 for end in ends if end <= min(offset, high_watermark))
        if count:
            self._delete_oldest(count, high_watermark, now_ms)
        return count

    def _delete_oldest(self, count: int, high_watermark: int, now_ms: int) -> None:
        """Delete the oldest `count` segments; the log start offset rises to the next segment."""
        log = self._log
        if count == len(log.segments):
            # A log always has a segment to append to.
            log.roll(now_ms)
        doomed = list(log.segments)[:count]
        following = log.segments.higher(doomed[-1].base_offset)
        if following is None:
            return
        log.maybe_increment_log_start_offset(
            following.base_offset, high_watermark, LogStartReason.SEGMENT_DELETION
        )
        self.discard(doomed)

    def replace_segments(self, new: Segment, old: Iterable[Segment]) -> None:
        """Replace segments with a cleaned one; `loader.py` completes this after a crash.

        The names of all `.cleaned` files were synced before. If a crash interrupts the renames, the
        directory reads as the old segments, or as the new segment with later old ones after it.

        1 `.cleaned` to `.swap`, the .log first     2 old segments to `.deleted`, lowest first
        3 `.swap` to live names, the .log first     4 snapshots of removed base offsets

        Source: L8; Kafka's LocalLog.replaceSegments.
        """
        log, gone = self._log, list(old)
        new.change_state(FileState.SWAP)
        for segment in gone:
            log.segments.remove(segment)
        log.segments.add(new)
        delay_ms, tasks = log.config.file_delete_delay_ms, self._hooks.tasks
        discard_replaced(self._files, gone, new, log.snapshots, tasks, delay_ms=delay_ms)

    def discard(self, segments: Iterable[Segment]) -> None:
        """Rename segments to `.deleted` in this order; unlink them after file.delete.delay.ms."""
        log, gone = self._log, list(segments)
        for segment in gone:
            log.segments.remove(segment)
        delay_ms, tasks = log.config.file_delete_delay_ms, self._hooks.tasks
        discard_segments(self._files, gone, log.snapshots, tasks, delay_ms=delay_ms)
