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
        str, typer.Option("--host", metavar="ADDRESS", help="Listen there; 0.0.0.0 is everywhere.")
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(
            "--port", min=0, max=65_535, metavar="PORT", help="Listen on this port; 0 is any."
        ),
    ] = 8080,
    min_interval: Annotated[
        str,
        typer.Option(
            "--min-interval",
            metavar="DURATION",
            help="Ask the cluster at most once in this time; scrapes in between get the same.",
        ),
    ] = "10s",
    scrape_timeout: Annotated[
        str,
        typer.Option(
            "--scrape-timeout",
            metavar="DURATION",
            help="How long brokers have for their responses in all; --timeout, if that is less.",
        ),
    ] = "8s",
    groups: Annotated[
        bool, typer.Option("--groups/--no-groups", help="With groups and their lag, or without.")
    ] = True,
    once: Annotated[
        bool, typer.Option("--once", help="Print the metrics of now, and serve nothing.")
    ] = False,
) -> int:
    """Serve metrics of a cluster for Prometheus until Ctrl-C, at /metrics.

    Offsets, sizes, replicas in sync, moves, the controller, groups with their lag in records and in
    seconds, certificates. Names are those of KMinion where it has them. /healthz is 200 while the
    exporter runs.

    A cluster is asked with a few requests for each broker; one that does not answer is 0 in
    kctl_kafka_broker_up, and all others count.
    """
    from kctl.commands.exporter.serving import ExporterRequest, export_metrics

    request = ExporterRequest(host, port, min_interval, scrape_timeout, groups, once)
    return export_metrics(cluster, request)
