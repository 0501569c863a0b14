"""`kctl groups`: consumer groups and their lag."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.connect import ClusterOptions
from kctl.numbers import INT64_MAX
from kctl.options.cluster import (
    DryRun,
    Output,
    Yes,
    noun,
    on_cluster,
)

app = noun("Groups: list, describe, members, offsets, lag; reset and delete offsets.")

_Groups = Annotated[list[str], typer.Argument(metavar="GROUP...", help="Ids of groups.")]


@app.command("list", epilog="Examples: kctl groups list --state Empty · kctl groups list --lag")
@on_cluster
def list_(
    cluster: ClusterOptions,
    state: Annotated[
        list[str] | None,
        typer.Option(
            "--state", metavar="STATE", help="Only groups in this state; may be repeated."
        ),
    ] = None,
    lag: Annotated[
        bool,
        typer.Option(
            "--lag", help="Also show the number of committed partitions, and the total lag."
        ),
    ] = False,
    output: Output = "table",
) -> int:
    """List the groups of all coordinators with their states.

    Brokers before 2.6 do not return the state, brokers before 3.8 not the type. LAG covers
    partitions with a committed offset; `kctl groups lag` shows each partition, also those without
    one.
    """
    from kctl.commands.groups.listing import print_groups

    return print_groups(cluster, state or [], output, with_lag=lag)


@app.command("members", epilog="Example: kctl groups members billing -o wide")
@on_cluster
def members(
    cluster: ClusterOptions,
    groups: _Groups,
    output: Output = "table",
) -> int:
    """Show the members of groups, and how many partitions each member has."""
    from kctl.commands.groups.listing import show_members

    return show_members(cluster, groups, output)


@app.command(
    "lag", epilog="Examples: kctl groups lag billing --time · kctl groups lag billing --watch 30"
)
@on_cluster
def lag(
    cluster: ClusterOptions,
    groups: _Groups,
    time: Annotated[
        bool,
        typer.Option("--time", help="Also show the age of the first unread record."),
    ] = False,
    watch: Annotated[
        float | None,
        typer.Option(
            "--watch",
            min=0.1,
            metavar="SECONDS",
            help="Sample the lag for this time, and show a verdict.",
        ),
    ] = None,
    every: Annotated[
        float | None,
        typer.Option(
            "--every",
            min=0.1,
            metavar="SECONDS",
            help="With --watch: interval between samples, default 1.",
        ),
    ] = None,
    output: Output = "table",
) -> int:
    """Show the committed offset of groups in each partition, and its distance from the log end.

    With --watch each partition has a verdict: OK; WARN, the lag grows while offsets are committed;
    STALL, a member has it and its offset does not advance; STOP, no member has it; REWIND, the
    offset decreased. Exit code 4 if one is not OK.

    A partition that a member has without a committed offset has no lag: that is not a lag of zero.
    """
    from kctl.commands.groups.lag import LagRequest, show_lag

    if every is not None and watch is None:
        raise typer.BadParameter("goes with --watch", param_hint="--every")
    return show_lag(cluster, LagRequest(groups, time, watch, every or 1.0, output))


@app.command("describe", epilog="Example: kctl groups describe billing")
@on_cluster
def describe_groups(
    cluster: ClusterOptions,
    groups: _Groups,
    output: Output = "table",
) -> int:
    """Show groups: state, assignor, coordinator, members, partitions and the total lag.

    UNCOMMITTED counts partitions that a member has without a committed offset.
    """
    from kctl.commands.groups.listing import describe_groups

    return describe_groups(cluster, groups, output)


@app.command("offsets", epilog="Example: kctl groups offsets billing -o json")
@on_cluster
def offsets(
    cluster: ClusterOptions,
    groups: _Groups,
    output: Output = "table",
) -> int:
    """Show the committed offsets of groups, with leader epoch and metadata."""
    from kctl.commands.groups.listing import show_offsets

    return show_offsets(cluster, groups, output)


@app.command(
    "reset-offsets",
    epilog="Examples: kctl groups reset-offsets billing --topic orders --to-earliest · "
    "kctl groups reset-offsets billing --all-topics --by-duration 2h --execute",
)
@on_cluster
def reset_offsets(
    cluster: ClusterOptions,
    groups: _Groups,
    topic: Annotated[
        list[str] | None,
        typer.Option(
            "--topic",
            metavar="TOPIC[:0,4-6]",
            help="Topic, or some of its partitions; may be repeated.",
        ),
    ] = None,
    all_topics: Annotated[
        bool, typer.Option("--all-topics", help="All partitions with a committed offset.")
    ] = False,
    to_earliest: Annotated[
        bool, typer.Option("--to-earliest", help="To the log start offset.")
    ] = False,
    to_latest: Annotated[bool, typer.Option("--to-latest", help="To the log end offset.")] = False,
    to_current: Annotated[
        bool,
        typer.Option("--to-current", help="To the committed offset, else to the log end offset."),
    ] = False,
    to_offset: Annotated[
        int | None,
        typer.Option("--to-offset", min=0, max=INT64_MAX, metavar="OFFSET", help="To this offset."),
    ] = None,
    shift_by: Annotated[
        int | None,
        typer.Option(
            "--shift-by",
            min=-INT64_MAX,
            max=INT64_MAX,
            metavar="COUNT",
            help="By this number of offsets; negative moves back.",
        ),
    ] = None,
    by_duration: Annotated[
        str | None,
        typer.Option(
            "--by-duration", metavar="DURATION", help="To this long ago: 90s, 2h, 7d, P1DT2H."
        ),
    ] = None,
    to_datetime: Annotated[
        str | None,
        typer.Option(
            "--to-datetime", metavar="TIME", help="To a time: 2026-01-31T12:00:00Z, yesterday."
        ),
    ] = None,
    from_group: Annotated[
        str | None,
        typer.Option("--from-group", metavar="GROUP", help="To another group's committed offsets."),
    ] = None,
    from_file: Annotated[
        str | None,
        typer.Option("--from-file", metavar="FILE", help="To the offsets in a CSV file."),
    ] = None,
    execute: Annotated[
        bool, typer.Option("--execute", help="Change the offsets; default: only show the changes.")
    ] = False,
    output: Output = "table",
) -> int:
    """Set the committed offsets of groups without members; show old, new and the difference.

    Nothing is changed without --execute. A file has lines TOPIC,PARTITION,OFFSET or
    GROUP,TOPIC,PARTITION,OFFSET, as printed by -o csv of this command or by Kafka's tool with
    --export.
    """
    from engine.host.real import RealFiles
    from kctl.commands.groups.resetting import ResetRequest, reset_offsets

    request = ResetRequest(
        group_ids=groups,
        topics=topic or [],
        all_topics=all_topics,
        to_earliest=to_earliest,
        to_latest=to_latest,
        to_current=to_current,
        to_offset=to_offset,
        shift_by=shift_by,
        by_duration=by_duration,
        to_datetime=to_datetime,
        from_group=from_group,
        from_file=from_file,
        execute=execute,
        output=output,
    )
    return reset_offsets(cluster, request, RealFiles())


@app.command("delete", epilog="Example: kctl groups delete billing -y")
@on_cluster
def delete_groups_of_options(
    cluster: ClusterOptions,
    groups: _Groups,
    dry_run: DryRun = False,
    yes: Yes = False,
    output: Output = "table",
) -> int:
    """Delete groups without members, with their committed offsets."""
    from kctl.commands.groups.changes import delete_groups_of_options

    return delete_groups_of_options(cluster, groups, dry_run=dry_run, yes=yes, output=output)


@app.command("delete-offsets", epilog="Example: kctl groups delete-offsets billing --topic orders")
@on_cluster
def delete_offsets(
    cluster: ClusterOptions,
    group: Annotated[str, typer.Argument(metavar="GROUP", help="The id of a group.")],
    topic: Annotated[
        list[str],
        typer.Option(
            "--topic",
            metavar="TOPIC[:0,4-6]",
            help="Topic, or some of its partitions; may be repeated.",
        ),
    ],
    dry_run: DryRun = False,
    yes: Yes = False,
    output: Output = "table",
) -> int:
    """Delete a group's committed offsets of topics that none of its members reads."""
    from kctl.commands.groups.changes import delete_committed

    return delete_committed(cluster, group, topic, dry_run=dry_run, yes=yes, output=output)


