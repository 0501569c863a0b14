"""Estimate the part of a log that is certainly below its active segment. Pure.

| certainly closed | because |
|---|---|
| all but the last segment.bytes | no segment is larger |
| what is older than the newest record by segment.ms | a segment is rolled after that time |

Of this, records younger than min.compaction.lag.ms are not cleaned. More may be closed, but no
request returns where segments begin.

Source: CMP-3, LOG-6.
"""

from __future__ import annotations

from typing import NamedTuple

from engine.forecast.log_history import LogHistory
from engine.log.cleaner.compaction_wait import CompactionWait
from engine.log.log_config import LogConfig


class ClosedRange(NamedTuple):
    """The part of a log that can certainly be cleaned, and what the rest waits for."""

    first_uncleanable_offset: int
    size_bytes: int
    waits_for: CompactionWait | None


def closed_segments(log: LogHistory, config: LogConfig, now_ms: int) -> ClosedRange:
    """Return the part of a log that is certainly in closed segments, which a cleaner may clean.

    For a log whose segments are unknown, and that has estimated parts instead.
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
    """Return how many parts, from the oldest on, are certainly in closed segments."""
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
