"""`kctl events`: changes of a cluster as they are seen."""

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
        bool, typer.Option("-f", "--follow", help="Go on until Ctrl-C; else for one interval.")
    ] = False,
    every: Annotated[
        str, typer.Option("--every", metavar="DURATION", help="Ask the cluster so often.")
    ] = "1s",
    count: Annotated[
        int | None,
        typer.Option("-n", "--count", min=1, metavar="N", help="End after so many events."),
    ] = None,
    output: Output = "ndjson",
) -> int:
    """Print changes of a cluster: leaders, replicas in sync, brokers, topics, moves, controller.

    Two snapshots of the metadata are compared, on any cluster; a change that is undone in between
    is not seen. Each snapshot has --timeout, and one that fails is followed by others.

    Events: topic-created, topic-deleted, leader-changed, isr-shrank, isr-grew, move-began,
    move-ended, broker-lost, broker-back, controller-changed (not with KRaft, whose brokers name any
    of them).
    """
    from kctl.commands.events.watching import EventsRequest, show_events

    return show_events(cluster, EventsRequest(follow, every, count, output))
