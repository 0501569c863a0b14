"""`kctl report`: all of a cluster at one time."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.connect import ClusterOptions
from kctl.options.cluster import FORMATS_HELP, noun, on_cluster

app = noun("Report on a cluster as a whole, as one page of HTML too.")


@app.callback()
def report() -> None:
    """Report on a cluster as a whole, as one page of HTML too."""


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
            "--html", metavar="FILE", help="Write one page of HTML; rows are printed with -o alone."
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since", metavar="FILE", help="Also what has changed since: a saved -o json."
        ),
    ] = None,
    interval: Annotated[
        str,
        typer.Option(
            "--interval",
            metavar="DURATION",
            help="For how long rates are sampled, and groups are watched.",
        ),
    ] = "10s",
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="FORMAT", help=FORMATS_HELP)
    ] = None,
) -> int:
    """Report on a cluster: findings with their meaning and a command to go on with, then the rest.

    Shares of brokers in leaders, bytes and writes; settings that differ between brokers; topics at
    risk; groups and whether they keep up; what retention deletes and when; certificates; changes
    since a saved report. Nothing is changed, and the exit code is 0, with findings too. Table,
    wide, markdown, json and yaml have all parts; the other formats have the findings.

    The page needs no connection when it is viewed. Its charts are made by an extra: pip install
    'kctl-kafka[report]'.
    """
    from kctl.commands.report.reporting import ReportRequest, report_cluster

    return report_cluster(cluster, ReportRequest(html, since, interval, output))
