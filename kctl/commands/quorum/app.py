"""`kctl quorum`: the controller quorum of a KRaft cluster."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.connect import ClusterOptions
from kctl.options.cluster import Output, noun, on_cluster

app = noun("The quorum of controllers: its leader, voters, observers, and what is wrong.")

_Behind = Annotated[
    str,
    typer.Option(
        "--behind",
        metavar="DURATION",
        help="Maximum time for which a replica may not be caught up.",
    ),
]
_Strict = Annotated[bool, typer.Option("--strict", help="Count lagging observers as problems.")]


@app.command("describe", epilog="Examples: kctl quorum describe · kctl quorum describe -o json")
@on_cluster
def describe(
    cluster: ClusterOptions,
    behind: _Behind = "5s",
    strict: _Strict = False,
    output: Output = "table",
) -> int:
    """Show the quorum, its replicas and problems; exit code 4 if a voter lags behind.

    Critical: no-leader, no-majority, majority-at-risk. Warning: voter-behind. Notice:
    observer-behind.

    LOSSES-LEFT is how many of the caught-up voters may fail before metadata changes stop.
    """
    from kctl.commands.quorum.replicas import QuorumRequest, describe_cluster_quorum

    return describe_cluster_quorum(cluster, QuorumRequest(behind, strict, output))


@app.command("voters", epilog="Examples: kctl quorum voters · kctl quorum voters --observers")
@on_cluster
def voters(
    cluster: ClusterOptions,
    observers: Annotated[
        bool,
        typer.Option(
            "--observers", help="Include observers: brokers, and controllers that do not vote."
        ),
    ] = False,
    behind: _Behind = "5s",
    strict: _Strict = False,
    output: Output = "table",
) -> int:
    """List voters with their lag and the times of their fetches; exit codes as of describe."""
    from kctl.commands.quorum.replicas import QuorumRequest, list_voters

    return list_voters(cluster, QuorumRequest(behind, strict, output), observers=observers)
