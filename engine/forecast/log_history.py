"""A log as retention needs it: sizes and times of its segments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from engine.log.retention import LogFacts, SegmentFacts
from engine.model import TopicPartition

#: Minimum span of records from which growth is computed.
_SPAN_MS_MIN = 1000


class LogHistory(NamedTuple):
    """The segments and offsets of a log; end offsets are exclusive, times are those of records.

    `first_timestamp_ms` is the time of the oldest records, None if it is unknown. With
    `is_estimated` the segments are not the real ones but parts of similar size.
    """

    topic_partition: TopicPartition
    segments: Sequence[SegmentFacts]
    log_start_offset: int
    high_watermark: int
    first_timestamp_ms: int | None
    is_estimated: bool = False

    @property
    def size_bytes(self) -> int:
        """The size of all segments."""
        return sum(segment.size_bytes for segment in self.segments)

    @property
    def last_timestamp_ms(self) -> int | None:
        """The newest timestamp of a record, None for an empty log."""
        times = [s.largest_timestamp_ms for s in self.segments if s.size_bytes]
        return max(times, default=None)

    @property
    def bytes_per_s(self) -> float | None:
        """The growth from the oldest to the newest record, None if it is unknown."""
        first, last = self.first_timestamp_ms, self.last_timestamp_ms
        if first is None or last is None or last - first < _SPAN_MS_MIN:
            return None
        return self.size_bytes * 1000 / (last - first)

    def facts(self, now_ms: int) -> LogFacts:
        """Return the log's facts for the rules of retention at the wall time `now_ms`."""
        return LogFacts(self.segments, self.log_start_offset, self.high_watermark, now_ms)
