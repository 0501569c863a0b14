"""Sample of events in which newer ones are likelier than older ones.

```
 priority = e^(α age of the sample in s) / random        the highest 1,028 are kept
```

An event of now is twice as likely to be kept as one of 46 seconds ago, so that the sample is of the
last minutes. Events of one second have the same chance: they are offered together, and random
numbers say how many of them are passed over before the next that is taken. Only an event that is
kept costs time.

Source: ExponentiallyDecayingSample of metrics-core 2.2.0 (Cormode, Shkapenyuk, Srivastava, Xu:
"Forward decay"). Differs: random numbers are a sequence of this module's own: nothing depends on
their being guessed, and the same events give the same sample.
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
#: After that long priorities are made smaller again, before they are too large for a float.
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
        """Begin without values."""
        self._began_s = now_s
        # By rising priority. Two flat rows: what is kept is no object of its own.
        self._priorities = array("d")
        self._values: list[T] = []
        self._random = 1

    @property
    def values(self) -> Sequence[T]:
        """Return the values of the sample, in no order that says anything."""
        return self._values

    def offer(self, event_count: int, value_of: Callable[[int], T], now_s: int) -> None:
        """Offer the values of a second's events to the sample.

        `value_of` returns the value at an index. Values are asked for only as far as the sample
        takes them: most of many events are passed over.
        """
        if now_s - self._began_s >= _RESCALE_S:
            self._rescale(now_s)
        weight = math.exp(_ALPHA * (now_s - self._began_s))
        index = 0
        while index < event_count and len(self._values) < SAMPLE_SIZE:
            self._keep(weight / self._uniform(), value_of(index))
            index += 1
        while index < event_count:
            lowest = self._priorities[0]
            # After many hours without an event the priorities of the former ones are 0.
            if weight < lowest:
                index += int(math.log(self._uniform()) / math.log1p(-weight / lowest))
                if index >= event_count:
                    return
                priority = lowest / self._uniform()
            else:
                priority = weight / self._uniform()
            del self._priorities[0], self._values[0]
            self._keep(priority, value_of(index))
            index += 1

    def offer_all(self, values: Sequence[T], now_s: int) -> None:
        """Offer events of one second by their values."""
        self.offer(len(values), values.__getitem__, now_s)

    def _keep(self, priority: float, value: T) -> None:
        """Insert a value by its priority: the lowest priority is first."""
        index = bisect(self._priorities, priority)
        self._priorities.insert(index, priority)
        self._values.insert(index, value)

    def _rescale(self, now_s: int) -> None:
        """Count ages from now on; the order of priorities stays."""
        factor = math.exp(-_ALPHA * (now_s - self._began_s))
        self._began_s = now_s
        self._priorities = array("d", [priority * factor for priority in self._priorities])

    def _uniform(self) -> float:
        """Return the next random number above 0 and below 1."""
        self._random = (self._random * _FACTOR + _STEP) & _MASK
        return ((self._random >> (64 - _BITS)) + 0.5) / (1 << _BITS)
