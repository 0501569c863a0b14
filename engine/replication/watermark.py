"""High watermarks: the end of the committed records, and the end for each kind of reader.

```
log start ≤ last stable offset ≤ high watermark ≤ log end offset      all but the first exclusive
            read_committed ─┘    read_uncommitted ┘   followers ┘
```

Source: HW-1, HW-7, HW-8, HW-13; Kafka's UnifiedLog and Partition.maybeIncrementLeaderHW.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Final

#: Isolation levels in requests of consumers.
READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1


class Isolation(Enum):
    """The end of the records that a reader may read."""

    LOG_END = "log end"
    HIGH_WATERMARK = "read_uncommitted"
    COMMITTED = "read_committed"


# Looking up an Enum member is slow.
_LOG_END, _HIGH_WATERMARK = Isolation.LOG_END, Isolation.HIGH_WATERMARK


def leader_high_watermark(
    current: int, log_end_offset: int, follower_end_offsets: Iterable[int]
) -> int:
    """Return the leader's high watermark: the lowest end of the counted replicas, not lowered.

    The followers that count are the maximal ISR and those about to join the ISR. An end offset
    below 0 is unknown and keeps the high watermark unchanged.

    Source: HW-1, HW-7, ISR-6.
    """
    return max(current, min(log_end_offset, min(follower_end_offsets, default=log_end_offset)))


def follower_high_watermark(
    log_end_offset: int, leader_watermark: int, log_start_offset: int
) -> int:
    """Return a follower's high watermark after an append: the leader's, within the follower's log.

    It may be lower than before: a new leader does not know the committed end yet.

    Source: HW-10, HW-8; UnifiedLog.updateHighWatermark.
    """
    return max(min(leader_watermark, log_end_offset), log_start_offset)


def readable_end(
    isolation: Isolation, log_end_offset: int, high_watermark: int, last_stable_offset: int
) -> int:
    """Return the end (exclusive) of the records that a reader may read, by its isolation.

    It is the high watermark, the log end offset, or the last stable offset. Source: HW-13.
    """
    if isolation is _HIGH_WATERMARK:
        return high_watermark
    if isolation is _LOG_END:
        return log_end_offset
    return min(last_stable_offset, high_watermark)
