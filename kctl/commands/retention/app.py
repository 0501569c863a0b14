"""`kctl retention`: deletions by retention, now and later, also with other settings."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.connect import ClusterOptions
from kctl.options.cluster import Output, Yes, noun, on_cluster

app = noun("Retention: what goes and when, under these settings or others; run it now.")

_Topics = Annotated[
    list[str] | None, typer.Argument(metavar="[TOPIC]...", help="Topics; default: all of --dir.")
]
_Match = Annotated[
    str | None,
    typer.Option("--match", metavar="REGEX", help="Also topics whose complete name matches."),
]
_Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Assume this topic setting: retention.ms=7d; may be repeated.",
    ),
]


@app.command(
    "plan",
    epilog="Examples: kctl retention plan clicks --set retention.ms=3d · "
    "kctl retention plan --dir /var/kafka --advise 500GB",
)
@on_cluster
def plan(
    cluster: ClusterOptions,
    topics: _Topics = None,
    match: _Match = None,
    dirs: Annotated[
        list[str] | None,
        typer.Option(
            "--dir",
            metavar="DIR",
            help="Log directory to read instead of a cluster; may be repeated.",
        ),
    ] = None,
    settings: _Settings = None,
    at: Annotated[
        str,
        typer.Option("--at", metavar="TIME", help="Time of the forecast, assuming no new records."),
    ] = "now",
    upcoming: Annotated[
        bool, typer.Option("--upcoming", help="Print a row per upcoming deletion, with its time.")
    ] = False,
    by_topic: Annotated[
        bool, typer.Option("--by-topic", help="Print a row per topic, not per partition.")
    ] = False,
    chart: Annotated[
        bool, typer.Option("--chart", help="Add a bar to tables: deleted share of the log.")
    ] = False,
    advise: Annotated[
        str | None,
        typer.Option(
            "--advise",
            metavar="BYTES",
            help="Show settings with which the topics fit into this size: 500GB.",
        ),
    ] = None,
    output: Output = "table",
) -> int:
    """Show what retention deletes now, when it deletes more, and how large logs become.

    Exact, by segments, for a directory and for the embedded cluster. For other clusters it is a
    range, since brokers do not report segment boundaries. Sizes are those of one replica per
    partition.
    """
    from kctl.commands.retention.plan import PlanRequest, show_plan

    request = PlanRequest(
        topics or [],
        match,
        dirs or [],
        settings or [],
        at,
        upcoming,
        by_topic,
        chart,
        advise,
        output,
    )
    return show_plan(cluster, request)


@app.command(
    "run",
    epilog="Examples: kctl retention run · "
    "kctl retention run clicks --dir copy --in-place --set retention.ms=3d",
)
@on_cluster
def run_retention(
    cluster: ClusterOptions,
    topics: _Topics = None,
    directory: Annotated[
        str | None, typer.Option("--dir", metavar="DIR", help="Log directory that no broker uses.")
    ] = None,
    settings: _Settings = None,
    in_place: Annotated[
        bool, typer.Option("--in-place", help="With --dir: delete in the directory itself.")
    ] = False,
    out: Annotated[
        str | None,
        typer.Option("--out", metavar="DIR", help="With --dir: write the remaining logs to DIR."),
    ] = None,
    yes: Yes = False,
    output: Output = "table",
) -> int:
    """Delete due segments now: on the embedded cluster, or in a log directory no broker uses.

    The cluster checks all topics, by their settings. Topics of a directory have Kafka's default
    settings, except those given by --set.
    """
    from kctl.commands.retention.run import RunRequest, run_now

    return run_now(
        cluster, RunRequest(topics or [], directory, settings or [], in_place, out, yes, output)
    )
