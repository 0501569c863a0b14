"""`kctl report`: the complete state of a cluster at one time."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.connect import ClusterOptions
from kctl.options.cluster import FORMATS_HELP, noun, on_cluster

app = noun("Report on a cluster as a whole, as one page of HTML too.")


@app.callback()
def report() -> None:
    """Report on a complete cluster, also as an HTML page."""


@app.command(
    epilog="Examples: kctl report cluster --html report.html · kctl report cluster -o json > "
    "monday.json · kctl report cluster --since monday.json"
)
@on_cluster
def cluster(
    cluster: ClusterOptions,
    html: Annotated[
        str | None,
        typer.Option(
            "--html",
            metavar="FILE",
            help="Write an HTML page; rows are printed only if -o is given.",
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since", metavar="FILE", help="Show changes since a saved report (-o json)."
        ),
    ] = None,
    interval: Annotated[
        str,
        typer.Option(
            "--interval",
            metavar="DURATION",
            help="Time to sample rates and to watch groups.",
        ),
    ] = "10s",
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="FORMAT", help=FORMATS_HELP)
    ] = None,
) -> int:
    """Report on a cluster: findings, each with its meaning and the next command, then statistics.

    Shares of brokers in leaders, bytes and writes; settings that differ between brokers; topics at
    risk; groups and whether they keep up; upcoming deletions by retention; certificates; changes
    since a saved report. Nothing is changed; the exit code is 0 even with findings. Table, wide,
    markdown, json and yaml have all parts; other formats only findings.

    The HTML page needs no connection. Its charts need an extra: pip install 'kctl-kafka[report]'.
    """
    from kctl.commands.report.reporting import ReportRequest, report_cluster

    return report_cluster(cluster, ReportRequest(html, since, interval, output))
