"""Rates, latencies and throttling of Kafka's performance tools.

Source: ProducerPerformance.Stats, ThroughputThrottler of 3.9.1 and 4.3.0.
"""

from __future__ import annotations

from typing import Final, TextIO

_MEBIBYTE: Final = 1024 * 1024
#: Maximum number of latencies kept.
_SAMPLES_MAX: Final = 500_000
_PERCENTILES: Final = (0.5, 0.95, 0.99, 0.999)


class LatencyStats:
    """Collects latencies of records; prints them for each interval and in total."""

    def __init__(self, out: TextIO, count: int, interval_ms: int, now_ms: int) -> None:
        """Create statistics for `count` expected records; the first interval starts at `now_ms`."""
        self._out = out
        self._interval_ms = interval_ms
        self._began_ms = now_ms
        #: Every n-th record is a sample, so that at most _SAMPLES_MAX latencies are kept.
        self._every = max(count // max(min(count, _SAMPLES_MAX), 1), 1)
        self._samples: list[int] = []
        #: Totals of all records, and of the current interval (`_window_…`).
        self._count = self._bytes = self._total_ms = self._max_ms = 0
        self._window_began_ms = now_ms
        self._window_count = self._window_bytes = self._window_ms = self._window_max_ms = 0
        #: Whether intervals are not printed, since other statistics print theirs.
        self.is_silent = False

    def record(self, latency_ms: int, size_bytes: int, now_ms: int) -> None:
        """Count a stored record, and print the interval's statistics if it has ended.

        `now_ms` is the present time in ms since 1970, `latency_ms` the time from sending to
        storing.
        """
        self._count += 1
        self._bytes += size_bytes
        self._total_ms += latency_ms
        self._max_ms = max(self._max_ms, latency_ms)
        self._window_count += 1
        self._window_bytes += size_bytes
        self._window_ms += latency_ms
        self._window_max_ms = max(self._window_max_ms, latency_ms)
        if self._count % self._every == 0:
            self._samples.append(latency_ms)
        if now_ms - self._window_began_ms >= self._interval_ms:
            if not self.is_silent:
                self._print_window(now_ms)
            self._window_began_ms = now_ms
            self._window_count = self._window_bytes = self._window_ms = self._window_max_ms = 0

    def _print_window(self, now_ms: int) -> None:
        """Print count, rates and latencies (ms) of the interval that ends at `now_ms`."""
        elapsed_s = (now_ms - self._window_began_ms) / 1000
        self._out.write(
            f"{self._window_count} records sent, {self._window_count / elapsed_s:.1f} records/sec "
            f"({self._window_bytes / elapsed_s / _MEBIBYTE:.2f} MB/sec), "
            f"{self._window_ms / max(self._window_count, 1):.1f} ms avg latency, "
            f"{float(self._window_max_ms):.1f} ms max latency.\n"
        )
        self._out.flush()

    def print_total(self, now_ms: int, kind: str = "") -> None:
        """Print count, rates, latencies (ms) and their percentiles of all records.

        `kind` precedes the word `records`.
        """
        elapsed_s = max(now_ms - self._began_ms, 1) / 1000
        percentiles = ", ".join(
            f"{value} ms {100 * percentile:g}th"
            for percentile, value in zip(
                _PERCENTILES, percentiles_of(self._samples, _PERCENTILES), strict=True
            )
        )
        self._out.write(
            f"{self._count} {kind}records sent, {self._count / elapsed_s:f} records/sec "
            f"({self._bytes / elapsed_s / _MEBIBYTE:.2f} MB/sec), "
            f"{self._total_ms / max(self._count, 1):.2f} ms avg latency, "
            f"{float(self._max_ms):.2f} ms max latency, {percentiles}.\n"
        )


def percentiles_of(samples: list[int], percentiles: tuple[float, ...]) -> list[int]:
    """Return the percentiles (given as 0 to 1) of samples; 0 each without samples."""
    ordered = sorted(samples)
    if not ordered:
        return [0] * len(percentiles)
    return [ordered[min(int(p * len(ordered)), len(ordered) - 1)] for p in percentiles]


class Throttle:
    """Limits a sender to a number of records per second; a negative rate means no limit."""

    def __init__(self, records_per_s: float, now_ms: int) -> None:
        self._rate = records_per_s
        self._began_ms = now_ms

    def pause_ms(self, index: int, now_ms: int) -> int:
        """Return how long to wait in ms after record number `index` (from 0) to keep the rate.

        0 if the sender is late, or for a negative rate, which means no limit. A rate of 0 never
        ends.
        """
        if self._rate < 0:
            return 0
        if self._rate == 0:
            return 1000
        due_ms = self._began_ms + (index + 1) * 1000 / self._rate
        return max(int(due_ms - now_ms), 0)
