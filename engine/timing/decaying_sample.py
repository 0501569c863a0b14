"""A random sample of values in which newer values are more likely than older ones.

```
 priority = e^(α age of the sample in s) / random        the highest 1,028 are kept
```

A present event is twice as likely to be kept as one from 46 seconds ago, so the sample represents
the last minutes. Events of the same second are equally likely: they are offered together, and a
random number determines how many of them are skipped before the next one is kept. Only events that
are kept cost time.

Source: ExponentiallyDecayingSample of metrics-core 2.2.0 (Cormode, Shkapenyuk, Srivastava, Xu:
"Forward decay"). Differs: random numbers come from a fixed sequence in this module: they need not
be unpredictable, and the same events give the same sample.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

T = TypeVar("T")

SAMPLE_SIZE: Final = 1028
_ALPHA: Final = 0.015
#: After this time priorities are rescaled, before they exceed a float.
_RESCALE_S: Final = 3600
# Knuth's constants of a linear congruential generator of 64 bits.
_FACTOR: Final = 6364136223846793005
_STEP: Final = 1442695040888963407
_MASK: Final = (1 << 64) - 1
_BITS: Final = 53


class DecayingSample(Generic[T]):
    """Up to 1,028 of the values that were offered."""

    __slots__ = ("_began_s", "_priorities", "_random", "_values")

    def __init__(self, now_s: int) -> None:
        """Create an empty sample."""
        self._began_s = now_s
        # In order of increasing priority. Two parallel lists, without an object per value.
        self._priorities = array("d")
        self._values: list[T] = []
        self._random = 1

    @property
    def values(self) -> Sequence[T]:
        """Return the values of the sample, in no particular order."""
        return self._values

    def offer(self, event_count: int, value_of: Callable[[int], T], now_s: int) -> None:
        """Offer the values of the events of one second to the sample.

        `value_of` returns the value at an index; it is called only for values that are kept.
        """
        if now_s - self._began_s >= _RESCALE_S:
            self._set_reference_time(now_s)
        weight = math.exp(_ALPHA * (now_s - self._began_s))
        index = 0
        while index < event_count and len(self._values) < SAMPLE_SIZE:
            self._keep(weight / self._draw_uniform(), value_of(index))
            index += 1
        while index < event_count:
            lowest = self._priorities[0]
            # After many hours without an event the former priorities are 0.
            if weight < lowest:
                index += int(math.log(self._draw_uniform()) / math.log1p(-weight / lowest))
                if index >= event_count:
                    return
                priority = lowest / self._draw_uniform()
            else:
                priority = weight / self._draw_uniform()
            del self._priorities[0], self._values[0]
            self._keep(priority, value_of(index))
            index += 1

    def offer_all(self, values: Sequence[T], now_s: int) -> None:
        """Offer the values of the events of one second to the sample."""
        self.offer(len(values), values.__getitem__, now_s)

    def _keep(self, priority: float, value: T) -> None:
        """Insert a value at the place of its priority.

        The values are sorted, the lowest priority first.
        """
        index = bisect(self._priorities, priority)
        self._priorities.insert(index, priority)
        self._values.insert(index, value)

    def _set_reference_time(self, now_s: int) -> None:
        """Make `now_s` the reference time of ages; the order of priorities is unchanged."""
        factor = math.exp(-_ALPHA * (now_s - self._began_s))
        self._began_s = now_s
        self._priorities = array("d", [priority * factor for priority in self._priorities])

    def _draw_uniform(self) -> float:
        """Return the next random number, between 0 and 1 exclusive."""
        self._random = (self._random * _FACTOR + _STEP) & _MASK
        return ((self._random >> (64 - _BITS)) + 0.5) / (1 << _BITS)
