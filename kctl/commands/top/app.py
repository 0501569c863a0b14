"""`kctl top`: live view of a cluster on one screen."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.connect import ClusterOptions
from kctl.options.cluster import FORMATS_HELP, on_cluster, one_command

app = one_command()


@app.command(
    epilog="Examples: kctl top · kctl top --view groups --sort lag_per_s · kctl top --once -o json"
)
@on_cluster
def top(
    cluster: ClusterOptions,
    every: Annotated[
        str,
        typer.Option("--every", metavar="DURATION", help="Minimum interval between samples."),
    ] = "5s",
    view: Annotated[
        str | None,
        typer.Option(
            "--view",
            metavar="NAME",
            help="First view: brokers, partitions, topics, groups or moves.",
        ),
    ] = None,
    sort: Annotated[
        str | None,
        typer.Option("--sort", metavar="COLUMN", help="Sort the view by a column of -o json."),
    ] = None,
    filter_text: Annotated[
        str,
        typer.Option("--filter", metavar="WORDS", help="Show only rows that contain each word."),
    ] = "",
    groups: Annotated[
        bool, typer.Option("--groups/--no-groups", help="Whether to show groups and their lag.")
    ] = True,
    once: Annotated[
        bool,
        typer.Option("--once", help="Print one frame; the default without a terminal, or with -o."),
    ] = False,
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="FORMAT", help=FORMATS_HELP)
    ] = None,
) -> int:
    """Show a cluster live: brokers, partitions in trouble, topics, groups, moves.

    Topics are sorted by write rate, groups by lag with its trend. Keys: 1 to 5 select a view, enter
    opens a row, escape goes back, s sorts, / filters, ? shows all keys, q quits.

    No broker gets more than two requests per second. While the cluster does not respond, the screen
    shows the age of the last values.

    --once takes two samples, for the rates between them. Table, wide, markdown, json and yaml have
    all views, or that of --view; other formats that of --view, else topics. The screen needs an
    extra: pip install 'kctl-kafka[top]'.
    """
    from kctl.commands.top.top_request import TopRequest
    from kctl.commands.top.watching import show_top

    return show_top(cluster, TopRequest(every, view, sort, filter_text, groups, once, output))
