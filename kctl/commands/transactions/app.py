"""`kctl transactions`: open transactions, and those that block readers of committed records."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.connect import ClusterOptions
from kctl.numbers import INT64_MAX
from kctl.options.cluster import (
    TIMEOUT_S,
    CommandConfig,
    DryRun,
    Output,
    Settings,
    Timeout,
    Yes,
    noun,
    on_cluster,
    with_settings,
)

app = noun("Transactions: list, describe, producers; find hanging ones and abort them.")

_Topics = Annotated[
    list[str],
    typer.Argument(metavar="TOPIC[:0,4-6]...", help="Topics, or some of their partitions."),
]


@app.command(
    "list",
    epilog="Examples: kctl transactions list · kctl transactions list --state Ongoing · "
    "kctl transactions list --longer-than 10m",
)
@on_cluster
def list_(
    cluster: ClusterOptions,
    state: Annotated[
        list[str] | None,
        typer.Option("--state", metavar="STATE", help="Only in this state; may be repeated."),
    ] = None,
    longer_than: Annotated[
        str | None,
        typer.Option(
            "--longer-than",
            metavar="DURATION",
            help="Only those begun longer ago, as 10m; brokers before 3.8 refuse it.",
        ),
    ] = None,
    output: Output = "table",
) -> int:
    """List the transactional ids of all coordinators with their states."""
    from kctl.commands.transactions.listing import print_transactions

    return print_transactions(cluster, state or [], longer_than, output)


@app.command("describe", epilog="Example: kctl transactions describe payments-1")
@on_cluster
def describe(
    cluster: ClusterOptions,
    transactional_ids: Annotated[
        list[str], typer.Argument(metavar="ID...", help="Transactional ids.")
    ],
    output: Output = "table",
) -> int:
    """Show transactional ids: state, producer, since when, time-out and partitions."""
    from kctl.commands.transactions.listing import describe

    return describe(cluster, transactional_ids, output)


@app.command("producers", epilog="Example: kctl transactions producers payments:0")
@on_cluster
def producers(
    cluster: ClusterOptions,
    topics: _Topics,
    open_: Annotated[
        bool, typer.Option("--open", help="Only those with a transaction open.")
    ] = False,
    output: Output = "table",
) -> int:
    """Show who writes to partitions, as their leaders know, and where open transactions begin.

    The first open transaction of a partition holds up readers of committed records: they read up to
    its start.
    """
    from kctl.commands.transactions.listing import show_producers

    return show_producers(cluster, topics, is_open=open_, output=output)


@app.command(
    "find-hanging",
    epilog="Examples: kctl transactions find-hanging · kctl transactions find-hanging payments",
)
@on_cluster
def find_hanging(
    cluster: ClusterOptions,
    topics: Annotated[
        list[str] | None,
        typer.Argument(metavar="TOPIC[:0,4-6]...", help="Topics, or some partitions; all."),
    ] = None,
    idle_for: Annotated[
        str,
        typer.Option(
            "--idle-for",
            metavar="DURATION",
            help="How long its producer wrote nothing; transaction.max.timeout.ms of the brokers.",
        ),
    ] = "15m",
    output: Output = "table",
) -> int:
    """Find transactions that hold up partitions and that no coordinator will end.

    A broker that was not asked when their records came can leave such behind; `abort` ends them.
    Exits with 4 if there are any.
    """
    from kctl.commands.transactions.hanging import find

    return find(cluster, topics or [], idle_for, output)


@app.command(
    "abort", epilog="Example: kctl transactions abort payments:3 --start-offset 1200 --dry-run"
)
@on_cluster
def abort(
    cluster: ClusterOptions,
    partition: Annotated[
        str, typer.Argument(metavar="TOPIC:PARTITION", help="Where it holds up readers.")
    ],
    start_offset: Annotated[
        int,
        typer.Option(
            "--start-offset",
            min=0,
            max=INT64_MAX,
            metavar="OFFSET",
            help="Where it begins, as find-hanging shows.",
        ),
    ],
    dry_run: DryRun = False,
    yes: Yes = False,
    output: Output = "table",
) -> int:
    """Abort a transaction in one partition, without its coordinator.

    Its records in this partition are lost to readers of committed records. What a coordinator has
    open is left to it: wait for its time-out, or have its producer begin again.
    """
    from kctl.commands.transactions.hanging import AbortRequest, abort

    request = AbortRequest(partition, start_offset, dry_run, yes, output)
    return abort(cluster, request)


@app.command(
    "forge-hanging",
    epilog="Example: kctl transactions forge-hanging payments:0 --age 1h",
)
def forge_hanging(
    partition: Annotated[
        str, typer.Argument(metavar="TOPIC:PARTITION", help="Where it is to hang.")
    ],
    transactional_id: Annotated[
        str, typer.Option("--transactional-id", metavar="ID", help="Of its producer.")
    ] = "forged",
    records: Annotated[
        int, typer.Option("--records", min=1, max=100_000, metavar="N", help="How many it has.")
    ] = 1,
    age: Annotated[
        str,
        typer.Option(
            "--age", metavar="DURATION", help="The age of its records, by their timestamps."
        ),
    ] = "1h",
    data: Annotated[
        str | None,
        typer.Option("--data", metavar="DIR", help="The embedded cluster's data directory."),
    ] = None,
    command_config: CommandConfig = None,
    timeout: Timeout = TIMEOUT_S,
    settings: Settings = None,
    output: Output = "table",
) -> int:
    """Leave a transaction that hangs, for rehearsals; only on the embedded cluster.

    A producer commits a transaction, and then writes once more as if it were open: so they came to
    be before brokers asked the coordinator (KIP-890). Meanwhile that check is off.
    """
    from kctl.commands.transactions.forging import ForgeRequest, forge

    request = ForgeRequest(partition, transactional_id, records, age, data, output)
    cluster = ClusterOptions(command_config=command_config, timeout_s=timeout)
    return forge(with_settings(cluster, settings), request)
