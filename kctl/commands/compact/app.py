"""`kctl compact`: dirty ranges of compacted logs, what a cleaning frees, and cleaning now."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.connect import ClusterOptions
from kctl.options.cluster import Output, Yes, noun, on_cluster

app = noun("Compaction: how dirty logs are, what a cleaning frees; clean them now.")

_Topics = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[TOPIC]...",
        help="Topics; default: all compacted topics, of --dir those in the cleaner's checkpoint.",
    ),
]
_Match = Annotated[
    str | None,
    typer.Option("--match", metavar="REGEX", help="Also topics whose complete name matches."),
]
_Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Assume this topic setting; may be repeated."),
]


@app.command(
    "plan",
    epilog="Examples: kctl compact plan users --exact · "
    "kctl compact plan clicks --set cleanup.policy=compact --exact · "
    "kctl compact plan --dir /var/kafka users --exact --chart",
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
    exact: Annotated[
        bool,
        typer.Option("--exact", help="Read all records, to show exactly what a cleaning frees."),
    ] = False,
    buffer: Annotated[
        str | None,
        typer.Option(
            "--buffer", metavar="BYTES", help="With --exact: memory for keys; default 128MiB."
        ),
    ] = None,
    chart: Annotated[
        bool, typer.Option("--chart", help="Add a bar to tables: freed share of the log.")
    ] = False,
    output: Output = "table",
) -> int:
    """Show how dirty compacted logs are, when they are cleaned, and what that frees.

    Offsets of a directory or of the embedded cluster are those that the cleaner uses; of another
    cluster they are estimates. --exact applies the cleaner's rules to the records: it reads a
    directory's logs, even while a broker uses them, or fetches a cluster's records twice. A log
    directory does not contain settings of topics: Kafka's defaults are assumed, unless --set is
    given.
    """
    from kctl.commands.compact.requests import CompactPlanRequest

    request = CompactPlanRequest(
        topics or [], match, dirs or [], settings or [], exact, buffer, chart, output
    )
    if dirs:
        from kctl.commands.compact.in_directory import print_plan_of_dirs

        return print_plan_of_dirs(request)
    from kctl.commands.compact.on_cluster import print_plan_of_cluster

    return print_plan_of_cluster(cluster, request)


@app.command(
    "run",
    epilog="Examples: kctl compact run users · "
    "kctl compact run --dir /var/kafka users --out copy --buffer 64MB",
)
@on_cluster
def run_compaction(
    cluster: ClusterOptions,
    topics: _Topics = None,
    match: _Match = None,
    directory: Annotated[
        str | None, typer.Option("--dir", metavar="DIR", help="Log directory that no broker uses.")
    ] = None,
    settings: _Settings = None,
    in_place: Annotated[
        bool, typer.Option("--in-place", help="With --dir: clean the directory itself.")
    ] = False,
    out: Annotated[
        str | None,
        typer.Option("--out", metavar="DIR", help="With --dir: clean a copy, written to DIR."),
    ] = None,
    buffer: Annotated[
        str | None,
        typer.Option(
            "--buffer",
            metavar="BYTES",
            help="With --dir: memory for keys, default 128MiB; less needs more passes.",
        ),
    ] = None,
    yes: Yes = False,
    output: Output = "table",
) -> int:
    """Clean logs now, without regard to their dirty ratio: the last value of each key is kept.

    Cleans all replicas on the embedded cluster, and waits; or a log directory, with the same bytes
    as a broker's cleaner. The active segment and open transactions are never cleaned, and
    tombstones are kept for delete.retention.ms. Kafka's brokers have no request for this.
    """
    from kctl.commands.compact.requests import CompactRunRequest

    request = CompactRunRequest(
        topics or [], match, directory, settings or [], in_place, out, yes, buffer, output
    )
    if directory is not None:
        from kctl.commands.compact.in_directory import clean_directory

        return clean_directory(directory, request)
    from kctl.commands.compact.on_embedded import clean_cluster

    return clean_cluster(cluster, request)


@app.command("status", epilog="Example: kctl compact status --watch")
@on_cluster
def status(
    cluster: ClusterOptions,
    topics: _Topics = None,
    match: _Match = None,
    watch: Annotated[
        bool,
        typer.Option("--watch", help="Print each row again when it changes, until no log is due."),
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Exit code 4 if a log cannot be cleaned.")
    ] = False,
    output: Output = "table",
) -> int:
    """Show the progress and the last run of the log cleaners of the embedded cluster's brokers.

    A row for each replica: the cleaned offset, what a cleaning waits for, why it is impossible, and
    the progress of a running one. Not for Kafka's brokers.
    """
    from kctl.commands.compact.on_embedded import CleanStatusRequest, show_cleaner_status

    return show_cleaner_status(
        cluster, CleanStatusRequest(topics or [], match, watch, check, output)
    )
