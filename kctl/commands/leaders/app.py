"""`kctl leaders`: leaders of partitions, elections, balance."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.connect import ClusterOptions
from kctl.options.cluster import (
    Output,
    Yes,
    noun,
    on_cluster,
)

app = noun("Leaders of partitions: list, elect, balance.")

_Selectors = Annotated[
    list[str] | None,
    typer.Argument(metavar="[TOPIC[:PARTITIONS]]...", help="clicks, clicks:3, clicks:0,4-6."),
]
_Match = Annotated[
    str | None,
    typer.Option("--match", metavar="REGEX", help="And topics whose whole name matches."),
]
_Plan = Annotated[
    bool,
    typer.Option("--dry-run", help="Show what would be elected; exit code 5 if there is any."),
]


@app.command(
    "list", epilog="Examples: kctl leaders list --not-preferred · kctl leaders list --by-broker"
)
@on_cluster
def list_(
    cluster: ClusterOptions,
    selectors: _Selectors = None,
    match: _Match = None,
    not_preferred: Annotated[
        bool,
        typer.Option("--not-preferred", help="Only where the first replica does not lead."),
    ] = False,
    by_broker: Annotated[
        bool, typer.Option("--by-broker", help="A row for each broker: what it leads and should.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Exit code 4 if a preferred replica does not lead.")
    ] = False,
    output: Output = "table",
) -> int:
    """List the leaders of partitions beside the preferred ones; all topics if none is named."""
    from kctl.commands.leaders.elections import ListRequest, list_leaders

    request = ListRequest(selectors or [], match, not_preferred, by_broker, check, output)
    return list_leaders(cluster, request)


@app.command(
    "elect",
    epilog="Examples: kctl leaders elect preferred clicks · kctl leaders elect unclean clicks:3 -y",
)
@on_cluster
def elect(
    cluster: ClusterOptions,
    kind: Annotated[
        str, typer.Argument(metavar="preferred|unclean", help="How leaders are chosen.")
    ],
    selectors: _Selectors = None,
    match: _Match = None,
    dry_run: _Plan = False,
    yes: Yes = False,
    output: Output = "table",
) -> int:
    """Have leaders elected where they are not as they should be.

    preferred: the first replica of the assignment, where it is in sync. unclean: any replica that
    is alive, where there is no leader at all: records that only the others have are lost.
    """
    from kctl.commands.leaders.elections import ElectRequest, elect_leaders

    request = ElectRequest(kind, selectors or [], match, dry_run, yes, output)
    return elect_leaders(cluster, request)


@app.command(
    "balance",
    epilog="Examples: kctl leaders balance --dry-run · kctl leaders balance --reorder",
)
@on_cluster
def balance(
    cluster: ClusterOptions,
    reorder: Annotated[
        bool,
        typer.Option(
            "--reorder", help="Also change the order of replicas, so that leaders become level."
        ),
    ] = False,
    dry_run: _Plan = False,
    yes: Yes = False,
    output: Output = "table",
) -> int:
    """Have the preferred replicas lead again, of all topics, wherever they are in sync.

    With --reorder the fewest partitions get another preferred replica, so that no broker leads more
    than one partition more than another, where that can be.
    """
    if reorder:
        from kctl.commands.leaders.jobs import level_leaders

        return level_leaders(cluster, dry_run=dry_run, yes=yes, output=output)
    from kctl.commands.leaders.elections import ElectRequest, elect_leaders

    return elect_leaders(cluster, ElectRequest("preferred", [], ".*", dry_run, yes, output))


@app.command("demote", epilog="Examples: kctl leaders demote 3 · kctl leaders demote 3 --back")
@on_cluster
def demote(
    cluster: ClusterOptions,
    broker: Annotated[int, typer.Argument(metavar="BROKER", help="The broker's id.")],
    back: Annotated[
        bool, typer.Option("--back", help="Bring back the order of replicas of before.")
    ] = False,
    dry_run: _Plan = False,
    yes: Yes = False,
    output: Output = "table",
) -> int:
    """Have a broker lead nothing, for maintenance: it becomes the last replica of its partitions.

    It stays a replica and in sync. --back brings everything back to where it was.
    """
    from kctl.commands.leaders.jobs import demote_broker

    return demote_broker(cluster, broker, back=back, dry_run=dry_run, yes=yes, output=output)
