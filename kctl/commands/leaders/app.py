"""`kctl leaders`: leaders of partitions, elections, balance of leaders."""

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
    typer.Option("--match", metavar="REGEX", help="Also topics whose complete name matches."),
]
_Plan = Annotated[
    bool,
    typer.Option("--dry-run", help="Show the elections; exit code 5 if there is any."),
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
        typer.Option(
            "--not-preferred", help="Show only partitions not led by the preferred replica."
        ),
    ] = False,
    by_broker: Annotated[
        bool,
        typer.Option(
            "--by-broker", help="Print a row per broker: its leaders and preferred leaderships."
        ),
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Exit code 4 if a preferred replica does not lead.")
    ] = False,
    output: Output = "table",
) -> int:
    """List the leaders of partitions with the preferred leaders; default: all topics."""
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
    kind: Annotated[str, typer.Argument(metavar="preferred|unclean", help="Kind of election.")],
    selectors: _Selectors = None,
    match: _Match = None,
    dry_run: _Plan = False,
    yes: Yes = False,
    output: Output = "table",
) -> int:
    """Request elections of partitions without the preferred leader, or without any leader.

    preferred: the first replica of the assignment becomes leader if it is in sync. unclean: a live
    replica becomes leader of a partition without a leader; records that it lacks are lost.
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
        typer.Option("--reorder", help="Also reorder replicas, so that leaders are spread evenly."),
    ] = False,
    dry_run: _Plan = False,
    yes: Yes = False,
    output: Output = "table",
) -> int:
    """Elect the preferred replicas of all topics as leaders, where they are in sync.

    With --reorder the fewest possible partitions get another preferred replica, so that the numbers
    of leaders on brokers differ by one at most, if possible.
    """
    if reorder:
        from kctl.commands.leaders.jobs import balance_leaders

        return balance_leaders(cluster, dry_run=dry_run, yes=yes, output=output)
    from kctl.commands.leaders.elections import ElectRequest, elect_leaders

    return elect_leaders(cluster, ElectRequest("preferred", [], ".*", dry_run, yes, output))


@app.command("demote", epilog="Examples: kctl leaders demote 3 · kctl leaders demote 3 --back")
@on_cluster
def demote(
    cluster: ClusterOptions,
    broker: Annotated[int, typer.Argument(metavar="BROKER", help="The broker's id.")],
    back: Annotated[
        bool, typer.Option("--back", help="Restore the former order of replicas.")
    ] = False,
    dry_run: _Plan = False,
    yes: Yes = False,
    output: Output = "table",
) -> int:
    """Move all leadership off a broker, for maintenance.

    It becomes the last replica of its partitions, and stays in sync. --back restores the former
    order of replicas.
    """
    from kctl.commands.leaders.jobs import demote_broker

    return demote_broker(cluster, broker, back=back, dry_run=dry_run, yes=yes, output=output)
