"""A log as retention sees it: sizes and times of its segments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from engine.log.retention import LogFacts, SegmentFacts
from engine.model import TopicPartition

#: Growth is not told by logs that are younger.
_SPAN_MS_MIN = 1000


class LogHistory(NamedTuple):
    """One log; offsets are exclusive at the end, times those of records, in ms.

    `first_timestamp_ms` is that of the oldest records, None if nobody knows. `is_estimated`: the
    segments are not the real ones, but equal parts of what is there.
    """

    topic_partition: TopicPartition
    segments: Sequence[SegmentFacts]
    log_start_offset: int
    high_watermark: int
    first_timestamp_ms: int | None
    is_estimated: bool = False

    @property
    def size_bytes(self) -> int:
        """Return the bytes of all segments."""
        return sum(segment.size_bytes for segment in self.segments)

    @property
    def last_timestamp_ms(self) -> int | None:
        """Return the newest time of a record, None of a log without one."""
        times = [s.largest_timestamp_ms for s in self.segments if s.size_bytes]
        return max(times, default=None)

    @property
    def bytes_per_s(self) -> float | None:
        """Return the log's growth from its oldest to its newest record, None if unknown."""
        first, last = self.first_timestamp_ms, self.last_timestamp_ms
        if first is None or last is None or last - first < _SPAN_MS_MIN:
            return None
        return self.size_bytes * 1000 / (last - first)

    def facts(self, now_ms: int) -> LogFacts:
        """Return the facts that the rules of retention use."""
        return LogFacts(self.segments, self.log_start_offset, self.high_watermark, now_ms)
