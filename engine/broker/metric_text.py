"""Encode a broker's metrics as text, one line for each, for another process; and decode them.

```
gauge kafka.log:type=Log,name=Size,topic=t,partition=0 712
meter kafka.server:type=ReplicaManager,name=IsrShrinksPerSec 2 0.001 0.0 0.004 0.002
```

A broker has ten gauges for each partition: encoding those of 10,000 partitions as JSON would block
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
    """A metric: its JMX object name, and its value."""

    name: str
    value: MetricValue


def encode_metrics(metrics: Iterable[BrokerMetric]) -> str:
    """Return the metrics as lines of text, which `decode_metrics` reads in another process."""
    return "\n".join([_metric_line(name, value) for name, value in metrics])


def _metric_line(name: str, value: MetricValue) -> str:
    """Return the line of one metric, `kind name figures…`; numbers by repr, so they are exact."""
    if isinstance(value, MeterReading):
        return f"meter {name} {' '.join(map(repr, value))}"
    if isinstance(value, HistogramReading):
        return f"histogram {name} {' '.join(map(repr, value))}"
    if isinstance(value, TimerReading):
        return f"timer {name} {' '.join(map(repr, (*value.meter, *value.times)))}"
    return f"{_GAUGE} {name} {value}"


def decode_metrics(text: str) -> dict[str, MetricValue]:
    """Return the metrics in a text by name; raises ValueError, KeyError for an unknown kind."""
    found: dict[str, MetricValue] = {}
    # Not splitlines: a directory's path may contain other line separators.
    for line in text.split("\n") if text else ():
        kind, _, rest = line.partition(" ")
        if kind == _GAUGE:
            # Nearly all metrics are gauges.
            name, _, figure = rest.rpartition(" ")
            found[name] = int(figure) if figure.isdecimal() else _gauge_value(figure)
        else:
            size, read = _KINDS[kind]
            name, *figures = rest.rsplit(" ", size)
            found[name] = read(figures)
    return found


def _gauge_value(text: str) -> MetricValue:
    """Return a gauge's value from its text.

    It is an int unless the text has a fraction or an exponent.
    """
    return float(text) if "." in text or "e" in text else int(text)


def _parse_meter(figures: list[str]) -> MeterReading:
    """Parse a meter: count, mean rate, and the rates of 1, 5 and 15 minutes."""
    count, *rates = figures
    mean, one, five, fifteen = map(float, rates)
    return MeterReading(int(count), mean, one, five, fifteen)


def _parse_histogram(figures: list[str]) -> HistogramReading:
    """Parse a histogram: count, then the other figures in the order of their fields."""
    count, *others = figures
    return HistogramReading(int(count), *map(float, others))


def _parse_timer(figures: list[str]) -> TimerReading:
    """Parse a timer: the figures of its meter, then those of its histogram."""
    return TimerReading(
        _parse_meter(figures[:_METER_SIZE]), _parse_histogram(figures[_METER_SIZE:])
    )


#: Number of figures of the other kinds of metrics, and the function that parses them.
_KINDS: Final[dict[str, tuple[int, Callable[[list[str]], MetricValue]]]] = {
    "meter": (_METER_SIZE, _parse_meter),
    "histogram": (_HISTOGRAM_SIZE, _parse_histogram),
    "timer": (_METER_SIZE + _HISTOGRAM_SIZE, _parse_timer),
}
