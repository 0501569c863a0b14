"""A rate over the last time windows, and the throttle time that reduces it to a bound.

```
 windows of quota.window.size.seconds, quota.window.num of them; the last one is not full
 |  3 |  0 |  7 |  1 |      rate = 11 / (time since the oldest began, at least num − 1 windows)
```

Before that many windows have passed, missing ones count as empty: a burst of as many events as the
bound allows for num − 1 windows is not throttled.

Source: org.apache.kafka.common.metrics.stats.Rate and SampledStat, QuotaUtils.boundedThrottleTime.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(slots=True)
class _Window:
    began_ms: int
    last_event_ms: int
    count: float = 0


class SampledRate:
    """Counts events in time windows."""

    __slots__ = ("_current", "_window_count", "_window_ms", "_windows")

    def __init__(self, window_count: int, window_ms: int) -> None:
        """Create it without events; it measures `window_count` windows of `window_ms`."""
        self._window_count = window_count
        self._window_ms = window_ms
        self._windows: list[_Window] = []
        #: Index of the present window in `_windows`, which is a ring.
        self._current = 0

    def record(self, now_ms: int, count: float = 1) -> None:
        """Add `count` to the events of the present window; start a window if that has ended."""
        if not self._windows:
            self._windows.append(_Window(now_ms, now_ms))
        window = self._windows[self._current]
        if now_ms - window.began_ms >= self._window_ms:
            window = self._start_window(now_ms)
        window.count += count
        window.last_event_ms = now_ms

    def _start_window(self, now_ms: int) -> _Window:
        """Replace the oldest window by a new one that begins now; return the new window."""
        # One window more than is measured: the oldest overlaps with the measured time.
        self._current = (self._current + 1) % (self._window_count + 1)
        fresh = _Window(now_ms, now_ms)
        self._windows[self._current : self._current + 1] = [fresh]
        return fresh

    def delay_ms(self, bound_per_s: float, now_ms: int) -> int:
        """Return how many ms a client must be throttled until its rate is reduced to the bound.

        At most one window; 0 if the rate is not above the bound.
        """
        return int(min(self.throttle_ms(bound_per_s, now_ms), self._window_ms))

    def throttle_ms(self, bound_per_s: float, now_ms: int) -> float:
        """Return the throttle time in ms without an upper limit; infinite for a bound of 0.

        Quotas may be any float64. As in Java, no rate is above a bound of NaN.
        """
        rate = self.rate_per_s(now_ms)
        span_ms = self._span_ms(now_ms)
        if not rate > bound_per_s:
            return 0
        if bound_per_s == 0:
            return math.inf
        over_ms = (rate - bound_per_s) / bound_per_s * span_ms
        if math.isnan(over_ms):
            return 0
        # Rounded as in Java: halves are rounded up.
        return math.floor(over_ms + 0.5) if math.isfinite(over_ms) else over_ms

    def rate_per_s(self, now_ms: int) -> float:
        """Return the events per second over all windows.

        Those older than the measured time are emptied.
        """
        for window in self._windows:
            if now_ms - window.last_event_ms >= self._window_count * self._window_ms:
                window.began_ms = window.last_event_ms = now_ms
                window.count = 0
        return sum(window.count for window in self._windows) * 1000 / self._span_ms(now_ms)

    def _span_ms(self, now_ms: int) -> int:
        """Return how many ms the windows cover, at least `window_count` - 1 window lengths."""
        began_ms = min((window.began_ms for window in self._windows), default=now_ms)
        span_ms = now_ms - began_ms
        missing = self._window_count - 1 - span_ms // self._window_ms
        if missing > 0:
            span_ms += missing * self._window_ms
        return max(span_ms, 1)


class SimpleRate(SampledRate):
    """A `SampledRate` that does not count missing windows, so an initial burst counts fully.

    Source: org.apache.kafka.common.metrics.stats.SimpleRate.
    """

    __slots__ = ()

    def _span_ms(self, now_ms: int) -> int:
        """Return the ms since the oldest window began, at least the length of one window."""
        began_ms = min((window.began_ms for window in self._windows), default=now_ms)
        return max(now_ms - began_ms, self._window_ms)
