"""Records, bytes and latencies of a time window, in total and by interval.

The window does not start with the process but when the caller says so: start-up, connections and
warm-up are outside of it. It ends with the last record that counts, so rates include no idle time
at the end. Latencies are counted in buckets whose width is at most 1/128 of their value; the
largest one is exact. A percentile is the upper end of its bucket, so it is never too low.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final, NamedTuple

_PRECISION_BITS: Final = 8
_NS_PER_S: Final = 1_000_000_000
_US_PER_MS: Final = 1000
#: Percentages of the percentiles that are shown, by name.
PERCENTILES: Final[Mapping[str, float]] = {"p50": 50, "p95": 95, "p99": 99, "p999": 99.9}


class Latencies:
    """Counts of latencies in microseconds."""

    __slots__ = ("_counts", "count", "max_us", "total_us")

    def __init__(self) -> None:
        #: Counts by the lower end of the bucket.
        self._counts: Counter[int] = Counter()
        self.count = self.total_us = self.max_us = 0

    def add(self, latency_us: int, count: int = 1) -> None:
        """Count `count` records with one latency, rounded down to `_PRECISION_BITS` bits."""
        latency_us = max(latency_us, 0)
        shift = max(latency_us.bit_length() - _PRECISION_BITS, 0)
        self._counts[latency_us >> shift << shift] += count
        self.count += count
        self.total_us += latency_us * count
        self.max_us = max(self.max_us, latency_us)

    def percentile_us(self, percentage: float) -> int | None:
        """Return the latency that a percentage of records has at most, None without records.

        `percentage` is from 0 to 100. The result is the upper bound of a bucket, so it is never too
        low.
        """
        needed = self.count * percentage / 100
        seen = 0
        for lower in sorted(self._counts):
            seen += self._counts[lower]
            if seen >= needed:
                shift = max(lower.bit_length() - _PRECISION_BITS, 0)
                return min(lower + (1 << shift) - 1, self.max_us)
        return None

    def percentiles_ms(self) -> dict[str, float | None]:
        """Return the percentiles, "max" and "mean" of the latencies in milliseconds, by name.

        They are None without records.
        """
        found = {name: self.percentile_us(share) for name, share in PERCENTILES.items()}
        mean_us = self.total_us / self.count if self.count else None
        values = {**found, "max": self.max_us if self.count else None, "mean": mean_us}
        return {
            name: None if value is None else round(value / _US_PER_MS, 3)
            for name, value in values.items()
        }


class Interval(NamedTuple):
    """A part of the window: start and end in seconds after the window's start, and its counts."""

    start_s: float
    end_s: float
    records: int
    size_bytes: int
    latencies: Latencies

    @property
    def records_per_s(self) -> float | None:
        """Return the records per second, None for an interval without duration."""
        lasting_s = self.end_s - self.start_s
        return round(self.records / lasting_s, 1) if lasting_s > 0 else None

    @property
    def bytes_per_s(self) -> int | None:
        """Return the bytes per second, None for an interval without duration."""
        lasting_s = self.end_s - self.start_s
        return round(self.size_bytes / lasting_s) if lasting_s > 0 else None


class Measurement:
    """Counts from `began_ns` on, in total and for intervals of `interval_ns`."""

    def __init__(self, began_ns: int, interval_ns: int) -> None:
        """Start without records."""
        self.began_ns = began_ns
        self._interval_ns = interval_ns
        #: Time of the last records, at which the window ends.
        self._last_ns = began_ns
        self.latencies = Latencies()
        self.records = self.size_bytes = 0
        #: Complete intervals; the fields below are for the open one.
        self.intervals: list[Interval] = []
        self._open_ns = began_ns
        self._open_records = self._open_bytes = 0
        self._open_latencies = Latencies()

    def count(
        self, records: int, size_bytes: int, now_ns: int, latencies_us: Mapping[int, int]
    ) -> None:
        """Add records that are complete at `now_ns`, and close the intervals that ended before.

        `latencies_us` has the number of records for each latency in microseconds.
        """
        while now_ns - self._open_ns >= self._interval_ns:
            self._close_interval(self._open_ns + self._interval_ns)
        self._last_ns = now_ns
        self.records += records
        self.size_bytes += size_bytes
        self._open_records += records
        self._open_bytes += size_bytes
        for latency_us, count in latencies_us.items():
            self.latencies.add(latency_us, count)
            self._open_latencies.add(latency_us, count)

    def _close_interval(self, end_ns: int) -> None:
        """End the open interval at `end_ns`, and start the next one."""
        self.intervals.append(self._end_open_interval(end_ns))
        self._open_ns = end_ns
        self._open_records = self._open_bytes = 0
        self._open_latencies = Latencies()

    def _end_open_interval(self, end_ns: int) -> Interval:
        """Return the open interval as if it ended at `end_ns`; it is not closed."""
        return Interval(
            self._seconds(self._open_ns),
            self._seconds(end_ns),
            self._open_records,
            self._open_bytes,
            self._open_latencies,
        )

    def latest_intervals(self, now_ns: int, count: int) -> list[Interval]:
        """Return the last `count` complete intervals at `now_ns`, the newest last.

        Intervals after the last record, which are not closed yet, are included, most of them empty.
        """
        over = self.intervals[-count:]
        passed = (now_ns - self._open_ns) // self._interval_ns
        if passed > 0:
            over.append(self._end_open_interval(self._open_ns + self._interval_ns))
        for number in range(max(1, passed - count), passed):
            start_ns = self._open_ns + number * self._interval_ns
            end_s = self._seconds(start_ns + self._interval_ns)
            over.append(Interval(self._seconds(start_ns), end_s, 0, 0, Latencies()))
        return over[-count:]

    def finish(self) -> None:
        """Complete the last interval, which ends with the last record."""
        if self._open_records:
            self._close_interval(self._last_ns)

    def _seconds(self, at_ns: int) -> float:
        """Return a time in seconds after the start, rounded to a millisecond."""
        return round((at_ns - self.began_ns) / _NS_PER_S, 3)

    @property
    def total(self) -> Interval:
        """Return the whole measurement, up to its last record, as one interval."""
        end_s = (self._last_ns - self.began_ns) / _NS_PER_S
        return Interval(0.0, end_s, self.records, self.size_bytes, self.latencies)
