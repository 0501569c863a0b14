"""`kctl top`: a cluster as it changes, on one screen."""

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
        typer.Option("--every", metavar="DURATION", help="Ask the cluster so often, or slower."),
    ] = "5s",
    view: Annotated[
        str | None,
        typer.Option(
            "--view",
            metavar="NAME",
            help="Begin with it: brokers, partitions, topics, groups or moves.",
        ),
    ] = None,
    sort: Annotated[
        str | None,
        typer.Option("--sort", metavar="COLUMN", help="Sort the view by a column of -o json."),
    ] = None,
    filter_text: Annotated[
        str,
        typer.Option("--filter", metavar="WORDS", help="Only rows that have each of the words."),
    ] = "",
    groups: Annotated[
        bool, typer.Option("--groups/--no-groups", help="With groups and their lag, or without.")
    ] = True,
    once: Annotated[
        bool,
        typer.Option("--once", help="Print one frame; so it is without a terminal, or with -o."),
    ] = False,
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="FORMAT", help=FORMATS_HELP)
    ] = None,
) -> int:
    """Show a cluster as it changes: brokers, partitions in trouble, topics, groups, moves.

    Topics by what is written to them, groups by lag and its trend. On the screen 1 to 5 choose a
    view, enter opens a row, escape goes back, s sorts, / filters, ? shows all keys, q ends.

    No broker gets more than two requests in a second. A cluster that does not answer is waited for;
    the screen shows how old its figures are.

    --once takes two samples, for the rates between them. Table, wide, markdown, json and yaml have
    all views, or that of --view; other formats that of --view, else topics. The screen needs an
    extra: pip install 'kctl-kafka[top]'.
    """
    from kctl.commands.top.top_request import TopRequest
    from kctl.commands.top.watching import show_top

    return show_top(cluster, TopRequest(every, view, sort, filter_text, groups, once, output))
