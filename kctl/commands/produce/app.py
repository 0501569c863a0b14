"""`kctl produce`: records from stdin or files."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.connect import ClusterOptions, settings_in_file
from kctl.options.cluster import (
    FORMATS_HELP,
    TIMEOUT_S,
    Bootstrap,
    CommandConfig,
    Context,
    Timeout,
    one_command,
)

app = one_command()


@app.command(
    epilog="Examples: echo hello | kctl produce clicks · kctl produce clicks -k '\\t' < pairs · "
    "kctl consume a -e -o ndjson | kctl produce b --input ndjson · "
    "kctl produce images --file logo.png --key logo · "
    "seq 1000 | kctl produce t --transactional-id loader --per-transaction 100"
)
def produce(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Target topic.")],
    key_delimiter: Annotated[
        str | None,
        typer.Option(
            "-k",
            "--key-delimiter",
            metavar="TEXT",
            help="Text between key and value (\\t \\n \\r \\0 \\\\ \\xNN are read); a line "
            "without it has no key.",
        ),
    ] = None,
    key: Annotated[
        str | None, typer.Option("--key", metavar="TEXT", help="Key of all records.")
    ] = None,
    headers: Annotated[
        list[str] | None,
        typer.Option(
            "-H", "--header", metavar="NAME=VALUE", help="Header of every record; may be repeated."
        ),
    ] = None,
    null: Annotated[
        str | None,
        typer.Option("--null", metavar="TEXT", help="Send a key or value with this text as null."),
    ] = None,
    partition: Annotated[
        int | None,
        typer.Option(
            "-p",
            "--partition",
            min=0,
            metavar="NUMBER",
            help="Partition; default: by key, and without a key one partition per batch, as in "
            "Java's producer.",
        ),
    ] = None,
    input_: Annotated[
        str,
        typer.Option(
            "--input",
            metavar="FORMAT",
            help="lines, or ndjson as printed by `kctl consume` and `kctl dump-log`.",
        ),
    ] = "lines",
    value_json: Annotated[
        bool,
        typer.Option("--value-json", help="Check that each line, which is the value, is JSON."),
    ] = False,
    files: Annotated[
        list[str] | None,
        typer.Option(
            "--file", metavar="PATH", help="File that is one record, - for stdin; may be repeated."
        ),
    ] = None,
    from_line: Annotated[
        int,
        typer.Option(
            "--from-line",
            min=1,
            metavar="NUMBER",
            help="First line to send; earlier lines are skipped.",
        ),
    ] = 1,
    keep_partitions: Annotated[
        bool,
        typer.Option("--keep-partitions", help="With ndjson: keep the partitions of the input."),
    ] = False,
    new_timestamps: Annotated[
        bool,
        typer.Option("--new-timestamps", help="With ndjson: ignore the timestamps of the input."),
    ] = False,
    compression: Annotated[
        str | None,
        typer.Option(
            "-z", "--compression", metavar="CODEC", help="none, gzip, snappy, lz4 or zstd."
        ),
    ] = None,
    acks: Annotated[
        str | None,
        typer.Option("--acks", metavar="ACKS", help="all, 1 (leader) or 0 (no response)."),
    ] = None,
    no_idempotence: Annotated[
        bool,
        typer.Option(
            "--no-idempotence",
            help="Send without a producer id; requests without a response are not retried.",
        ),
    ] = False,
    batch_bytes: Annotated[
        int | None,
        typer.Option(
            "--batch-bytes",
            min=0,
            metavar="BYTES",
            help="Maximum batch size before compression; default 1 MiB, or the topic's limit.",
        ),
    ] = None,
    linger_ms: Annotated[
        int | None,
        typer.Option(
            "--linger",
            min=0,
            metavar="MS",
            help="Time that a batch waits for more records; default 50.",
        ),
    ] = None,
    transactional_id: Annotated[
        str | None,
        typer.Option(
            "--transactional-id",
            metavar="ID",
            help="Send in transactions of this id, fencing other producers that use it.",
        ),
    ] = None,
    per_transaction: Annotated[
        int | None,
        typer.Option(
            "--per-transaction",
            min=1,
            metavar="NUMBER",
            help="Records per transaction; default: the complete input.",
        ),
    ] = None,
    abort_every: Annotated[
        int | None,
        typer.Option(
            "--abort-every",
            min=1,
            metavar="NUMBER",
            help="Abort every NUMBER-th transaction, for tests.",
        ),
    ] = None,
    transaction_timeout_ms: Annotated[
        int | None,
        typer.Option(
            "--transaction-timeout",
            min=1,
            metavar="MS",
            help="Time after which the cluster aborts an open transaction; default 60000.",
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FORMAT",
            help=f"Print a row for each stored batch: {FORMATS_HELP}",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("-X", metavar="KEY=VALUE", help="Client setting, such as linger.ms=5."),
    ] = None,
    bootstrap: Bootstrap = None,
    command_config: CommandConfig = None,
    context: Context = None,
    timeout: Timeout = TIMEOUT_S,
) -> int:
    """Produce records from stdin, one per line or NDJSON; or from files, one record each.

    While a broker is unavailable, sending is retried until --timeout. A batch that is too large for
    the topic is split. Stops at the first record that fails, and prints the --from-line to continue
    with.

    With --transactional-id records are counted once their transaction is committed; an error or
    Ctrl-C aborts the open transaction.

    Ctrl-C stops once the records read up to then are stored; a second one stops at once.
    """
    from kctl.client_overrides import parse_client_overrides
    from kctl.commands.produce.producing import produce_records
    from kctl.commands.produce.request import PRODUCER_KEYS, ProduceRequest

    options = ClusterOptions(bootstrap, command_config, context, timeout)
    overrides = parse_client_overrides(settings or [], PRODUCER_KEYS).above(
        settings_in_file(options, PRODUCER_KEYS)
    )
    request = ProduceRequest(
        topic=topic,
        key_delimiter=key_delimiter,
        key=key,
        headers=tuple(headers or ()),
        null=null,
        partition=partition,
        compression=compression,
        acks=acks,
        input=input_,
        value_json=value_json,
        files=tuple(files or ()),
        from_line=from_line,
        keep_partitions=keep_partitions,
        new_timestamps=new_timestamps,
        batch_bytes=batch_bytes,
        linger_ms=linger_ms,
        no_idempotence=no_idempotence,
        output=output,
        transactional_id=transactional_id,
        per_transaction=per_transaction,
        abort_every=abort_every,
        transaction_timeout_ms=transaction_timeout_ms,
        settings=overrides.own,
    )
    timeout_s = overrides.seconds("delivery.timeout.ms", timeout)
    options = options._replace(timeout_s=timeout_s, overrides=overrides.shared)
    return produce_records(options, request)
