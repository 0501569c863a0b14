"""Estimate the part of a log that certainly lies below its active segment. Pure.

| closed for sure | because |
|---|---|
| all but the last segment.bytes | no segment is larger |
| what is older than the newest record by segment.ms | a segment is rolled when that is over |

Records younger than min.compaction.lag.ms are not cleaned even so. More may be closed: where
segments begin is told by no request.

Source: CMP-3, LOG-6.
"""

from __future__ import annotations

from typing import NamedTuple

from engine.forecast.log_history import LogHistory
from engine.log.cleaner.compaction_wait import CompactionWait
from engine.log.log_config import LogConfig


class ClosedRange(NamedTuple):
    """The part of a log that may be cleaned at least, and the reason why it is not more."""

    first_uncleanable_offset: int
    size_bytes: int
    waits_for: CompactionWait | None


def closed_segments(log: LogHistory, config: LogConfig, now_ms: int) -> ClosedRange:
    """Return the range of a log that cleaning may certainly reach, clean or dirty.

    For a log of which only estimated parts are known, and not its segments.
    """
    closed = _closed_count(log, config)
    old = [
        part.largest_timestamp_ms <= now_ms - config.min_compaction_lag_ms
        or not config.min_compaction_lag_ms
        for part in log.segments
    ]
    offset, size_bytes = log.log_start_offset, 0
    for part, is_old in zip(log.segments[:closed], old, strict=False):
        if not is_old:
            return ClosedRange(offset, size_bytes, CompactionWait.LAG)
        offset, size_bytes = part.end_offset, size_bytes + part.size_bytes
    if offset < log.high_watermark and not size_bytes:
        return ClosedRange(offset, size_bytes, CompactionWait.ACTIVE_SEGMENT)
    return ClosedRange(offset, size_bytes, None)


def _closed_count(log: LogHistory, config: LogConfig) -> int:
    """Return how many parts, from the oldest on, certainly lie in closed segments."""
    newest_ms = log.last_timestamp_ms
    closed, left = 0, log.size_bytes
    for number, part in enumerate(log.segments, 1):
        left -= part.size_bytes
        is_old = newest_ms is not None and (
            part.largest_timestamp_ms < newest_ms - config.segment_ms
        )
        if left >= config.segment_bytes or is_old:
            closed = number
    return closed
