"""Metrics of embedded brokers as families, named as by Prometheus's JMX exporter for Kafka.

| object name | becomes | |---|---| | `kafka.log:type=Log,name=Size,topic=t,partition=0` |
`kafka_log_log_size{broker_id="1",topic="t",partition="0"}`, a gauge | |
`kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec,topic=t` |
`kafka_server_brokertopicmetrics_bytesin_total{broker_id="1",topic="t"}`, a counter |

Of a meter only the count is exported, since Prometheus computes rates itself. Histograms and timers
become summaries with quantiles. An object that lacks a property which others in its family have
gets an empty label, which Prometheus treats as no label.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from engine.exporter.metric_family import (
    COUNTER,
    GAUGE,
    SUMMARY,
    MetricFamily,
    SummaryTotal,
)
from engine.timing.histogram import QUANTILES, HistogramReading, MetricValue, TimerReading
from engine.timing.meter import MeterReading

_OBJECT_NAME: Final = re.compile(r"([\w.]+):type=([^,]+),name=([^,]+)(.*)")
_PROPERTY: Final = re.compile(r',([\w-]+)=(?:"((?:[^"\\]|\\.)*)"|([^,]*))')
_ESCAPED: Final = re.compile(r"\\(.)")
_FAMILIES_MAX: Final = 1024
_HELP: Final = {
    GAUGE: "A gauge of an embedded broker.",
    COUNTER: "A meter's count of an embedded broker.",
    SUMMARY: "A histogram of an embedded broker.",
}


#: What is exported of a metric: its value, count or histogram.
_Figure: TypeAlias = int | float | HistogramReading


class NamedMetric(NamedTuple):
    """The name of a metric's family, and the labels of the metric."""

    family: str
    labels: tuple[tuple[str, str], ...]


def parse_object_name(object_name: str) -> NamedMetric:
    """Return the metric family and the labels for the JMX name of a broker's metric; cached.

    The name must have a type and a name. Example: "kafka.server:type=...,name=...,topic=t" gives
    the label topic="t".
    """
    match = _OBJECT_NAME.fullmatch(object_name)
    assert match is not None, object_name
    domain, kind, name, properties = match.groups()
    family = _family(domain, kind, name)
    if '"' in properties:
        found = _PROPERTY.findall(properties)
        labels = tuple([(key, _unquote(quoted) or plain) for key, quoted, plain in found])
    else:
        # The common case must be fast: an embedded cluster has ten objects for each partition.
        labels = tuple([(key, value) for key, _, value in _plain_properties(properties)])
    return NamedMetric(family, labels)


def _plain_properties(properties: str) -> list[tuple[str, str, str]]:
    """Return (key, "=", value) for each property after type and name; none is quoted."""
    return [text.partition("=") for text in properties.split(",")[1:]]


@lru_cache(maxsize=_FAMILIES_MAX)
def _family(domain: str, kind: str, name: str) -> str:
    """Return the metric family's name for the domain, type and name of a JMX object.

    Characters that Prometheus does not allow become `_`.
    """
    return re.sub(r"\W", "_", f"{domain}_{kind}_{name}").lower()


def _unquote(text: str) -> str:
    """Undo Java's ObjectName.quote on the text between the quotes."""
    return _ESCAPED.sub(lambda found: "\n" if found[1] == "n" else found[1], text)


def metric_families(
    metrics_by_broker: Mapping[int, Mapping[str, MetricValue]],
) -> Iterator[MetricFamily]:
    """Yield a metric family for each kind of broker metric, with a row for each JMX object.

    `metrics_by_broker` has the metrics of each broker id by JMX object name.
    """
    gathered: dict[str, _Gathered] = {}
    for broker_id, metrics in sorted(metrics_by_broker.items()):
        broker = str(broker_id)
        for object_name, value in metrics.items():
            family, pairs = parse_object_name(object_name)
            kind, figure = _kind_and_figure(value)
            if kind == COUNTER:
                family = family.removesuffix("persec")
            found = gathered.get(family)
            if found is None:
                found = gathered[family] = _Gathered(kind)
            found.add(broker, pairs, figure)
    for family, found in gathered.items():
        yield found.family(family)


def _kind_and_figure(value: MetricValue) -> tuple[str, _Figure]:
    """Return the Prometheus type for a metric's value, and the number or quantiles to export.

    Meters are counters of events, timers and histograms summaries, other metrics gauges.
    """
    if isinstance(value, MeterReading):
        return COUNTER, value.event_count
    if isinstance(value, TimerReading):
        return SUMMARY, value.times
    return (SUMMARY if isinstance(value, HistogramReading) else GAUGE), value


class _Gathered:
    """The rows of a family, until all of its labels are known."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._names: dict[tuple[str, ...], None] = {}
        self._rows: list[tuple[str, tuple[tuple[str, str], ...], _Figure]] = []

    def add(self, broker: str, pairs: tuple[tuple[str, str], ...], value: _Figure) -> None:
        """Add the value of one JMX object on a broker; `pairs` are its labels as (name, text)."""
        self._names[tuple([name for name, _ in pairs])] = None
        self._rows.append((broker, pairs, value))

    def family(self, name: str) -> MetricFamily:
        """Return the added metrics as a family of the given name.

        Its labels are all those of its objects; an object without one of them gets an empty text.
        """
        labels = ("broker_id", *dict.fromkeys(label for names in self._names for label in names))
        rows: list[tuple[tuple[str, ...], float]] = []
        totals: list[SummaryTotal] = []
        has_one_form = len(self._names) == 1
        for broker, pairs, value in self._rows:
            if has_one_form:
                values = (broker, *[text for _, text in pairs])
            else:
                given = dict(pairs)
                values = (broker, *[given.get(label, "") for label in labels[1:]])
            if isinstance(value, HistogramReading):
                totals.append(_total(values, value))
                rows += _quantiles(values, value)
            else:
                rows.append((values, float(value)))
        if self._kind == SUMMARY:
            labels = (*labels, "quantile")
        return MetricFamily(name, _HELP[self._kind], labels, rows, self._kind, totals)


def _quantiles(
    labels: tuple[str, ...], reading: HistogramReading
) -> Iterator[tuple[tuple[str, ...], float]]:
    """Yield a row for each quantile of a histogram, with the quantile as the last label."""
    for share, value in zip(QUANTILES, reading.quantiles, strict=True):
        yield (*labels, str(share)), value


def _total(labels: tuple[str, ...], reading: HistogramReading) -> SummaryTotal:
    """Return the count and sum of a histogram, exported as `_count` and `_sum` of its summary."""
    return SummaryTotal(labels, reading.event_count, reading.total)
