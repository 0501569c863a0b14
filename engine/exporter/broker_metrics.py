"""Metrics of embedded brokers as families, named as the JMX exporter of Prometheus names Kafka's.

| object name | becomes |
|---|---|
| `kafka.log:type=Log,name=Size,topic=t,partition=0` | \
`kafka_log_log_size{broker_id="1",topic="t",partition="0"}`, a gauge |
| `kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec,topic=t` | \
`kafka_server_brokertopicmetrics_bytesin_total{broker_id="1",topic="t"}`, a counter |

Of a meter the count alone is exported: Prometheus makes rates itself. An object that lacks a
property of others in its family has an empty label, which is none for Prometheus.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from engine.exporter.metric_family import COUNTER, MetricFamily
from engine.timing.meter import MeterReading, MetricValue

_OBJECT_NAME: Final = re.compile(r"([\w.]+):type=([^,]+),name=([^,]+)(.*)")
_PROPERTY: Final = re.compile(r',([\w-]+)=(?:"((?:[^"\\]|\\.)*)"|([^,]*))')
_ESCAPED: Final = re.compile(r"\\(.)")


class NamedMetric(NamedTuple):
    """The name of a family, and the labels of one of its rows."""

    family: str
    labels: tuple[tuple[str, str], ...]


def named_metric(object_name: str) -> NamedMetric:
    """Return the family and labels of an object name in JMX that has a type and a name."""
    match = _OBJECT_NAME.fullmatch(object_name)
    assert match is not None, object_name
    *name_parts, properties = match.groups()
    family = re.sub(r"\W", "_", "_".join(name_parts)).lower()
    labels = [
        (key, _unquoted(quoted) or plain) for key, quoted, plain in _PROPERTY.findall(properties)
    ]
    return NamedMetric(family, tuple(labels))


def _unquoted(text: str) -> str:
    """Return the text that Java's ObjectName.quote has quoted, of what is between the quotes."""
    return _ESCAPED.sub(lambda found: "\n" if found[1] == "n" else found[1], text)


def metric_families(
    metrics_by_broker: Mapping[int, Mapping[str, MetricValue]],
) -> Iterator[MetricFamily]:
    """Yield a family for each kind of metric, with a row for each broker and object."""
    rows: dict[str, list[tuple[dict[str, str], float]]] = {}
    counters: set[str] = set()
    for broker_id, metrics in sorted(metrics_by_broker.items()):
        for object_name, value in metrics.items():
            family, pairs = named_metric(object_name)
            figure: float = 0.0
            if isinstance(value, MeterReading):
                family = family.removesuffix("persec")
                counters.add(family)
                figure = value.event_count
            else:
                figure = value
            row = {"broker_id": str(broker_id), **dict(pairs)}
            rows.setdefault(family, []).append((row, float(figure)))
    for family, found in rows.items():
        labels = tuple(dict.fromkeys(label for row, _ in found for label in row))
        values = [(tuple(row.get(label, "") for label in labels), figure) for row, figure in found]
        if family in counters:
            help_text = "A meter's count of an embedded broker."
            yield MetricFamily(family, help_text, labels, values, COUNTER)
        else:
            yield MetricFamily(family, "A gauge of an embedded broker.", labels, values)
