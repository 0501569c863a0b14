"""Determine which part of a log may be cleaned, its dirty ratio, and which log is cleaned first.

Pure.

```
log start      first dirty offset             first uncleanable offset         log end
   │  clean: one value a key │  dirty: may be cleaned   │  not cleaned yet: see below     │
```

| term                     | rule                                                              |
|--------------------------|-------------------------------------------------------------------|
| first dirty offset       | the checkpoint's; the log start offset if that is missing, below  |
|                          | the log start or above the log end                                |
| first uncleanable offset | the lowest of: last stable offset, base of the active segment,    |
|                          | base of the first dirty segment with a record that is younger     |
|                          | than min.compaction.lag.ms; then the base of its segment          |
| dirty ratio              | bytes of dirty segments ÷ bytes of clean and dirty ones           |
| overdue                  | the first batch of a dirty segment is older than                  |
|                          | max.compaction.lag.ms                                             |
| may be cleaned           | overdue, or the ratio is above min.cleanable.dirty.ratio          |
| first of several         | the log with the highest dirty ratio                              |

Source: CMP-2, CMP-3; Kafka's LogCleanerManager.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from itertools import islice
from typing import NamedTuple

from engine.log.log_config import LONG_MAX, LogConfig
from engine.model import TopicPartition


class CleanableSegment(NamedTuple):
    """The values of one segment that the rules use."""

    base_offset: int
    size_bytes: int


class CleanableLog(NamedTuple):
    """The state of one log at one time; the last segment is the active one.

    `checkpoint_offset` is the first dirty offset in the checkpoint, None without a line. The
    functions take a segment's base offset, and are called only if the time decides: they return the
    segment's largest timestamp, and the largest timestamp of its first batch, −1 without one.
    """

    topic_partition: TopicPartition
    segments: Sequence[CleanableSegment]
    log_start_offset: int
    log_end_offset: int
    last_stable_offset: int
    checkpoint_offset: int | None
    largest_timestamp_ms: Callable[[int], int]
    first_timestamp_ms: Callable[[int], int]


class CheckpointFault(Enum):
    """The reason why a cleaner checkpoint is ignored."""

    BELOW_START = "below the log start offset"
    ABOVE_END = "above the log end offset"


class CleanableRange(NamedTuple):
    """The part of a log that may be cleaned; sizes are those of .log files.

    `first_uncleanable_offset` is exclusive. `overdue_ms` is the time since max.compaction.lag.ms
    ended for the oldest dirty record, 0 before.
    """

    topic_partition: TopicPartition
    first_dirty_offset: int
    first_uncleanable_offset: int
    clean_bytes: int
    cleanable_bytes: int
    overdue_ms: int
    checkpoint_fault: CheckpointFault | None

    @property
    def total_bytes(self) -> int:
        """Return the size of the clean part and the cleanable part."""
        return self.clean_bytes + self.cleanable_bytes

    @property
    def dirty_ratio(self) -> float:
        """Return the share of the log that can be cleaned, from 0 to 1."""
        return self.cleanable_bytes / self.total_bytes if self.total_bytes else 0.0

    def may_be_cleaned(self, config: LogConfig) -> bool:
        """Return True if the log is overdue, or its dirty ratio is above the topic's limit."""
        if self.overdue_ms > 0 and self.cleanable_bytes:
            return True
        return self.total_bytes > 0 and self.dirty_ratio > config.min_cleanable_dirty_ratio


def find_first_dirty_offset(log: CleanableLog) -> tuple[int, CheckpointFault | None]:
    """Return the first dirty offset, with the reason why the checkpoint is ignored or None.

    The log start offset if there is no checkpoint, or if the checkpoint is outside of the log.
    """
    checkpoint = log.checkpoint_offset
    if checkpoint is None:
        return log.log_start_offset, None
    if checkpoint < log.log_start_offset:
        return log.log_start_offset, CheckpointFault.BELOW_START
    if checkpoint > log.log_end_offset:
        return log.log_start_offset, CheckpointFault.ABOVE_END
    return checkpoint, None


