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
    """Latencies of records: printed for each interval, and in all."""

    def __init__(self, out: TextIO, count: int, interval_ms: int, now_ms: int) -> None:
        """Expect `count` records; the first interval begins at `now_ms`."""
        self._out = out
        self._interval_ms = interval_ms
        self._began_ms = now_ms
        #: Every so many records give a sample, so that there are not too many for percentiles.
        self._every = max(count // max(min(count, _SAMPLES_MAX), 1), 1)
        self._samples: list[int] = []
        #: Figures of all records, and of those since the last interval was printed.
        self._count = self._bytes = self._total_ms = self._max_ms = 0
        self._window_began_ms = now_ms
        self._window_count = self._window_bytes = self._window_ms = self._window_max_ms = 0
        #: Whether no interval is printed any more, because other statistics print theirs.
        self.is_silent = False

    def record(self, latency_ms: int, size_bytes: int, now_ms: int) -> None:
        """Count a record that is stored, and print the interval if it is over."""
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
        """Print count, rates and latencies (ms) of the interval that ends now."""
        elapsed_s = (now_ms - self._window_began_ms) / 1000
        self._out.write(
            f"{self._window_count} records sent, {self._window_count / elapsed_s:.1f} records/sec "
            f"({self._window_bytes / elapsed_s / _MEBIBYTE:.2f} MB/sec), "
            f"{self._window_ms / max(self._window_count, 1):.1f} ms avg latency, "
            f"{float(self._window_max_ms):.1f} ms max latency.\n"
        )
        self._out.flush()

    def print_total(self, now_ms: int, kind: str = "") -> None:
        """Print the total."""
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
    """Return percentiles of samples, 0 of none."""
    ordered = sorted(samples)
    if not ordered:
        return [0] * len(percentiles)
    return [ordered[min(int(p * len(ordered)), len(ordered) - 1)] for p in percentiles]


class Throttle:
    """Limits a sender to a number of records each second; a negative rate is no limit."""

    def __init__(self, records_per_s: float, now_ms: int) -> None:
        self._rate = records_per_s
        self._began_ms = now_ms

    def pause_ms(self, index: int, now_ms: int) -> int:
        """Return how long to wait after record number `index` (from 0); 0 if it is late."""
        if self._rate < 0:
            return 0
        if self._rate == 0:
            return 1000
        due_ms = self._began_ms + (index + 1) * 1000 / self._rate
        return max(int(due_ms - now_ms), 0)
