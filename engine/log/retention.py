"""Decide which segments retention deletes. Pure.

Starting with the oldest, segments are deleted up to the first that no rule allows to delete:

| reason       | a segment is deleted if                                                      |
|--------------|------------------------------------------------------------------------------|
| start offset | the next segment's base offset is at or below the log start offset           |
| size         | the log without it would still have retention.bytes                          |
| time         | its largest timestamp is more than retention.ms ago                          |

Only segments that are completely below the high watermark are deleted, and never an empty active
segment. In topics that are only compacted just the start offset rule applies.

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
    """The values of a segment that the retention rules use.

    The largest timestamp is read from the segment's file only if a rule needs it.
    """

    @property
    def base_offset(self) -> int:
        """Return the segment's base offset."""
        ...

    @property
    def end_offset(self) -> int:
        """Return the next segment's base offset, or the log end offset (exclusive)."""
        ...

    @property
    def size_bytes(self) -> int:
        """Return the size of the segment's .log."""
        ...

    @property
    def largest_timestamp_ms(self) -> int:
        """Return the segment's largest timestamp; the modification time if it has no timestamp."""
        ...

    @property
    def is_active(self) -> bool:
        """Return True for the segment that is appended to."""
        ...


class SegmentFacts(NamedTuple):
    """A `RetainedSegment` with known values."""

    base_offset: int
    end_offset: int
    size_bytes: int
    largest_timestamp_ms: int
    is_active: bool


class LogFacts(NamedTuple):
    """The segments and offsets of one log at one time."""

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

    Each reason applies to the segments that remain after the earlier reasons.
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


def _count_by_start_offset(log: LogFacts, config: LogConfig) -> int:
    """Return the number of oldest segments that end at or below the log start offset."""
    return _count_oldest(
        log, lambda segment: not segment.is_active and segment.end_offset <= log.log_start_offset
    )


def _count_by_size(log: LogFacts, config: LogConfig) -> int:
    """Return the number of oldest segments without which the log still has `retention.bytes`."""
    total = sum(segment.size_bytes for segment in log.segments)
    if config.retention_bytes < 0 or total < config.retention_bytes:
        return 0
    excess = total - config.retention_bytes

    def takes(segment: RetainedSegment) -> bool:
        """Return True if `retention.bytes` remain without this segment and those before it."""
        nonlocal excess
        excess -= segment.size_bytes
        return excess >= 0

    return _count_oldest(log, takes)


def _count_by_time(log: LogFacts, config: LogConfig) -> int:
    """Return the number of oldest segments whose largest timestamp is older than `retention.ms`."""
    if config.retention_ms < 0:
        return 0
    return _count_oldest(
        log, lambda segment: log.now_ms - segment.largest_timestamp_ms > config.retention_ms
    )


_REASONS: tuple[tuple[RetentionReason, Callable[[LogFacts, LogConfig], int]], ...] = (
    (RetentionReason.START_OFFSET, _count_by_start_offset),
    (RetentionReason.SIZE, _count_by_size),
    (RetentionReason.TIME, _count_by_time),
)


def _count_oldest(log: LogFacts, takes: Callable[[RetainedSegment], bool]) -> int:
    """Count the oldest segments up to the first that must be kept.

    A segment must be kept if `takes` returns False for it, or if it has records at or above the
    high watermark.
    """
    count = 0
    for segment in log.segments:
        if log.high_watermark < segment.end_offset or not takes(segment):
            break
        if segment.is_active and not segment.size_bytes:
            break
        count += 1
    return count
