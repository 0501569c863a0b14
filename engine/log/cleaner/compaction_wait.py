"""The condition that keeps a dirty log from being cleaned; other logs are not considered. Pure.

| its dirty part | it waits for |
|---|---|
| is empty | nothing |
| may be cleaned, and is overdue or large enough | nothing but its turn |
| may be cleaned, and is too small a share of the log | min.cleanable.dirty.ratio |
| is younger than required, from its first segment on | min.compaction.lag.ms |
| is not replicated, or after the start of an open transaction | last stable offset |
| is in the active segment | active segment: its roll, by segment.bytes or segment.ms |

Source: CMP-2, CMP-3; Kafka's LogCleanerManager.
"""

from __future__ import annotations

from enum import Enum

from engine.log.cleaner.cleanable import CleanableLog, CleanableRange, find_cleanable_range
from engine.log.log_config import LogConfig


class CompactionWait(Enum):
    """The condition that a dirty log waits for."""

    DIRTY_RATIO = "min.cleanable.dirty.ratio"
    LAG = "min.compaction.lag.ms"
    STABLE = "last stable offset"
    ACTIVE_SEGMENT = "active segment"


def compaction_wait(
    log: CleanableLog, cleanable: CleanableRange, config: LogConfig, now_ms: int
) -> CompactionWait | None:
    """Return the condition that a log's next cleaning waits for, None if it waits for none.

    It waits for none if the log is clean or its cleaning is due. In order: the dirty ratio, the
    minimum lag, the last stable offset, the roll of the active segment.
    """
    if cleanable.first_dirty_offset >= log.log_end_offset or cleanable.may_be_cleaned(config):
        return None
    if cleanable.cleanable_bytes:
        return CompactionWait.DIRTY_RATIO
    without_lag = find_cleanable_range(log, config._replace(min_compaction_lag_ms=0), now_ms)
    if without_lag.cleanable_bytes:
        return CompactionWait.LAG
    if without_lag.first_uncleanable_offset < log.segments[-1].base_offset:
        return CompactionWait.STABLE
    return CompactionWait.ACTIVE_SEGMENT
