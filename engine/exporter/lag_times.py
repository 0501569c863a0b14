"""Lag in seconds, computed without a request from the log ends of earlier scrapes.

```
end offset   100 ──────── 160 ──────── 220        committed: 130
seen at      t0           t1           now        130 was written about half between t0 and t1
```

The record at a committed offset is the first that the group has not read. It was written between
the last scrape that saw an end at or below it and the next scrape; a constant rate is assumed
between the two. An offset below all known ends has been unread at least since the first scrape: its
lag is then a lower bound, which grows until the group has caught up.

Source: the interpolation of kafka-lag-exporter.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from engine.limits import EXPORTER_ENDS_KEPT
from engine.model import TopicPartition

_MS_PER_S = 1000


class _SeenEnd(NamedTuple):
    """An end offset of a partition, with the times of the first and last scrape that saw it."""

    end_offset: int
    first_ms: int
    last_ms: int


class EndHistory:
    """The ends of partitions over time; older ones are kept at longer intervals."""

    def __init__(self) -> None:
        self._ends: dict[TopicPartition, list[_SeenEnd]] = {}

    def add_ends(
        self, ends: dict[TopicPartition, int], now_ms: int, known: set[TopicPartition]
    ) -> None:
        """Add the end offsets of a scrape at `now_ms`, and drop partitions that are not in `known`.

        Of a long history every second entry of the older half is dropped.
        """
        for key in [key for key in self._ends if key not in known]:
            del self._ends[key]
        for key, end_offset in ends.items():
            seen = self._ends.setdefault(key, [])
            if seen and seen[-1].end_offset > end_offset:
                # The log was truncated, or the topic created again.
                seen.clear()
            if seen and seen[-1].end_offset == end_offset:
                seen[-1] = seen[-1]._replace(last_ms=now_ms)
                continue
            seen.append(_SeenEnd(end_offset, now_ms, now_ms))
            if len(seen) > EXPORTER_ENDS_KEPT:
                half = len(seen) // 2
                seen[:half] = seen[:half:2]

    def lag_s(self, key: TopicPartition, committed: int, now_ms: int) -> float | None:
        """Return for how many seconds the record at a committed offset has been unread.

        It is 0.0 if the group has read all, None if no end offset of the partition is known. The
        time of writing is interpolated between two scrapes; before the first one it is the lower
        bound.
        """
        seen = self._ends.get(key)
        if not seen:
            return None
        if committed >= seen[-1].end_offset:
            return 0.0
        after = bisect_right(seen, committed, key=lambda end: end.end_offset)
        if after == 0:
            return (now_ms - seen[0].first_ms) / _MS_PER_S
        old, new = seen[after - 1], seen[after]
        share = (committed - old.end_offset) / (new.end_offset - old.end_offset)
        written_ms = old.last_ms + (new.first_ms - old.last_ms) * share
        return (now_ms - written_ms) / _MS_PER_S
