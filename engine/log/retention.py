"""Decide which segments retention deletes. Pure.

From the oldest segment on, as long as each one may be deleted; the first that must stay ends it:

| reason       | a segment is deleted if                                                      |
|--------------|------------------------------------------------------------------------------|
| start offset | the next segment's base is at or below the log start offset                  |
| size         | the log's size above retention.bytes is at least    the segment's size       |
| time         | its largest timestamp is more than retention.ms ago                          |

Only whole segments below the high watermark, and never an empty active one. Topics that are only
compacted lose segments by start offset alone.

Source: RET-1 … RET-9, L6; Kafka's UnifiedLog.deleteOldSegments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import NamedTuple, Protocol

from engine.log.log_config import LogConfig


class RetentionReason(Enum):
    """The reason for which segments are deleted."""

    START_OFFSET = "log start offset"
    SIZE = "retention.bytes"
    TIME = "retention.ms"


class RetainedSegment(Protocol):
    """The values of a segment for the retention rules.

    `end_offset` is the next base or the log end.

    The largest timestamp of a segment is read from its file, and only if a rule needs it.
    """

    @property
    def base_offset(self) -> int:
        """Return its first offset."""
        ...

    @property
    def end_offset(self) -> int:
        """Return the end offset of the segment (exclusive)."""
        ...

    @property
    def size_bytes(self) -> int:
        """Return the size of its .log."""
        ...

    @property
    def largest_timestamp_ms(self) -> int:
        """Return the segment's largest timestamp, or the time that replaces a missing one."""
        ...

    @property
    def is_active(self) -> bool:
        """Return True for the segment that is appended to."""
        ...


class SegmentFacts(NamedTuple):
    """A `RetainedSegment` whose values are all known."""

    base_offset: int
    end_offset: int
    size_bytes: int
    largest_timestamp_ms: int
    is_active: bool


class LogFacts(NamedTuple):
    """One log at one moment."""

    segments: Sequence[RetainedSegment]
    log_start_offset: int
    high_watermark: int
    now_ms: int


class RetentionStep(NamedTuple):
    """The oldest `segment_count` segments may be deleted for `reason`."""

    reason: RetentionReason
    segment_count: int


def plan_retention(log: LogFacts, config: LogConfig) -> list[RetentionStep]:
    """Return the segments to delete, by reason in Kafka's order.

    Each reason applies to the segments that the earlier reasons leave.
    """
    steps = []
    segments = list(log.segments)
    for reason, count_of in _REASONS:
        if reason is not RetentionReason.START_OFFSET and not config.is_deleting:
            continue
        count = count_of(log._replace(segments=segments), config)
        if count:
            steps.append(RetentionStep(reason, count))
            del segments[:count]
    return steps


def _by_start_offset(log: LogFacts, config: LogConfig) -> int:
    """Return how many of the oldest segments end at or below the log start offset."""
    return _count(
        log, lambda segment: not segment.is_active and segment.end_offset <= log.log_start_offset
    )


def _by_size(log: LogFacts, config: LogConfig) -> int:
    """Return how many of the oldest segments can be deleted so that `retention.bytes` remain."""
    total = sum(segment.size_bytes for segment in log.segments)
    if config.retention_bytes < 0 or total < config.retention_bytes:
        return 0
    excess = total - config.retention_bytes

    def takes(segment: RetainedSegment) -> bool:
        nonlocal excess
        excess -= segment.size_bytes
        return excess >= 0

    return _count(log, takes)


def _by_time(log: LogFacts, config: LogConfig) -> int:
    """Count the oldest segments whose largest timestamp is older than `retention.ms`."""
    if config.retention_ms < 0:
        return 0
    return _count(
        log, lambda segment: log.now_ms - segment.largest_timestamp_ms > config.retention_ms
    )


_REASONS: tuple[tuple[RetentionReason, Callable[[LogFacts, LogConfig], int]], ...] = (
    (RetentionReason.START_OFFSET, _by_start_offset),
    (RetentionReason.SIZE, _by_size),
    (RetentionReason.TIME, _by_time),
)


def _count(log: LogFacts, takes: Callable[[RetainedSegment], bool]) -> int:
    """Count from the oldest segment while `takes` holds and the HW is at or above its end."""
    count = 0
    for segment in log.segments:
        if log.high_watermark < segment.end_offset or not takes(segment):
            break
        if segment.is_active and not segment.size_bytes:
            break
        count += 1
    return count
