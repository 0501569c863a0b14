"""Gauges of a broker as text, a line each, to be sent to another process.

A broker has ten gauges for each partition: as rows of JSON, those of 10,000 partitions would keep
the loop for most of a second.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class BrokerMetric(NamedTuple):
    """A gauge: its object name in JMX, and what its attribute `Value` is."""

    name: str
    value: int


def encode_metrics(metrics: Iterable[BrokerMetric]) -> str:
    """Return gauges as text."""
    return "\n".join([f"{name} {value}" for name, value in metrics])


def decode_metrics(text: str) -> dict[str, int]:
    """Return the gauges of a text by name; raises ValueError."""
    gauges = {}
    # Not splitlines: the path of a directory may have other characters that end lines.
    for line in text.split("\n") if text else ():
        name, value = line.rsplit(" ", 1)
        gauges[name] = int(value)
    return gauges
