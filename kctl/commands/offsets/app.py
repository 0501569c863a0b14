"""`kctl offsets`: start and end offsets of partitions, offsets by time, committed offsets."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.connect import ClusterOptions
from kctl.options.cluster import (
    Output,
    noun,
    on_cluster,
)

app = noun("Offsets of partitions: start, end, by time; committed ones of copied logs.")


@app.callback()
def offsets() -> None:
    """Offsets of partitions: start, end, by time; committed offsets in copied logs."""


@app.command(
    "get",
    epilog="Examples: kctl offsets get clicks · kctl offsets get clicks:0,4-6 --at -1h · "
    "kctl offsets get --match 'app-.*'",
)
@on_cluster
def get(
    cluster: ClusterOptions,
    selectors: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TOPIC[:PARTITIONS]]...", help="clicks, clicks:3, clicks:0,4-6."),
    ] = None,
    match: Annotated[
        str | None,
        typer.Option("--match", metavar="REGEX", help="Also topics whose complete name matches."),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="POINT",
            help="start, end, max-timestamp, earliest-local, latest-tiered, -COUNT, -1h, "
            "@MILLISECONDS or 2026-01-31T12:00:00Z.",
        ),
    ] = None,
    read_committed: Annotated[
        bool, typer.Option("--read-committed", help="Show the last stable offset as end.")
    ] = False,
    output: Output = "table",
) -> int:
    """Show start and end offset of partitions and their difference, or the offset of one point."""
    from kctl.commands.offsets.ends import OffsetsRequest, get_offsets

    request = OffsetsRequest(selectors or [], match, at, read_committed, output)
    return get_offsets(cluster, request)


@app.command(
    "committed",
    epilog="Examples: kctl offsets committed copies/ · kctl offsets committed copies/ "
    "--group billing --history -o csv",
)
def committed(
    path: Annotated[
        str,
        typer.Argument(
            metavar="DIR",
            help="Log directory, or directory with copied __consumer_offsets partitions.",
        ),
    ],
    group: Annotated[
        list[str] | None,
        typer.Option("--group", metavar="GROUP", help="Show only this group; may be repeated."),
    ] = None,
    topic: Annotated[
        list[str] | None,
        typer.Option("--topic", metavar="TOPIC", help="Show only this topic; may be repeated."),
    ] = None,
    history: Annotated[
        bool,
        typer.Option("--history", help="Show every commit in order; deletions have no offset."),
    ] = False,
    output: Output = "table",
) -> int:
    """Show committed offsets with group and time, from copied files, without a broker.

    Shows the last commit of each group and partition; deleted and expired offsets are left out.
    """
    from engine.host.real import RealFiles
    from kctl.commands.offsets.committed import CommittedRequest, show_committed

    request = CommittedRequest(path, tuple(group or ()), tuple(topic or ()), history, output)
    return show_committed(request, RealFiles())
