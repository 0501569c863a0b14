"""Families of metrics as text, in the format that Prometheus's client library selects.

The library is imported for the first page, since it is an optional extra.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from engine.errors import EngineError
from engine.exporter.exposition import encode_families
from engine.exporter.metric_family import COUNTER, SUMMARY, MetricFamily

if TYPE_CHECKING:
    from prometheus_client import Metric

_OPEN_METRICS: Final = "application/openmetrics-text"
#: Name schemes with which the library changes names.
_RENAMING: Final = ("escaping=dots", "escaping=values")


class NoPrometheusClient(EngineError):
    """The library that writes metrics is not installed."""

    hint = "pip install 'kctl-kafka[exporter]'"

    def __init__(self) -> None:
        super().__init__("metrics need the package prometheus-client")


class MetricsPage(NamedTuple):
    """A page of metrics with its content type."""

    content_type: str
    body: bytes


def check_library() -> None:
    """Raise NoPrometheusClient if the library is not installed."""
    try:
        import prometheus_client  # noqa: F401
    except ImportError as error:
        raise NoPrometheusClient from error


def metrics_page(families: Iterable[MetricFamily], accept: str) -> MetricsPage:
    """Return metric families in the format that an HTTP Accept header asks for.

    Raises NoPrometheusClient if the library that parses the header is not installed.
    """
    check_library()
    from prometheus_client.exposition import choose_encoder
    from prometheus_client.utils import floatToGoString

    _, content_type = choose_encoder(accept)
    if any(scheme in content_type for scheme in _RENAMING):
        return library_page(families, accept)
    is_open_metrics = content_type.startswith(_OPEN_METRICS)
    body = encode_families(families, floatToGoString, is_open_metrics=is_open_metrics)
    return MetricsPage(content_type, body)


def library_page(families: Iterable[MetricFamily], accept: str) -> MetricsPage:
    """Return metric families as Prometheus's library writes them.

    It is slower, and needed only for formats that change the names of metrics.
    """
    from prometheus_client import CollectorRegistry
    from prometheus_client.exposition import choose_encoder
    from prometheus_client.registry import Collector

    class Families(Collector):
        """Returns the gathered metric families."""

        def collect(self) -> Iterator[Metric]:
            return map(_library_metric, families)

        def describe(self) -> Iterator[Metric]:
            return iter(())

    registry = CollectorRegistry()
    registry.register(Families())
    encode, content_type = choose_encoder(accept)
    return MetricsPage(content_type, encode(registry))


def _library_metric(family: MetricFamily) -> Metric:
    """Return a family as a metric object of Prometheus's client library."""
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    if family.kind == SUMMARY:
        return _library_summary(family)
    kind = CounterMetricFamily if family.kind == COUNTER else GaugeMetricFamily
    metric = kind(family.name, family.help, labels=family.labels)
    for labels, value in family.rows:
        metric.add_metric(labels, value)
    return metric


def _library_summary(family: MetricFamily) -> Metric:
    """Return a summary with its quantiles, which the library's class does not support."""
    from prometheus_client.core import SummaryMetricFamily

    metric = SummaryMetricFamily(family.name, family.help, labels=family.labels[:-1])
    rows = iter(family.rows)
    quantile_count = len(family.rows) // max(len(family.totals), 1)
    for total in family.totals:
        # All samples of an object must be adjacent.
        for labels, value in islice(rows, quantile_count):
            metric.add_sample(family.name, dict(zip(family.labels, labels, strict=True)), value)
        metric.add_metric(total.labels, total.value_count, total.value_sum)
    return metric
