"""Distribution of values: count, extremes, mean, deviation, and quantiles of a sample.

| figure | computed from |
|---|---|
| count, lowest, highest, mean, deviation | all values since the start |
| 50th to 99.9th percentile | the sample, which represents the last minutes (`decaying_sample.py`) |

Source: Histogram, Timer and Snapshot of metrics-core 2.2.0, which Kafka's brokers use.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

from engine.timing.decaying_sample import DecayingSample
from engine.timing.meter import MeterReading

#: The quantiles of a reading, in the order of its fields.
QUANTILES: Final = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)


class HistogramReading(NamedTuple):
    """The distribution of values at one time; all 0 without values."""

    event_count: int
    lowest: float
    highest: float
    mean: float
    deviation: float
    median: float
    percentile_75: float
    percentile_95: float
    percentile_98: float
    percentile_99: float
    percentile_999: float
    #: Sum of all values; the product of mean and count could decrease by rounding.
    total: float

    @property
    def quantiles(self) -> tuple[float, ...]:
        """Return the values of QUANTILES, in their order."""
        return (
            self.median,
            self.percentile_75,
            self.percentile_95,
            self.percentile_98,
            self.percentile_99,
            self.percentile_999,
        )


class TimerReading(NamedTuple):
    """Rate of an event, and its duration in milliseconds."""

    meter: MeterReading
    times: HistogramReading


#: A reading of a metric: a gauge's `Value`, or the counts, rates and distribution of other metrics.
MetricValue: TypeAlias = int | float | MeterReading | HistogramReading | TimerReading


class Moments:
    """Count, extremes, sum and sum of squares of whole numbers."""

    __slots__ = ("count", "highest", "lowest", "squares", "total")

    def __init__(self) -> None:
        self.count = self.total = self.squares = 0
        self.lowest = self.highest = 0

    def add_all(self, values: Sequence[int]) -> None:
        """Add these values to count, extremes and sums."""
        if values:
            # Equal values are frequent, as those of one client's requests are.
            counts = Counter(values)
            self._add(len(values), min(counts), max(counts))
            self.total += sum(values)
            self.squares += sum(value * value * count for value, count in counts.items())

    def add_zeros(self, count: int) -> None:
        """Add the value 0 `count` times."""
        if count:
            self._add(count, 0, 0)

    def _add(self, count: int, lowest: int, highest: int) -> None:
        """Add `count` values between `lowest` and `highest`; the caller adds their sums."""
        self.lowest = min(self.lowest, lowest) if self.count else lowest
        self.highest = max(self.highest, highest) if self.count else highest
        self.count += count

    def read_distribution(self, sample: Iterable[int], unit: int = 1) -> HistogramReading:
        """Return the distribution of all values added; its quantiles are those of `sample`.

        All values are divided by `unit`.
        """
        if not self.count:
            return HistogramReading(0, *(0.0,) * 11)
        deviation = 0.0
        if self.count > 1:
            spread = self.count * self.squares - self.total**2
            deviation = math.sqrt(spread / (self.count * (self.count - 1)))
        ordered = sorted(sample)
        quantiles = [quantile(ordered, share) for share in QUANTILES]
        return HistogramReading(
            self.count,
            self.lowest / unit,
            self.highest / unit,
            self.total / self.count / unit,
            deviation / unit,
            *(value / unit for value in (*quantiles, self.total)),
        )


def quantile(ordered: Sequence[int], share: float) -> float:
    """Return the quantile `share` (0 to 1) of sorted values, interpolated between neighbours.

    0.0 without values.
    """
    if not ordered:
        return 0.0
    position = share * (len(ordered) + 1)
    if position < 1:
        return float(ordered[0])
    if position >= len(ordered):
        return float(ordered[-1])
    below, above = ordered[int(position) - 1], ordered[int(position)]
    return below + (position - math.floor(position)) * (above - below)


class Histogram:
    """A histogram of whole numbers."""

    __slots__ = ("_sample", "moments")

    def __init__(self, now_s: int) -> None:
        """Create a histogram without values."""
        self.moments = Moments()
        self._sample: DecayingSample[int] = DecayingSample(now_s)

    def note(self, value: int, now_s: int) -> None:
        """Add one value, which an event of the second `now_s` had."""
        self.note_all((value,), now_s)

    def note_all(self, values: Sequence[int], now_s: int) -> None:
        """Add the values of the events of the second `now_s`."""
        self.moments.add_all(values)
        self._sample.offer_all(values, now_s)

    def reading(self, unit: int = 1) -> HistogramReading:
        """Return the distribution of all values until now; each figure is divided by `unit`."""
        return self.moments.read_distribution(self._sample.values, unit)
