"""An adaptive throttle: the rate rises until response times grow or replicas leave the ISR. Pure.

| observed since the last adjustment | new rate |
|---|---|
| a replica that is not being added left an ISR | half |
| response time above twice the initial one, and above it by 20 ms | 0.7 times |
| neither, and bytes were copied | 1.25 times |
| no bytes were copied | unchanged |

With a latency topic the response time is that of a produce with acks=all to it. Otherwise it is the
time of a small request to each broker, which waits in the same queues.
"""

from __future__ import annotations

from typing import Final, NamedTuple

#: Bounds of the rate, in bytes per second.
FIRST_RATE: Final = 20_000_000
_RATE_MIN: Final = 1_000_000
_RATE_MAX: Final = 2_000_000_000
#: Time between two adjustments: the effect of a new rate takes a while to show.
PERIOD_MS: Final = 5_000
_SLOWER_MS: Final = 20


class RateObservation(NamedTuple):
    """Observed load of a cluster: `answer_ms` is the slowest response.

    `left_count` is cumulative.
    """

    now_ms: int
    copied_bytes: int
    answer_ms: int
    left_count: int


class AdaptiveRate(NamedTuple):
    """A rate in bytes per second, the last observation, and the initial response time."""

    rate: int
    last: RateObservation
    typical_response_ms: int

    @classmethod
    def start(cls, rate: int, seen: RateObservation) -> AdaptiveRate:
        """Return the state before the first adjustment.

        It has the given rate and the first observation.
        """
        return cls(rate, seen, seen.answer_ms)

    def is_due(self, now_ms: int) -> bool:
        """Return True if the next adjustment of the rate is due."""
        return now_ms - self.last.now_ms >= PERIOD_MS

    def after(self, seen: RateObservation) -> AdaptiveRate:
        """Return the state after the rate was adjusted by a new observation."""
        return self._replace(rate=self._rate_after(seen), last=seen)

    def _rate_after(self, seen: RateObservation) -> int:
        """Return the next rate in bytes/s by the module's table.

        It is halved after a replica left the ISR, lowered while responses are slow, and raised
        while
        bytes are copied.
        """
        if seen.left_count > self.last.left_count:
            return max(_RATE_MIN, self.rate // 2)
        slow_ms = max(2 * self.typical_response_ms, self.typical_response_ms + _SLOWER_MS)
        if seen.answer_ms > slow_ms:
            return max(_RATE_MIN, self.rate * 7 // 10)
        if seen.copied_bytes > self.last.copied_bytes:
            return min(_RATE_MAX, self.rate * 5 // 4)
        return self.rate
