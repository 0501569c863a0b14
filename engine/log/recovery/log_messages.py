"""Log messages about the opening of one partition's log after a crash.

```
INFO   Recovering unflushed segment <base>. <done>/<all> recovered for <partition>.
WARN   Found invalid messages in log segment <path> at byte offset <position>: <why>
WARN   Found invalid offset during recovery. Deleting the corrupt segment and creating an empty
       one with starting offset <base>: <why>
WARN   Corruption found in segment <base>, truncating to offset <offset>: <bytes> of <path> …
INFO   Deleting segments as part of log truncation: <segments>
ERROR  Could not find offset index file corresponding to log file <path>, …
WARN   Found a corrupted index file corresponding to log file <path> due to <why>, …
INFO   Rebuilt the indexes of segment <base>: …
INFO   Removed <path>: <why>            Renamed <path> to <name>
```

Loggers, heads and first words are Kafka's, because tools search for them.
Source: kafka.log.LogLoader; Kafka's LogSegment.recover.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import NamedTuple

from engine.model import TopicPartition

_loader_log = logging.getLogger("kafka.log.LogLoader")
_segment_log = logging.getLogger("org.apache.kafka.storage.internals.log.LogSegment")


class SegmentTruncation(NamedTuple):
    """Bytes that recovery removed at the end of one segment, and the remaining size."""

    base_offset: int
    path: str
    truncated_bytes: int
    left_bytes: int
    next_offset: int


class RecoveryLogMessages:
    """Logs the steps of one log's recovery."""

    __slots__ = ("_head", "_partition")

    def __init__(self, topic_partition: TopicPartition, directory: str) -> None:
        self._partition = topic_partition
        folder = directory.rpartition("/")[0]
        self._head = f"[LogLoader partition={topic_partition}, dir={folder}]"

    def log_recovery(self, base_offset: int, done: int, count: int) -> None:
        """Log that recovery reads a segment: number `done`, counted from 0, of `count`."""
        _loader_log.info(
            "%s Recovering unflushed segment %d. %d/%d recovered for %s.",
            self._head,
            base_offset,
            done,
            count,
            self._partition,
        )

    def damaged(self, path: str, position: int, reason: str) -> None:
        """Log the position of the first bad batch in a segment.

        Recovery removes it and all after.
        """
        line = "Found invalid messages in log segment %s at byte offset %d: %s."
        _segment_log.warning(line, path, position, reason)

    def log_disorder(self, base_offset: int, path: str, position: int, reason: str) -> None:
        """Log that a complete segment is truncated to its base offset: its offsets do not rise.

        `reason` describes the first batch that does not rise, at `position` of the file `path`.
        """
        _loader_log.warning(
            "%s Found invalid offset during recovery. Deleting the corrupt segment and creating"
            " an empty one with starting offset %d: %s at position %d, %s",
            self._head,
            base_offset,
            path,
            position,
            reason,
        )

    def log_truncation(self, truncation: SegmentTruncation) -> None:
        """Log the number of bytes that a segment has lost."""
        _loader_log.warning(
            "%s Corruption found in segment %d, truncating to offset %d: cut %d bytes of %s,"
            " %d are left",
            self._head,
            truncation.base_offset,
            truncation.next_offset,
            truncation.truncated_bytes,
            truncation.path,
            truncation.left_bytes,
        )

    def log_drop(self, segments: Sequence[tuple[int, int]], reason: str) -> None:
        """Log the deletion of segments, given as (base offset, size in bytes)."""
        shown = ",".join(f"LogSegment(baseOffset={base}, size={size})" for base, size in segments)
        _loader_log.info(
            "%s Deleting segments as part of log truncation: %s, %s", self._head, shown, reason
        )

    def log_missing_index(self, path: str) -> None:
        """Log that a segment has no offset index."""
        _loader_log.error(
            "%s Could not find offset index file corresponding to log file %s, recovering segment"
            " and rebuilding index files...",
            self._head,
            path,
        )

    def log_corrupt_index(self, path: str, reason: str) -> None:
        """Log that an index of a segment is corrupt."""
        _loader_log.warning(
            "%s Found a corrupted index file corresponding to log file %s due to %s, recovering"
            " segment and rebuilding index files...",
            self._head,
            path,
            reason,
        )

    def log_rebuilt_indexes(self, base_offset: int, offset_count: int, time_count: int) -> None:
        """Log that a segment's indexes were rebuilt, with their numbers of entries."""
        _loader_log.info(
            "%s Rebuilt the indexes of segment %d: %d entries by offset, %d by time",
            self._head,
            base_offset,
            offset_count,
            time_count,
        )

    def log_end_below_start(self, log_end_offset: int, log_start_offset: int) -> None:
        """Log that all segments of a log are deleted, because it ends below its start."""
        _loader_log.warning(
            "%s Deleting all segments because logEndOffset (%d) is smaller than logStartOffset %d."
            " This could happen if segment files were deleted from the file system.",
            self._head,
            log_end_offset,
            log_start_offset,
        )

    def removed(self, path: str, reason: str) -> None:
        """Log the deletion of a file that an interrupted cleaning or deletion left."""
        _loader_log.info("%s Removed %s: %s", self._head, path, reason)

    def renamed(self, path: str, name: str) -> None:
        """Log that a rename which a crash interrupted is completed; `name` is the new file name."""
        _loader_log.info("%s Renamed %s to %s", self._head, path, name)
