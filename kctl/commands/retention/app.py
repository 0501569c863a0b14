"""`kctl retention`: deletions by retention, now and later, also under other settings."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.connect import ClusterOptions
from kctl.options.cluster import Output, Yes, noun, on_cluster

app = noun("Retention: what goes and when, under these settings or others; run it now.")

_Topics = Annotated[
    list[str] | None, typer.Argument(metavar="[TOPIC]...", help="Topics; else all of --dir.")
]
_Match = Annotated[
    str | None, typer.Option("--match", metavar="REGEX", help="And topics whose whole name fits.")
]
_Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="As if topics had this: retention.ms=7d; repeatable."
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
        typer.Option("--dir", metavar="DIR", help="Log directories, not a cluster; repeatable."),
    ] = None,
    settings: _Settings = None,
    at: Annotated[
        str, typer.Option("--at", metavar="TIME", help="As it will be then, if nothing comes.")
    ] = "now",
    upcoming: Annotated[
        bool, typer.Option("--upcoming", help="A row for each deletion to come, with its time.")
    ] = False,
    by_topic: Annotated[
        bool, typer.Option("--by-topic", help="A row for each topic, not for each partition.")
    ] = False,
    chart: Annotated[
        bool, typer.Option("--chart", help="Tables with a bar: what goes of what there is.")
    ] = False,
    advise: Annotated[
        str | None,
        typer.Option(
            "--advise", metavar="BYTES", help="Settings by which the topics fit into this: 500GB."
        ),
    ] = None,
    output: Output = "table",
) -> int:
    """Show what retention frees now, when more goes, and how large logs become.

    Of a directory and of the embedded cluster it is exact, by segments. Of any other it is a range,
    as brokers do not expose where segments begin. Sizes are of one copy of each partition.
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
        str | None, typer.Option("--dir", metavar="DIR", help="A log directory no broker uses.")
    ] = None,
    settings: _Settings = None,
    in_place: Annotated[
        bool, typer.Option("--in-place", help="With --dir: delete in the directory itself.")
    ] = False,
    out: Annotated[
        str | None,
        typer.Option("--out", metavar="DIR", help="With --dir: what is left goes here."),
    ] = None,
    yes: Yes = False,
    output: Output = "table",
) -> int:
    """Delete now what is due: on the embedded cluster, or in a log directory that no broker uses.

    The cluster checks all topics, by their settings. A directory's topics have the defaults of
    Kafka but for those of --set.
    """
    from kctl.commands.retention.run import RunRequest, run_now

    return run_now(
        cluster, RunRequest(topics or [], directory, settings or [], in_place, out, yes, output)
    )
