"""`kctl groups`: who reads a topic, and how far behind."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.connect import ClusterOptions
from kctl.options.cluster import (
    Output,
    noun,
    on_cluster,
)

app = noun("Groups: list, members, offsets and lag.")

_Groups = Annotated[list[str], typer.Argument(metavar="GROUP...", help="Ids of groups.")]


@app.command("list", epilog="Example: kctl groups list --state Empty")
@on_cluster
def list_(
    cluster: ClusterOptions,
    state: Annotated[
        list[str] | None,
        typer.Option("--state", metavar="STATE", help="Only in this state; may be repeated."),
    ] = None,
    output: Output = "table",
) -> int:
    """List the groups of all coordinators with their states.

    Brokers before 2.6 do not say the state, those before 3.8 not the type.
    """
    from kctl.commands.groups.listing import list_all

    return list_all(cluster, state or [], output)


@app.command("members", epilog="Example: kctl groups members billing -o wide")
@on_cluster
def members(
    cluster: ClusterOptions,
    groups: _Groups,
    output: Output = "table",
) -> int:
    """Show the members of groups, and how many partitions each has."""
    from kctl.commands.groups.listing import show_members

    return show_members(cluster, groups, output)


@app.command("lag", epilog="Examples: kctl groups lag billing · kctl groups lag billing -o json")
@on_cluster
def lag(
    cluster: ClusterOptions,
    groups: _Groups,
    output: Output = "table",
) -> int:
    """Show what groups have committed in each partition, and how far that is from the end.

    A partition that a member has and nobody has committed for has no offset and no lag: that is
    not a lag of zero.
    """
    from kctl.commands.groups.listing import show_lag

    return show_lag(cluster, groups, output)
