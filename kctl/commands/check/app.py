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
        list[str] | None, typer.Argument(metavar="TOPIC...", help="Topics to check; default: all.")
    ] = None,
    ignored: Annotated[
        list[str] | None,
        typer.Option(
            "--ignore", metavar="FINDING", help="Kind of finding to ignore; may be repeated."
        ),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Count notices as problems.")] = False,
    wait: Annotated[
        bool,
        typer.Option(
            "--wait",
            help="Repeat until no problem is left or --timeout ends; ignores running moves.",
        ),
    ] = False,
    moves: Annotated[
        bool,
        typer.Option(
            "--moves", help="Count moves as problems; --wait then waits for their end, too."
        ),
    ] = False,
    idle_transaction: Annotated[
        str,
        typer.Option(
            "--idle-transaction",
            metavar="DURATION",
            help="Report an open transaction if its producer has not written for this long.",
        ),
    ] = "15m",
    group_lag: Annotated[
        int,
        typer.Option(
            "--group-lag",
            min=1,
            max=INT64_MAX,
            metavar="RECORDS",
            help="Report a group without members from this lag on.",
        ),
    ] = 1,
    zookeeper: Annotated[
        str | None,
        typer.Option(
            "-z",
            "--zookeeper",
            metavar="HOST:PORT",
            help="ZooKeeper, to show the time of the last ISR change.",
        ),
    ] = None,
    output: Output = "table",
) -> int:
    """Show the problems of a cluster, the worst first; exit code 4 beyond notices.

    Critical: offline, silent-leader, under-min-isr, no-controller, store, unreachable, log-dir,
    hanging-transaction.

    Warning: unasked, at-min-isr, under-replicated, impossible-min-isr, long-transaction.

    Notice: not-preferred, move, throttle, idle-group.

    The result comes within --timeout: all brokers are queried in parallel; a broker that does not
    respond for half of it is unreachable, and a check that could not be made is a finding.

    The metadata store holds the time of the last ISR change: the store of an embedded cluster is
    found through its brokers, another is given by --zookeeper.
    """
    from kctl.commands.check.verdict import CheckRequest, check_cluster

    thresholds = (idle_transaction, group_lag)
    request = CheckRequest(
        topics or None, ignored or [], strict, wait, moves, zookeeper, output, *thresholds
    )
    return check_cluster(cluster, request)
