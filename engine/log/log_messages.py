"""The log lines about one partition's log that operators search for, at INFO.

```
Rolled new log segment at offset <base>
Truncating to offset <offset>            Truncate and start at offset <offset>
Incremented log start offset to <offset> due to <reason>
Deleting segment LogSegment(…) due to log retention time <ms>ms breach …
Deleting segment LogSegment(…) due to log retention size <bytes> breach …
Deleting segments due to log start offset <offset> breach: …
```

The loggers, the head in brackets and the first words are Kafka's, which tools search for.
Source: kafka.log.UnifiedLog, LocalLog. Differs: a roll's line does not have its duration.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from enum import Enum

from engine.log.log_config import LogConfig
from engine.log.retention import LogFacts, RetainedSegment, RetentionReason, RetentionStep
from engine.model import TopicPartition

_local_log = logging.getLogger("kafka.log.LocalLog")
_unified_log = logging.getLogger("kafka.log.UnifiedLog")


class LogStartReason(Enum):
    """The reason why a log start offset rises."""

    SEGMENT_DELETION = "segment deletion"
    LEADER_START = "leader offset increment"
    DELETE_RECORDS = "client delete records request"


class LogMessages:
    """Writes the log lines about one partition's log."""

    __slots__ = ("directory", "topic_partition")

    def __init__(self, topic_partition: TopicPartition, directory: str) -> None:
        self.topic_partition = topic_partition
        #: The partition's folder; lines name the directory that contains it.
        self.directory = directory

    def rolled(self, base_offset: int) -> None:
        """Log that a new segment begins at `base_offset`."""
        _local_log.info(
            "%s Rolled new log segment at offset %d", self._head("LocalLog"), base_offset
        )

    def log_truncation(self, offset: int) -> None:
        """Log that the records from `offset` on are removed."""
        _unified_log.info("%s Truncating to offset %d", self._head("UnifiedLog"), offset)

    def restarted(self, offset: int) -> None:
        """Log that all records were deleted, and that the log restarts at `offset`."""
        head = self._head("UnifiedLog")
        _unified_log.info("%s Truncate and start at offset %d", head, offset)

    def log_start_offset_change(self, log_start_offset: int, reason: LogStartReason) -> None:
        """Log that the log start offset has risen, with the reason."""
        _unified_log.info(
            "%s Incremented log start offset to %d due to %s",
            self._head("UnifiedLog"),
            log_start_offset,
            reason.value,
        )

    def log_retention(
        self, log: LogFacts, steps: Sequence[RetentionStep], config: LogConfig
    ) -> None:
        """Log which segments retention is about to delete, and by which rule."""
        first, left_bytes = 0, sum(segment.size_bytes for segment in log.segments)
        for reason, segment_count in steps:
            segments = log.segments[first : first + segment_count]
            first += segment_count
            if reason is RetentionReason.START_OFFSET:
                left_bytes -= sum(segment.size_bytes for segment in segments)
                self._log_below_start(log.log_start_offset, segments)
                continue
            for segment in segments:
                left_bytes -= segment.size_bytes
                self._log_deletion(segment, reason, left_bytes, config)

    def _log_below_start(self, log_start_offset: int, segments: Sequence[RetainedSegment]) -> None:
        """Log in one line the segments deleted because they are below the log start offset."""
        _unified_log.info(
            "%s Deleting segments due to log start offset %d breach: %s",
            self._head("UnifiedLog"),
            log_start_offset,
            ",".join(map(_format_segment, segments)),
        )

    def _log_deletion(
        self, segment: RetainedSegment, reason: RetentionReason, left_bytes: int, config: LogConfig
    ) -> None:
        """Log the deletion of one segment with Kafka's text of the reason.

        `left_bytes` is the size of the log after the deletion.
        """
        if reason is RetentionReason.TIME:
            why = (
                f"log retention time {config.retention_ms}ms breach based on the largest record"
                " timestamp in the segment"
            )
        else:
            why = (
                f"log retention size {config.retention_bytes} breach."
                f" Log size after deletion will be {left_bytes}."
            )
        head = self._head("UnifiedLog")
        _unified_log.info("%s Deleting segment %s due to %s", head, _format_segment(segment), why)

    def _head(self, part: str) -> str:
        """Return the start of a line as in Kafka's log: the partition and its log directory.

        `part` is the Kafka class that writes the line, UnifiedLog or LocalLog.
        """
        folder = self.directory.rpartition("/")[0]
        return f"[{part} partition={self.topic_partition}, dir={folder}]"


def _format_segment(segment: RetainedSegment) -> str:
    """Return a segment in the form of Kafka's `LogSegment.toString`, without modification time."""
    return (
        f"LogSegment(baseOffset={segment.base_offset}, size={segment.size_bytes},"
        f" largestRecordTimestamp={segment.largest_timestamp_ms})"
    )