def find_cleanable_range(log: CleanableLog, config: LogConfig, now_ms: int) -> CleanableRange:
    """Return the part of a log that may be cleaned now: from the first dirty offset up to a bound.

    The bound is the least of the last stable offset, the active segment's base and the first
    segment with records younger than `min.compaction.lag.ms`. Source:
    LogCleanerManager.cleanableOffsets.
    """
    first_dirty, fault = find_first_dirty_offset(log)
    dirty = _closed_from(log, first_dirty)
    bounds = [log.last_stable_offset, log.segments[-1].base_offset]
    lag_ms = config.min_compaction_lag_ms
    if lag_ms > 0:
        bases = (segment.base_offset for segment in dirty)
        young = (base for base in bases if log.largest_timestamp_ms(base) > now_ms - lag_ms)
        bounds += islice(young, 1)
    bound = max(first_dirty, min(bounds))
    first_uncleanable = _uncleanable_base(log, bound)
    cleanable = between(log.segments, min(first_dirty, first_uncleanable), first_uncleanable)
    return CleanableRange(
        log.topic_partition,
        first_dirty,
        first_uncleanable,
        clean_bytes=_size(s for s in log.segments if s.base_offset < first_dirty),
        cleanable_bytes=_size(cleanable),
        overdue_ms=_overdue_ms(log, dirty, config, now_ms),
        checkpoint_fault=fault,
    )


def dirtiest_range(
    ranges: Iterable[CleanableRange], config_of: Callable[[TopicPartition], LogConfig]
) -> CleanableRange | None:
    """Return the range with the highest dirty ratio of those that may be cleaned, None if none may.

    Of equal ratios the first. `config_of` returns the settings of a log, with its minimum ratio.
    Source: LogCleanerManager.grabFilthiestCompactedLog.
    """
    chosen = None
    for candidate in ranges:
        if candidate.may_be_cleaned(config_of(candidate.topic_partition)) and (
            chosen is None or candidate.dirty_ratio > chosen.dirty_ratio
        ):
            chosen = candidate
    return chosen


def between(
    segments: Sequence[CleanableSegment], start: int, end: int
) -> Sequence[CleanableSegment]:
    """Return the segments that contain offsets of [start, end); `segments` are sorted by offset."""
    if start >= end:
        return ()
    bases = [segment.base_offset for segment in segments]
    return segments[max(bisect_right(bases, start) - 1, 0) : bisect_left(bases, end)]


def _closed_from(log: CleanableLog, offset: int) -> Sequence[CleanableSegment]:
    """Return the segment that contains an offset and all later segments except the active one."""
    return between(log.segments, offset, log.segments[-1].base_offset)


def _uncleanable_base(log: CleanableLog, bound: int) -> int:
    """Return the base offset of the closed segment that contains the offset `bound`.

    Else that of the active segment. A segment is cleaned as a whole, so the cleanable range ends
    there.
    """
    closed = _closed_from(log, bound)
    return closed[0].base_offset if closed else log.segments[-1].base_offset


def _overdue_ms(
    log: CleanableLog, dirty: Sequence[CleanableSegment], config: LogConfig, now_ms: int
) -> int:
    """Return the ms since `max.compaction.lag.ms` passed for the oldest dirty segment, else 0.

    0 too without a maximum lag. `dirty` are the closed segments from the first dirty offset on.
    """
    if config.max_compaction_lag_ms == LONG_MAX:
        return 0
    times = [log.first_timestamp_ms(segment.base_offset) for segment in dirty]
    oldest = min((time for time in times if time > 0), default=LONG_MAX)
    return max(now_ms - config.max_compaction_lag_ms - oldest, 0)


def _size(segments: Iterable[CleanableSegment]) -> int:
    return sum(segment.size_bytes for segment in segments)
