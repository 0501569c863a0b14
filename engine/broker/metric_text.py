"""Gauges and meters of a broker as text, a line each, to be sent to another process.

```
gauge kafka.log:type=Log,name=Size,topic=t,partition=0 712
meter kafka.server:type=ReplicaManager,name=IsrShrinksPerSec 2 0.001 0.0 0.004 0.002
```

A broker has ten gauges for each partition: as rows of JSON, those of 10,000 partitions would keep
the loop for most of a second.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from engine.timing.meter import MeterReading, MetricValue

_GAUGE: Final = "gauge "
_METER: Final = "meter "


class BrokerMetric(NamedTuple):
    """A gauge or a meter: its object name in JMX, and its value."""

    name: str
    value: MetricValue


def encode_metrics(metrics: Iterable[BrokerMetric]) -> str:
    """Return gauges and meters as text."""
    return "\n".join(
        [
            f"{_METER}{name} {' '.join(map(repr, value))}"
            if isinstance(value, MeterReading)
            else f"{_GAUGE}{name} {value}"
            for name, value in metrics
        ]
    )


def decode_metrics(text: str) -> dict[str, MetricValue]:
    """Return the gauges and meters of a text by name; raises ValueError."""
    found: dict[str, MetricValue] = {}
    # Not splitlines: the path of a directory may have other characters that end lines.
    for line in text.split("\n") if text else ():
        if line.startswith(_METER):
            name, count, *rates = line.removeprefix(_METER).rsplit(" ", 5)
            mean, one, five, fifteen = map(float, rates)
            found[name] = MeterReading(int(count), mean, one, five, fifteen)
        else:
            name, value = line.removeprefix(_GAUGE).rsplit(" ", 1)
            found[name] = int(value)
    return found
