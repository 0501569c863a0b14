"""`kctl transactions`: open and hanging transactions."""

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
        typer.Option("--state", metavar="STATE", help="Only ids in this state; may be repeated."),
    ] = None,
    longer_than: Annotated[
        str | None,
        typer.Option(
            "--longer-than",
            metavar="DURATION",
            help="Only transactions open for longer, such as 10m; needs Kafka 3.8.",
        ),
    ] = None,
    output: Output = "table",
) -> int:
    """List the transactional ids of all coordinators with their states."""
    from kctl.commands.transactions.listing import print_transactions

    return print_transactions(cluster, state or [], longer_than, output)


@app.command("describe", epilog="Example: kctl transactions describe payments-1")
@on_cluster
def describe_transactions(
    cluster: ClusterOptions,
    transactional_ids: Annotated[
        list[str], typer.Argument(metavar="ID...", help="Transactional ids.")
    ],
    output: Output = "table",
) -> int:
    """Show transactional ids: state, producer, start time, time-out and partitions."""
    from kctl.commands.transactions.listing import describe_transactions

    return describe_transactions(cluster, transactional_ids, output)


@app.command("producers", epilog="Example: kctl transactions producers payments:0")
@on_cluster
def producers(
    cluster: ClusterOptions,
    topics: _Topics,
    open_: Annotated[
        bool, typer.Option("--open", help="Only producers with an open transaction.")
    ] = False,
    output: Output = "table",
) -> int:
    """Show the producers of partitions known to their leaders, and where open transactions start.

    The first open transaction of a partition is the last stable offset: read_committed consumers
    read up to its start.
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
        typer.Argument(
            metavar="TOPIC[:0,4-6]...", help="Topics, or some partitions; default: all."
        ),
    ] = None,
    idle_for: Annotated[
        str,
        typer.Option(
            "--idle-for",
            metavar="DURATION",
            help="Minimum time without writes, at least the brokers' transaction.max.timeout.ms.",
        ),
    ] = "15m",
    output: Output = "table",
) -> int:
    """Find transactions that block read_committed consumers and that no coordinator will end.

    Brokers that do not verify transactions can leave them behind; `abort` ends them. Exit code 4 if
    there are any.
    """
    from kctl.commands.transactions.hanging import print_hanging

    return print_hanging(cluster, topics or [], idle_for, output)


@app.command(
    "abort", epilog="Example: kctl transactions abort payments:3 --start-offset 1200 --dry-run"
)
@on_cluster
def abort_hanging(
    cluster: ClusterOptions,
    partition: Annotated[
        str, typer.Argument(metavar="TOPIC:PARTITION", help="Partition of the transaction.")
    ],
    start_offset: Annotated[
        int,
        typer.Option(
            "--start-offset",
            min=0,
            max=INT64_MAX,
            metavar="OFFSET",
            help="First offset of the transaction, as shown by find-hanging.",
        ),
    ],
    dry_run: DryRun = False,
    yes: Yes = False,
    output: Output = "table",
) -> int:
    """Abort a hanging transaction in one partition, without its coordinator.

    Its records in this partition are lost for read_committed consumers. A transaction that is open
    at its coordinator is refused: wait for its time-out, or restart its producer.
    """
    from kctl.commands.transactions.hanging import AbortRequest, abort_hanging

    request = AbortRequest(partition, start_offset, dry_run, yes, output)
    return abort_hanging(cluster, request)


@app.command(
    "forge-hanging",
    epilog="Example: kctl transactions forge-hanging payments:0 --age 1h",
)
def forge_hanging(
    partition: Annotated[
        str, typer.Argument(metavar="TOPIC:PARTITION", help="Partition of the transaction.")
    ],
    transactional_id: Annotated[
        str,
        typer.Option("--transactional-id", metavar="ID", help="Transactional id of its producer."),
    ] = "forged",
    records: Annotated[
        int,
        typer.Option("--records", min=1, max=100_000, metavar="N", help="Number of its records."),
    ] = 1,
    age: Annotated[
        str,
        typer.Option("--age", metavar="DURATION", help="Age of its records by timestamp."),
    ] = "1h",
    data: Annotated[
        str | None,
        typer.Option("--data", metavar="DIR", help="Directory of the embedded cluster."),
    ] = None,
    command_config: CommandConfig = None,
    timeout: Timeout = TIMEOUT_S,
    settings: Settings = None,
    output: Output = "table",
) -> int:
    """Create a hanging transaction for tests; only on the embedded cluster.

    A producer commits a transaction, then writes another record as if it were open. This is how
    hanging transactions occurred before brokers verified them with the coordinator (KIP-890); the
    verification is switched off during the command.
    """
    from kctl.commands.transactions.forging import ForgeRequest, create_hanging

    request = ForgeRequest(partition, transactional_id, records, age, data, output)
    cluster = ClusterOptions(command_config=command_config, timeout_s=timeout)
    return create_hanging(with_settings(cluster, settings), request)
