"""A meter of an event: its count, and moving average rates over one, five and fifteen minutes.

```
 events since the last tick ──┐ every 5 s
                              v
 first tick   rate = events / 5 s
 later ones   rate += α (events / 5 s − rate)        α = 1 − e^(−5 s / window)
```

Rates do not change between two ticks. Ticks without an event may be applied later, in one step:
each of them multiplies the rates by 1 − α.

Source: Meter and EWMA of Codahale's (Yammer's) metrics-core 2.2.0, which Kafka's brokers use.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

TICK_MS: Final = 5_000
_TICK_S: Final = TICK_MS / 1000
_MS_PER_S: Final = 1000
_WINDOWS_S: Final = (60, 300, 900)
#: Factors of the rates of one, five and fifteen minutes at a tick without events.
_KEPT: Final = tuple(math.exp(-_TICK_S / window_s) for window_s in _WINDOWS_S)
_NO_RATES: Final = (0.0, 0.0, 0.0)


class MeterReading(NamedTuple):
    """The count, and rates in events per second."""

    event_count: int
    mean_rate: float
    one_minute_rate: float
    five_minute_rate: float
    fifteen_minute_rate: float


class Meter:
    """The rates of a count that the owner keeps; the owner also numbers the ticks."""

    __slots__ = ("_began_ms", "_rates", "_ticked", "counted")

    def __init__(self, now_ms: int, tick: int) -> None:
        """Create a meter without events; `tick` is the number of the latest five-second tick."""
        #: The count at the last tick.
        self.counted = 0
        self._began_ms = now_ms
        #: Number of the last tick that was applied.
        self._ticked = tick
        #: Averages over 1, 5 and 15 minutes; None before the first tick.
        self._rates: tuple[float, float, float] | None = None

    def tick(self, number: int, count: int) -> None:
        """Update the rates at tick `number`; `count` is the number of events since the start.

        Ticks between the last call and this one count as ticks without events.
        """
        self._apply_missed_ticks(number - 1)
        per_s = (count - self.counted) / _TICK_S
        rates = self._rates
        if rates is None:
            self._rates = (per_s, per_s, per_s)
        else:
            one, five, fifteen = (
                rate + (1 - kept) * (per_s - rate) for rate, kept in zip(rates, _KEPT, strict=True)
            )
            self._rates = (one, five, fifteen)
        self._ticked, self.counted = number, count

    def _apply_missed_ticks(self, number: int) -> None:
        """Let the rates decay for the ticks without events, from the last one to tick `number`."""
        left_out = number - self._ticked
        if left_out <= 0:
            return
        self._ticked = number
        if self._rates is None:
            self._rates = _NO_RATES
            return
        one, five, fifteen = (
            rate * kept**left_out for rate, kept in zip(self._rates, _KEPT, strict=True)
        )
        self._rates = (one, five, fifteen)

    def read_rates(self, number: int, count: int, now_ms: int) -> MeterReading:
        """Return count, mean rate since the start, and decaying rates as of tick `number`."""
        self._apply_missed_ticks(number)
        lasted_ms = now_ms - self._began_ms
        mean = count * _MS_PER_S / lasted_ms if lasted_ms > 0 else 0.0
        return MeterReading(count, mean, *(self._rates or _NO_RATES))
