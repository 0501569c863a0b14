"""`kctl explain`: the complete state of a partition, and the effects of failures on it."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.connect import ClusterOptions
from kctl.options.cluster import (
    Output,
    noun,
    on_cluster,
)

app = noun("Show all of a partition, and what would happen to it.")


@app.callback()
def explain() -> None:
    """Show the complete state of a partition, and the effects of failures on it."""


@app.command(
    "partition",
    epilog="Examples: kctl explain partition clicks:3 · kctl explain partition clicks-3 -o json",
)
@on_cluster
def partition(
    cluster: ClusterOptions,
    text: Annotated[
        str, typer.Argument(metavar="TOPIC:PARTITION", help="clicks:3 or, as in logs, clicks-3.")
    ],
    zookeeper: Annotated[
        str | None,
        typer.Option(
            "-z", "--zookeeper", metavar="HOST:PORT", help="ZooKeeper with the partition's state."
        ),
    ] = None,
    output: Output = "table",
) -> int:
    """Show a partition's leader, epochs, offsets and replicas, and the effect of losing a broker.

    Shows open transactions, too: the first one limits the last stable offset, and read_committed
    groups that have read up to it wait for its end.

    The state's version, time and controller epoch are in the metadata store: the store of an
    embedded cluster is read automatically, another is given by --zookeeper.
    """
    from kctl.commands.explain.partition import explain_partition

    options = cluster
    return explain_partition(options, text, zookeeper, output)
