"""The metrics of a broker of 3.9.1 in JMX, as families: kind, domain, type, name, keys.

`tests/golden/brokers/beans-3.9.1.txt` has them of one of two brokers with ZooKeeper, after records,
transactions, groups and deletions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from engine.broker.metric_text import BrokerMetric
from engine.timing.histogram import HistogramReading, MetricValue, TimerReading
from engine.timing.meter import MeterReading
from tests.golden_cases import GOLDEN

_NAME = re.compile(r"([\w.]+:type=[^,]+,name=[^,]+)(.*)")
_KEY = re.compile(r',([\w-]+)=(?:"[^"]*"|[^,]*)')


def kafkas_families() -> set[str]:
    """Return those of a real broker."""
    return set((GOLDEN / "brokers" / "beans-3.9.1.txt").read_text().splitlines())


def families_of(metrics: Iterable[BrokerMetric]) -> set[str]:
    """Return those of metrics."""
    found = set()
    for name, value in metrics:
        match = _NAME.fullmatch(name)
        assert match is not None, name
        keys = sorted(_KEY.findall(match[2]))
        found.add(",".join((f"{_kind_of(value)} {match[1]}", *keys)))
    return found


def _kind_of(value: MetricValue) -> str:
    if isinstance(value, MeterReading):
        return "meter"
    if isinstance(value, HistogramReading):
        return "histogram"
    return "timer" if isinstance(value, TimerReading) else "gauge"
