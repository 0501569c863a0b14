"""A token bucket: operations take tokens, which are added at a rate.

```
tokens = min(burst, tokens + rate x seconds since the last call) − tokens taken now
burst  = windows x seconds of a window x rate
```

An operation may take more tokens than there are: then their number is negative, and no operation is
allowed until it is not.

Source: org.apache.kafka.common.metrics.stats.TokenBucket, KIP-599.
"""

from __future__ import annotations


class TokenBucket:
    """The tokens of one client; the bucket is full at first."""

    __slots__ = ("_last_ms", "_tokens", "_window_s")

    def __init__(self, window_count: int, window_ms: int) -> None:
        self._window_s = window_count * window_ms / 1000
        self._tokens: float | None = None
        self._last_ms = 0

    def refill(self, rate_per_s: float, now_ms: int) -> float:
        """Add the tokens that came since the last call; return how many the bucket then has.

        `rate_per_s` tokens come per second. A negative number remains from a larger `take`.
        """
        burst = self._window_s * rate_per_s
        if self._tokens is None:
            self._tokens = burst
        else:
            came = rate_per_s * (now_ms - self._last_ms) / 1000
            self._tokens = min(burst, self._tokens + came)
        self._last_ms = now_ms
        return self._tokens

    def take(self, count: float, rate_per_s: float, now_ms: int) -> float:
        """Take `count` tokens after a refill, even more than the bucket has.

        Return the remaining number, which may be negative.
        """
        self._tokens = self.refill(rate_per_s, now_ms) - count
        return self._tokens