@app.command(
    "remove-members", epilog="Example: kctl groups remove-members billing --instance-id app-1"
)
@on_cluster
def remove_members(
    cluster: ClusterOptions,
    group: Annotated[str, typer.Argument(metavar="GROUP", help="The id of a group.")],
    member: Annotated[
        list[str] | None,
        typer.Option("--member", metavar="ID", help="Member id; may be repeated."),
    ] = None,
    instance_id: Annotated[
        list[str] | None,
        typer.Option(
            "--instance-id", metavar="ID", help="Instance id of a static member; may be repeated."
        ),
    ] = None,
    all_members: Annotated[bool, typer.Option("--all", help="All members.")] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    output: Output = "table",
) -> int:
    """Remove members from a group; the remaining members get their partitions.

    A member whose client still runs joins again; a static member does not.
    """
    from kctl.commands.groups.changes import RemoveRequest, remove_group_members

    request = RemoveRequest(
        group_id=group,
        member_ids=member or [],
        instance_ids=instance_id or [],
        is_all=all_members,
        dry_run=dry_run,
        yes=yes,
        output=output,
    )
    return remove_group_members(cluster, request)


@app.command(
    "simulate",
    epilog="Example: kctl groups simulate --topic orders:4 --topic payments:3 --member c0 "
    "--member c1 --leave c1",
)
def simulate(
    topic: Annotated[
        list[str],
        typer.Option(
            "--topic",
            metavar="TOPIC:COUNT[@RACK+RACK,…]",
            help="Topic with COUNT partitions; racks of the replicas, per partition in turn.",
        ),
    ],
    member: Annotated[
        list[str],
        typer.Option(
            "--member",
            metavar="NAME[=TOPIC,…]",
            help="Member that subscribes to all topics, or to the given ones.",
        ),
    ],
    assignor: Annotated[
        str,
        typer.Option(
            "--assignor", metavar="NAME", help="range, roundrobin, sticky or cooperative-sticky."
        ),
    ] = "range",
    rack: Annotated[
        list[str] | None,
        typer.Option("--rack", metavar="NAME=RACK", help="The rack of a member."),
    ] = None,
    leave: Annotated[
        list[str] | None,
        typer.Option("--leave", metavar="NAME", help="Member that leaves; may be repeated."),
    ] = None,
    join: Annotated[
        list[str] | None,
        typer.Option(
            "--join", metavar="NAME[=TOPIC,…]", help="Member that joins; may be repeated."
        ),
    ] = None,
    output: Output = "table",
) -> int:
    """Show the assignment of an assignor, and which partitions move when members join or leave.

    No cluster is queried: topics and members are given by options. REVOKED counts partitions that
    remaining members revoke in the rebalance: all of them, unless the assignor is cooperative.
    """
    from kctl.commands.groups.simulate import SimulateRequest, simulate

    request = SimulateRequest(
        assignor=assignor,
        topics=topic,
        members=member,
        leaving=leave or [],
        joining=join or [],
        output=output,
        racks=rack or [],
    )
    return simulate(request)
