"""Collect facts for the cleaner's rules, from an open log or a stopped broker's directory."""

from __future__ import annotations

from engine.log.cleaner.cleanable import CleanableLog, CleanableSegment
from engine.log.local_log import LocalLog
from engine.log.segment import Segment


def collect_cleanable_log(
    log: LocalLog, *, high_watermark: int, checkpoint_offset: int | None
) -> CleanableLog:
    """Return the facts of a log that decide whether and how far it may be cleaned.

    They are copied, but for the two functions that read a segment's timestamps on demand. For a
    stopped log, which has no high watermark, pass the log end offset.
    """

    def segment_at(base_offset: int) -> Segment:
        """Return the segment with this base offset."""
        segment = log.segments.floor(base_offset)
        assert segment is not None
        return segment

    return CleanableLog(
        log.topic_partition,
        [CleanableSegment(segment.base_offset, segment.size_bytes) for segment in log.segments],
        log.log_start_offset,
        log.log_end_offset,
        log.last_stable_offset(high_watermark),
        checkpoint_offset,
        lambda base_offset: segment_at(base_offset).largest_timestamp_ms,
        lambda base_offset: segment_at(base_offset).first_timestamp_ms(),
    )
