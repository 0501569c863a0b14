"""A throttle that rises while the cluster bears it, and falls when it does not. Pure.

| seen since the last time | the rate becomes |
|---|---|
| a replica that is not new left an in-sync set | half |
| answers take twice as long as before the first move, and 20 ms more | 0.7 times |
| neither, and something was copied | 1.25 times |
| nothing was copied | what it was |

Answers are those a producer gets whose records must be on all replicas in sync, where a topic was
named to write them to. Otherwise how long brokers take to answer a small request stands for it:
both queue for the same threads.
"""

from __future__ import annotations

from typing import Final, NamedTuple

#: Bytes a second.
FIRST_RATE: Final = 20_000_000
_RATE_MIN: Final = 1_000_000
_RATE_MAX: Final = 2_000_000_000
#: How often the rate is looked at: copies need a while to show what a new one does.
PERIOD_MS: Final = 5_000
_SLOWER_MS: Final = 20


class RateObservation(NamedTuple):
    """Observed load of a cluster: `answer_ms` is the slowest answer, `left_count` adds up."""

    now_ms: int
    copied_bytes: int
    answer_ms: int
    left_count: int


class AdaptiveRate(NamedTuple):
    """A rate, the last observation, and the response time before the first move."""

    rate: int
    last: RateObservation
    typical_response_ms: int

    @classmethod
    def start(cls, rate: int, seen: RateObservation) -> AdaptiveRate:
        """Return the rate to begin with."""
        return cls(rate, seen, seen.answer_ms)

    def is_due(self, now_ms: int) -> bool:
        """Return whether it is time to look."""
        return now_ms - self.last.now_ms >= PERIOD_MS

    def after(self, seen: RateObservation) -> AdaptiveRate:
        """Return the rate from now on."""
        return self._replace(rate=self._rate_after(seen), last=seen)

    def _rate_after(self, seen: RateObservation) -> int:
        """Return the next rate in bytes/s by the table above, within its bounds."""
        if seen.left_count > self.last.left_count:
            return max(_RATE_MIN, self.rate // 2)
        slow_ms = max(2 * self.typical_response_ms, self.typical_response_ms + _SLOWER_MS)
        if seen.answer_ms > slow_ms:
            return max(_RATE_MIN, self.rate * 7 // 10)
        if seen.copied_bytes > self.last.copied_bytes:
            return min(_RATE_MAX, self.rate * 5 // 4)
        return self.rate
