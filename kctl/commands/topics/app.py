"""`kctl topics`: list, describe, create, alter, delete, and show settings."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.connect import ClusterOptions
from kctl.options.cluster import (
    Documentation,
    DryRun,
    Output,
    Yes,
    noun,
    on_cluster,
)
from kctl.options.moves import JobOptions
from kctl.options.rates import RateWindow

app = noun("Topics: list, describe, create, alter, delete.")

_Names = Annotated[list[str] | None, typer.Argument(metavar="TOPIC...", help="Names of topics.")]
_Match = Annotated[
    str | None,
    typer.Option("--match", metavar="REGEX", help="Choose topics whose whole name matches."),
]
_UnderReplicated = Annotated[
    bool, typer.Option("--under-replicated", help="Only where a replica is out of sync.")
]
_Unavailable = Annotated[bool, typer.Option("--unavailable", help="Only what has no leader.")]
_Size = Annotated[bool, typer.Option("--size", help="Ask all brokers for sizes on disk, too.")]
_Rate = Annotated[
    bool, typer.Option("--rate", help="How fast producers write to it, sampled over a window.")
]
_Configs = Annotated[
    list[str] | None,
    typer.Option("-c", "--config", metavar="KEY=VALUE", help="A setting; may be repeated."),
]
_Assignment = Annotated[
    str | None,
    typer.Option(
        "--replica-assignment",
        metavar="BROKERS",
        help="Brokers of each partition, the preferred leader first: 1:2,2:3,3:1.",
    ),
]


@app.command(
    "list",
    epilog="Examples: kctl topics list -b localhost:9092 · kctl topics list --match 'app-.*' "
    "--size -o json",
)
@on_cluster
def list_(
    cluster: ClusterOptions,
    names: _Names = None,
    match: _Match = None,
    exclude_internal: Annotated[
        bool, typer.Option("--exclude-internal", help="Leave out Kafka's own topics.")
    ] = False,
    under_replicated: _UnderReplicated = False,
    unavailable: _Unavailable = False,
    size: _Size = False,
    rate: _Rate = False,
    rate_window: RateWindow = None,
    output: Output = "table",
) -> int:
    """List topics with their partitions, replicas and health."""
    from kctl.commands.topics.listing import ListRequest, RateChoice, list_topics

    request = ListRequest(
        names=names or [],
        match=match,
        exclude_internal=exclude_internal,
        under_replicated=under_replicated,
        unavailable=unavailable,
        size=size,
        rates=RateChoice(rate, rate_window),
        output=output,
    )
    return list_topics(cluster, request)


@app.command(
    "describe",
    epilog="Examples: kctl topics describe clicks · kctl topics describe "
    "--under-replicated --check",
)
@on_cluster
def describe(
    cluster: ClusterOptions,
    names: _Names = None,
    match: _Match = None,
    under_replicated: _UnderReplicated = False,
    unavailable: _Unavailable = False,
    under_min_isr: Annotated[
        bool, typer.Option("--under-min-isr", help="Only what refuses acks=all now.")
    ] = False,
    at_min_isr: Annotated[
        bool,
        typer.Option("--at-min-isr", help="Only what would refuse acks=all with one replica less."),
    ] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Exit code 4 if one of these is found, or a replica is missing."
        ),
    ] = False,
    size: _Size = False,
    offsets: Annotated[
        bool, typer.Option("--offsets", help="Ask the leaders for start and end offsets, too.")
    ] = False,
    rate: _Rate = False,
    rate_window: RateWindow = None,
    output: Output = "table",
) -> int:
    """Show the partitions of topics: leaders, replicas, in-sync sets, settings that differ.

    Tables and CSV have a row per partition; json, ndjson and yaml an object per topic.
    """
    from kctl.commands.topics.listing import DescribeRequest, RateChoice, describe_topics

    request = DescribeRequest(
        names=names or [],
        match=match,
        under_replicated=under_replicated,
        unavailable=unavailable,
        under_min_isr=under_min_isr,
        at_min_isr=at_min_isr,
        check=check,
        size=size,
        offsets=offsets,
        rates=RateChoice(rate, rate_window),
        output=output,
    )
    return describe_topics(cluster, request)


@app.command(
    "create", epilog="Example: kctl topics create clicks -p 12 -r 3 -c retention.ms=86400000"
)
@on_cluster
def create(
    cluster: ClusterOptions,
    names: Annotated[list[str], typer.Argument(metavar="TOPIC...", help="Names of topics.")],
    partitions: Annotated[
        int | None,
        typer.Option(
            "-p", "--partitions", min=1, metavar="N", help="Else the brokers' own default."
        ),
    ] = None,
    replication_factor: Annotated[
        int | None,
        typer.Option(
            "-r",
            "--replication-factor",
            min=1,
            metavar="N",
            help="Else the brokers' own default.",
        ),
    ] = None,
    assignment: _Assignment = None,
    configs: _Configs = None,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="A topic that is there is no failure.")
    ] = False,
    dry_run: DryRun = False,
    output: Output = "table",
) -> int:
    """Create topics, all alike."""
    from kctl.commands.topics.changes import CreateRequest, create_topics

    request = CreateRequest(
        names=names,
        partitions=partitions,
        replication_factor=replication_factor,
        assignment=assignment,
        configs=configs or [],
        if_not_exists=if_not_exists,
        dry_run=dry_run,
        output=output,
    )
    return create_topics(cluster, request)


@app.command("alter", epilog="Example: kctl topics alter clicks --partitions 24 --dry-run")
@on_cluster
def alter(
    cluster: ClusterOptions,
    names: _Names = None,
    match: _Match = None,
    partitions: Annotated[
        int | None,
        typer.Option(
            "-p",
            "--partitions",
            min=1,
            metavar="N",
            help="Grow to so many: keys move, no way back.",
        ),
    ] = None,
    assignment: Annotated[
        str | None,
        typer.Option(
            "--replica-assignment",
            metavar="BROKERS",
            help="Brokers of each added partition: 1:2,2:3.",
        ),
    ] = None,
    configs: _Configs = None,
    delete_configs: Annotated[
        list[str] | None,
        typer.Option("--delete-config", metavar="KEY", help="Back to the default; repeatable."),
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    output: Output = "table",
) -> int:
    """Add partitions to topics, or change their settings. Asks before partitions are added."""
    from kctl.commands.topics.changes import AlterRequest, alter_topics

    request = AlterRequest(
        names=names or [],
        match=match,
        partitions=partitions,
        assignment=assignment,
        configs=configs or [],
        delete_configs=delete_configs or [],
        dry_run=dry_run,
        yes=yes,
        output=output,
    )
    return alter_topics(cluster, request)


@app.command("delete", epilog="Example: kctl topics delete --match 'tmp-.*' --dry-run")
@on_cluster
def delete(
    cluster: ClusterOptions,
    names: _Names = None,
    match: _Match = None,
    if_exists: Annotated[
        bool, typer.Option("--if-exists", help="A topic that is not there is no failure.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be deleted; change nothing.")
    ] = False,
    yes: Yes = False,
    output: Output = "table",
) -> int:
    """Delete topics with all their records. Shows what is lost and asks first."""
    from kctl.commands.topics.changes import DeleteRequest, delete_topics

    request = DeleteRequest(
        names=names or [],
        match=match,
        if_exists=if_exists,
        dry_run=dry_run,
        yes=yes,
        output=output,
    )
    return delete_topics(cluster, request)


@app.command("configs", epilog="Example: kctl topics configs clicks --all -o wide")
@on_cluster
def configs(
    cluster: ClusterOptions,
    names: _Names = None,
    match: _Match = None,
    all_: Annotated[bool, typer.Option("--all", help="Also what is at its default.")] = False,
    doc: Documentation = False,
    output: Output = "table",
) -> int:
    """Show the settings of topics and where each value comes from. `kctl configs` changes them."""
    from kctl.commands.configs.settings import describe_topic_configs

    options = cluster
    return describe_topic_configs(options, names or [], match, all_=all_, doc=doc, output=output)


@app.command("set-rf", epilog="Example: kctl topics set-rf 3 clicks orders --throttle 50MB")
@on_cluster
def set_rf(
    cluster: ClusterOptions,
    moves: JobOptions,
    factor: Annotated[int, typer.Argument(metavar="N", min=1, help="Replicas of each partition.")],
    names: _Names = None,
    match: _Match = None,
) -> int:
    """Add or remove replicas of topics until each partition has N, and wait.

    New replicas go where there are fewest, racks apart; ended early, the same command goes on.
    """
    from kctl.commands.topics.replication_factor import set_factor

    return set_factor(cluster, factor, names or [], match, moves.moves)
