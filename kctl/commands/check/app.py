"""`kctl check`: problems of a cluster."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.connect import ClusterOptions
from kctl.numbers import INT64_MAX
from kctl.options.cluster import (
    Output,
    on_cluster,
    one_command,
)

app = one_command()


@app.command(epilog="Examples: kctl check · kctl check --wait --timeout 120 · kctl check -o json")
@on_cluster
def check(
    cluster: ClusterOptions,
    topics: Annotated[
        list[str] | None, typer.Argument(metavar="TOPIC...", help="All topics without any.")
    ] = None,
    ignored: Annotated[
        list[str] | None,
        typer.Option("--ignore", metavar="FINDING", help="Leave a kind out; may be repeated."),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Notices count as problems, too.")
    ] = False,
    wait: Annotated[
        bool,
        typer.Option(
            "--wait", help="Check again until nothing is wrong, or --timeout; not for moves to end."
        ),
    ] = False,
    moves: Annotated[
        bool,
        typer.Option("--moves", help="Moves count as problems: with --wait, until none is left."),
    ] = False,
    idle_transaction: Annotated[
        str,
        typer.Option(
            "--idle-transaction",
            metavar="DURATION",
            help="For how long the producer of an open transaction may write nothing.",
        ),
    ] = "15m",
    group_lag: Annotated[
        int,
        typer.Option(
            "--group-lag",
            min=1,
            max=INT64_MAX,
            metavar="RECORDS",
            help="From how many unread records on a group without members is told.",
        ),
    ] = 1,
    zookeeper: Annotated[
        str | None,
        typer.Option(
            "-z",
            "--zookeeper",
            metavar="HOST:PORT",
            help="To show since when in-sync sets are as they are.",
        ),
    ] = None,
    output: Output = "table",
) -> int:
    """Show what is wrong with a cluster, the worst first; exit code 4 beyond notices.

    Critical: offline, silent-leader, under-min-isr, no-controller, store, unreachable, log-dir,
    hanging-transaction.

    Warning: unasked, at-min-isr, under-replicated, impossible-min-isr, long-transaction.

    Notice: not-preferred, move, throttle, idle-group.

    The verdict comes within --timeout: all brokers are asked at the same time, and one that answers
    nothing for half of it is unreachable; what could not be asked is a finding.

    The metadata store knows since when a set is as it is: that of an embedded cluster is found by
    its brokers, any other is named by --zookeeper.
    """
    from kctl.commands.check.verdict import CheckRequest, check_cluster

    thresholds = (idle_transaction, group_lag)
    request = CheckRequest(
        topics or None, ignored or [], strict, wait, moves, zookeeper, output, *thresholds
    )
    return check_cluster(cluster, request)
