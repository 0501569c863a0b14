"""`kctl events`: changes of a cluster's metadata."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.connect import ClusterOptions
from kctl.options.cluster import Output, on_cluster, one_command

app = one_command()


@app.command(epilog="Examples: kctl events --follow · kctl events -f --every 5s -o table")
@on_cluster
def events(
    cluster: ClusterOptions,
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="Run until Ctrl-C; default: one interval.")
    ] = False,
    every: Annotated[
        str, typer.Option("--every", metavar="DURATION", help="Interval between snapshots.")
    ] = "1s",
    count: Annotated[
        int | None,
        typer.Option("-n", "--count", min=1, metavar="N", help="Stop after N events."),
    ] = None,
    output: Output = "ndjson",
) -> int:
    """Print changes of a cluster: leaders, in-sync replicas, brokers, topics, moves, controller.

    Works on any cluster by comparing snapshots of its metadata: a change that is undone between two
    snapshots is not seen. Each snapshot has --timeout; with --follow, a failed one is tried again.

    Events: topic-created, topic-deleted, leader-changed, isr-shrank, isr-grew, move-began,
    move-ended, broker-lost, broker-back, controller-changed (not with KRaft, where any broker is
    named as controller).
    """
    from kctl.commands.events.watching import EventsRequest, show_events

    return show_events(cluster, EventsRequest(follow, every, count, output))
