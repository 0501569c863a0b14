"""Implementation of `kctl brokers metrics`: metrics by Kafka's names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from itertools import chain
from typing import NamedTuple

from engine.errors import EngineError
from engine.timing.histogram import HistogramReading, MetricValue, TimerReading
from engine.timing.meter import MeterReading
from kctl.command_results import end_with
from kctl.connect import ClusterOptions, connect
from kctl.console import notify, report_error
from kctl.embedded_metrics import embedded_metrics
from kctl.render import Column, check_format
from kctl.run_location import find_embedded_cluster

#: The attributes of a meter in JMX, in the order of a MeterReading.
_METER_ATTRIBUTES = (
    "Count",
    "MeanRate",
    "OneMinuteRate",
    "FiveMinuteRate",
    "FifteenMinuteRate",
)
#: Those of a histogram, in the order of a HistogramReading, whose sum they do not have.
_HISTOGRAM_ATTRIBUTES = (
    "Count",
    "Min",
    "Max",
    "Mean",
    "StdDev",
    "50thPercentile",
    "75thPercentile",
    "95thPercentile",
    "98thPercentile",
    "99thPercentile",
    "999thPercentile",
)

METRIC_COLUMNS = (
    Column("broker_id", "BROKER", right=True),
    Column("name", "METRIC", is_name=True),
    Column("attribute", "ATTRIBUTE"),
    Column("value", "VALUE", right=True, kind="number"),
)


class MetricsRequest(NamedTuple):
    """The options of `kctl brokers metrics`; no ids are all brokers."""

    ids: list[int]
    match: str | None
    output: str


class NoRequestForMetrics(EngineError):
    """The Kafka protocol has no request for the metrics of a broker."""

    hint = (
        "they are in JMX, where JMX_PORT or an agent opens it; `kctl exporter` serves what the "
        "protocol shows of a cluster as metrics of Prometheus"
    )

    def __init__(self) -> None:
        super().__init__("no request asks brokers of Kafka for their metrics")


class BrokerHasNoMetrics(EngineError):
    """A broker that was named does not run."""

    def __init__(self, broker_id: int) -> None:
        super().__init__(f"broker {broker_id} does not run")
        self.hint = "`kctl cluster status -o wide` shows the brokers"
        self.broker_id = broker_id


def show_metrics(options: ClusterOptions, request: MetricsRequest) -> int:
    """Print metrics of brokers as MBean attributes (`kctl brokers metrics`); returns the exit code.

    Errors: NoRequestForMetrics unless the cluster is an embedded one of this machine, as Kafka's
    protocol has no request for metrics.
    """
    check_format(request.output)
    with connect(options) as client:
        data = find_embedded_cluster(client)
        if data is None:
            raise NoRequestForMetrics
        metrics = embedded_metrics(client, data, client.timeout_ms / 1000)
    missing = [broker_id for broker_id in request.ids if broker_id not in metrics]
    for broker_id in missing:
        report_error(BrokerHasNoMetrics(broker_id))
    rows = [
        {"broker_id": broker_id, "name": name, "attribute": attribute, "value": value}
        for broker_id, found in sorted(metrics.items())
        if not request.ids or broker_id in request.ids
        for name, attribute, value in matching_attributes(found, request.match)
    ]
    if request.output == "name":
        # A metric has a row for each attribute, and one name.
        rows = list({(row["broker_id"], row["name"]): row for row in rows}.values())
    if not rows and not missing:
        notify(f"no metric matches {request.match}")
    return end_with(METRIC_COLUMNS, rows, request.output, failures=len(missing))


def matching_attributes(
    metrics: Mapping[str, MetricValue], match: str | None
) -> Iterator[tuple[str, str, float]]:
    """Yield (MBean name, attribute, value) for the attributes that match a pattern.

    The pattern is compared with the MBean's name and with JmxTool's `object:attribute`. A pattern
    without a wildcard matches any name that contains it; None matches all.
    """
    pattern = "*"
    if match is not None:
        pattern = match if any(sign in match for sign in "*?[") else f"*{match}*"
    for name, value in metrics.items():
        # If the MBean's name matches, all of its attributes do.
        is_named = fnmatchcase(name, pattern)
        for attribute, figure in _jmx_attributes(value):
            if is_named or fnmatchcase(f"{name}:{attribute}", pattern):
                yield name, attribute, figure


def _jmx_attributes(value: MetricValue) -> Iterable[tuple[str, float]]:
    """Return (attribute, value) pairs of a metric, named as JMX names them for its kind.

    A meter has count and rates, a histogram count and percentiles, a timer both; else `Value`
    alone.
    """
    if isinstance(value, MeterReading):
        return zip(_METER_ATTRIBUTES, value, strict=True)
    if isinstance(value, HistogramReading):
        return zip(_HISTOGRAM_ATTRIBUTES, value[:-1], strict=True)
    if isinstance(value, TimerReading):
        # Both have the count.
        return chain(_jmx_attributes(value.meter), list(_jmx_attributes(value.times))[1:])
    return (("Value", value),)
