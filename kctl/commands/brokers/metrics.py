"""Implementation of `kctl brokers metrics`: the gauges of embedded brokers by Kafka's names."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple

from engine.errors import EngineError
from kctl.command_results import end_with
from kctl.connect import ClusterOptions, connect
from kctl.console import notify, report_error
from kctl.embedded_metrics import embedded_metrics
from kctl.render import Column, check_format
from kctl.run_where import embedded_cluster

METRIC_COLUMNS = (
    Column("broker_id", "BROKER", right=True),
    Column("name", "METRIC", is_name=True),
    Column("value", "VALUE", right=True),
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
    """Print the gauges of brokers, and return the exit code. Errors: NoRequestForMetrics."""
    check_format(request.output)
    with connect(options) as client:
        data = embedded_cluster(client)
        if data is None:
            raise NoRequestForMetrics
        metrics = embedded_metrics(client, data, client.timeout_ms / 1000)
    missing = [broker_id for broker_id in request.ids if broker_id not in metrics]
    for broker_id in missing:
        report_error(BrokerHasNoMetrics(broker_id))
    rows = [
        {"broker_id": broker_id, "name": name, "value": value}
        for broker_id, gauges in sorted(metrics.items())
        if not request.ids or broker_id in request.ids
        for name, value in _matching(gauges, request.match).items()
    ]
    if not rows and not missing:
        notify(f"no metric matches {request.match}")
    return end_with(METRIC_COLUMNS, rows, request.output, failures=len(missing))


def _matching(gauges: Mapping[str, int], match: str | None) -> dict[str, int]:
    """Return the gauges whose names a pattern matches, or contain its text without a wildcard."""
    if match is None:
        return dict(gauges)
    pattern = match if any(sign in match for sign in "*?[") else f"*{match}*"
    return {name: value for name, value in gauges.items() if fnmatchcase(name, pattern)}
