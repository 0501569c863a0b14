"""`kctl exporter`: metrics of a cluster for Prometheus."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.connect import ClusterOptions
from kctl.options.cluster import on_cluster, one_command

app = one_command()


@app.command(
    epilog="Examples: kctl exporter --port 8080 · kctl exporter --host 0.0.0.0 · "
    "kctl exporter --once"
)
@on_cluster
def exporter(
    cluster: ClusterOptions,
    host: Annotated[
        str,
        typer.Option("--host", metavar="ADDRESS", help="Address to listen on; 0.0.0.0 for all."),
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(
            "--port",
            min=0,
            max=65_535,
            metavar="PORT",
            help="Port to listen on; 0 for any free port.",
        ),
    ] = 8080,
    min_interval: Annotated[
        str,
        typer.Option(
            "--min-interval",
            metavar="DURATION",
            help="Minimum time between queries of the cluster; scrapes in between are cached.",
        ),
    ] = "10s",
    scrape_timeout: Annotated[
        str,
        typer.Option(
            "--scrape-timeout",
            metavar="DURATION",
            help="Time-out for all responses of brokers; --timeout if that is less.",
        ),
    ] = "8s",
    groups: Annotated[
        bool, typer.Option("--groups/--no-groups", help="Whether to report groups and their lag.")
    ] = True,
    once: Annotated[
        bool, typer.Option("--once", help="Print the current metrics, and exit.")
    ] = False,
) -> int:
    """Serve metrics of a cluster for Prometheus at /metrics, until Ctrl-C.

    Offsets, sizes, in-sync replicas, moves, the controller, groups with their lag in records and in
    seconds, certificates. Metrics have KMinion's names where it has them. /healthz returns 200
    while the exporter runs.

    A scrape sends a few requests to each broker; a broker that does not respond is 0 in
    kctl_kafka_broker_up, and the metrics of the other brokers are still served.
    """
    from kctl.commands.exporter.serving import ExporterRequest, export_metrics

    request = ExporterRequest(host, port, min_interval, scrape_timeout, groups, once)
    return export_metrics(cluster, request)
