"""Gauges of embedded brokers as families, named as the JMX exporter of Prometheus names Kafka's.

`kafka.log:type=Log,name=Size,topic=t,partition=0` becomes
`kafka_log_log_size{broker_id="1",topic="t",partition="0"}`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from engine.exporter.metric_family import MetricFamily

_OBJECT_NAME: Final = re.compile(r"([\w.]+):type=([^,]+),name=([^,]+)(.*)")
_PROPERTY: Final = re.compile(r',(\w+)=(?:"((?:[^"\\]|\\.)*)"|([^,]*))')
_ESCAPED: Final = re.compile(r"\\(.)")


class NamedGauge(NamedTuple):
    """The name of a family, and the labels of one of its rows."""

    family: str
    labels: tuple[tuple[str, str], ...]


def named_gauge(object_name: str) -> NamedGauge:
    """Return the family and labels of an object name in JMX that has a type and a name."""
    match = _OBJECT_NAME.fullmatch(object_name)
    assert match is not None, object_name
    *words, properties = match.groups()
    family = re.sub(r"\W", "_", "_".join(words)).lower()
    labels = [
        (key, _unquoted(quoted) or plain) for key, quoted, plain in _PROPERTY.findall(properties)
    ]
    return NamedGauge(family, tuple(labels))


def _unquoted(text: str) -> str:
    """Return the text that Java's ObjectName.quote has quoted, of what is between the quotes."""
    return _ESCAPED.sub(lambda found: "\n" if found[1] == "n" else found[1], text)


def gauge_families(gauges_by_broker: Mapping[int, Mapping[str, int]]) -> Iterator[MetricFamily]:
    """Yield a family for each kind of gauge, with a row for each broker and object."""
    labels: dict[str, tuple[str, ...]] = {}
    rows: dict[str, list[tuple[tuple[str, ...], float]]] = {}
    for broker_id, gauges in sorted(gauges_by_broker.items()):
        for object_name, value in gauges.items():
            family, pairs = named_gauge(object_name)
            labels[family] = ("broker_id", *(key for key, _ in pairs))
            row = (str(broker_id), *(text for _, text in pairs))
            rows.setdefault(family, []).append((row, float(value)))
    for family, found in rows.items():
        yield MetricFamily(family, "A gauge of an embedded broker.", labels[family], found)
