"""Gauges, meters, histograms and timers of a broker as text, a line each, for another process.

```
gauge kafka.log:type=Log,name=Size,topic=t,partition=0 712
meter kafka.server:type=ReplicaManager,name=IsrShrinksPerSec 2 0.001 0.0 0.004 0.002
```

A broker has ten gauges for each partition: as rows of JSON, those of 10,000 partitions would keep
the loop for most of a second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from engine.timing.histogram import HistogramReading, MetricValue, TimerReading
from engine.timing.meter import MeterReading

_GAUGE: Final = "gauge"
_METER_SIZE: Final = len(MeterReading._fields)
_HISTOGRAM_SIZE: Final = len(HistogramReading._fields)


class BrokerMetric(NamedTuple):
    """A metric: its object name in JMX, and its value."""

    name: str
    value: MetricValue


def encode_metrics(metrics: Iterable[BrokerMetric]) -> str:
    """Return metrics as text."""
    return "\n".join([_line(name, value) for name, value in metrics])


def _line(name: str, value: MetricValue) -> str:
    """Return one metric as `kind name figures…`; numbers by repr, so that none is rounded."""
    if isinstance(value, MeterReading):
        return f"meter {name} {' '.join(map(repr, value))}"
    if isinstance(value, HistogramReading):
        return f"histogram {name} {' '.join(map(repr, value))}"
    if isinstance(value, TimerReading):
        return f"timer {name} {' '.join(map(repr, (*value.meter, *value.times)))}"
    return f"{_GAUGE} {name} {value}"


def decode_metrics(text: str) -> dict[str, MetricValue]:
    """Return the metrics of a text by name; raises ValueError, KeyError for an unknown kind."""
    found: dict[str, MetricValue] = {}
    # Not splitlines: the path of a directory may have other characters that end lines.
    for line in text.split("\n") if text else ():
        kind, _, rest = line.partition(" ")
        if kind == _GAUGE:
            # Nearly all are: ten of each partition.
            name, _, figure = rest.rpartition(" ")
            found[name] = int(figure) if figure.isdecimal() else _gauge_value(figure)
        else:
            size, read = _KINDS[kind]
            name, *figures = rest.rsplit(" ", size)
            found[name] = read(figures)
    return found


def _gauge_value(text: str) -> MetricValue:
    """Return a gauge's value: an int unless the text has a fraction or an exponent."""
    return float(text) if "." in text or "e" in text else int(text)


def _meter(figures: list[str]) -> MeterReading:
    """Parse a meter: count, mean rate, and the rates of 1, 5 and 15 minutes."""
    count, *rates = figures
    mean, one, five, fifteen = map(float, rates)
    return MeterReading(int(count), mean, one, five, fifteen)


def _histogram(figures: list[str]) -> HistogramReading:
    """Return a histogram: count, then the other figures in the order of their fields."""
    count, *others = figures
    return HistogramReading(int(count), *map(float, others))


def _timer(figures: list[str]) -> TimerReading:
    """Return a timer: the figures of its meter, then those of its histogram."""
    return TimerReading(_meter(figures[:_METER_SIZE]), _histogram(figures[_METER_SIZE:]))


#: How many figures the other kinds of metrics have, and how they are read.
_KINDS: Final[dict[str, tuple[int, Callable[[list[str]], MetricValue]]]] = {
    "meter": (_METER_SIZE, _meter),
    "histogram": (_HISTOGRAM_SIZE, _histogram),
    "timer": (_METER_SIZE + _HISTOGRAM_SIZE, _timer),
}
