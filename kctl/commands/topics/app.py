"""`kctl topics`: list, describe, create, alter and delete topics, and show their settings."""

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
    typer.Option("--match", metavar="REGEX", help="Select topics whose complete name matches."),
]
_UnderReplicated = Annotated[
    bool, typer.Option("--under-replicated", help="Only with a replica out of sync.")
]
_Unavailable = Annotated[
    bool, typer.Option("--unavailable", help="Only with a partition without a leader.")
]
_Size = Annotated[bool, typer.Option("--size", help="Also request sizes on disk.")]
_Rate = Annotated[bool, typer.Option("--rate", help="Show write rates, sampled over a window.")]
_Configs = Annotated[
    list[str] | None,
    typer.Option("-c", "--config", metavar="KEY=VALUE", help="Topic setting; may be repeated."),
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
        bool, typer.Option("--exclude-internal", help="Leave out internal topics.")
    ] = False,
    under_replicated: _UnderReplicated = False,
    unavailable: _Unavailable = False,
    size: _Size = False,
    rate: _Rate = False,
    rate_window: RateWindow = None,
    output: Output = "table",
) -> int:
    """List topics with partitions, replicas and health."""
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
        bool,
        typer.Option("--under-min-isr", help="Only partitions that currently refuse acks=all."),
    ] = False,
    at_min_isr: Annotated[
        bool,
        typer.Option(
            "--at-min-isr", help="Only partitions that would refuse acks=all with one replica less."
        ),
    ] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Exit code 4 if a filter matches, or a replica is not in sync."
        ),
    ] = False,
    size: _Size = False,
    offsets: Annotated[
        bool, typer.Option("--offsets", help="Also request start and end offsets.")
    ] = False,
    rate: _Rate = False,
    rate_window: RateWindow = None,
    output: Output = "table",
) -> int:
    """Show the partitions of topics: leaders, replicas, in-sync replicas; and settings.

    Tables and CSV have a row per partition; json, ndjson and yaml an object per topic. Settings are
    those that are not defaults.
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
            "-p", "--partitions", min=1, metavar="N", help="Default: the brokers' setting."
        ),
    ] = None,
    replication_factor: Annotated[
        int | None,
        typer.Option(
            "-r",
            "--replication-factor",
            min=1,
            metavar="N",
            help="Default: the brokers' setting.",
        ),
    ] = None,
    assignment: _Assignment = None,
    configs: _Configs = None,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="Accept existing topics.")
    ] = False,
    dry_run: DryRun = False,
    output: Output = "table",
) -> int:
    """Create topics, all with the same options."""
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
            help="New number of partitions; keys change partitions, irreversibly.",
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
        typer.Option(
            "--delete-config", metavar="KEY", help="Reset to the default; may be repeated."
        ),
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    output: Output = "table",
) -> int:
    """Add partitions to topics, after confirmation, or change their settings."""
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
    if_exists: Annotated[bool, typer.Option("--if-exists", help="Accept missing topics.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be deleted; change nothing.")
    ] = False,
    yes: Yes = False,
    output: Output = "table",
) -> int:
    """Delete topics with all their records, after showing them and asking."""
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
    all_: Annotated[bool, typer.Option("--all", help="Include values that are defaults.")] = False,
    doc: Documentation = False,
    output: Output = "table",
) -> int:
    """Show the settings of topics with the source of each value. `kctl configs` changes them."""
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

    New replicas are placed on the least loaded brokers, in different racks. After an interruption
    the same command continues.
    """
    from kctl.commands.topics.replication_factor import set_replication_factor

    return set_replication_factor(cluster, factor, names or [], match, moves.moves)
