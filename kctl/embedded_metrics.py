"""Metrics of an embedded cluster's brokers, requested from its process."""

from __future__ import annotations

from engine.client.blocking import KafkaClient
from engine.cluster import daemon
from engine.cluster.data_directory import DataDirectory
from engine.cluster.requests import request_metrics
from engine.host.real import RealClock, RealFiles
from engine.timing.histogram import MetricValue


def embedded_metrics(
    client: KafkaClient, data: DataDirectory, timeout_s: float
) -> dict[int, dict[str, MetricValue]]:
    """Request the metrics of an embedded cluster's running brokers, by id and metric name.

    `client` is connected to that cluster, `data` is its directory.

    Waits while another command sends requests to the cluster's process. Errors: those of
    `request_metrics`, and of the wait.
    """

    def pause(duration_ms: int) -> None:
        """Wait, while the client's connections exchange what is due."""
        client.connections.pause(duration_ms)

    with daemon.hold_start_lock(data, RealFiles(), RealClock(), timeout_s, pause):
        return request_metrics(data, RealClock(), timeout_s, pause)
