"""`kctl produce`: records from stdin."""

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
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Where the records go.")],
    key_delimiter: Annotated[
        str | None,
        typer.Option(
            "-k",
            "--key-delimiter",
            metavar="TEXT",
            help="What stands between key and value (\\t \\n \\r \\0 \\\\ \\xNN are read); a line "
            "without it has no key.",
        ),
    ] = None,
    key: Annotated[
        str | None, typer.Option("--key", metavar="TEXT", help="One key for all records.")
    ] = None,
    headers: Annotated[
        list[str] | None,
        typer.Option("-H", "--header", metavar="NAME=VALUE", help="A header of every record."),
    ] = None,
    null: Annotated[
        str | None,
        typer.Option("--null", metavar="TEXT", help="A key or value of this text becomes null."),
    ] = None,
    partition: Annotated[
        int | None,
        typer.Option(
            "-p",
            "--partition",
            min=0,
            metavar="NUMBER",
            help="Else by the key, as Java's producer does.",
        ),
    ] = None,
    input_: Annotated[
        str,
        typer.Option(
            "--input",
            metavar="FORMAT",
            help="lines, or ndjson as `kctl consume` and `kctl dump-log` print with -o ndjson.",
        ),
    ] = "lines",
    value_json: Annotated[
        bool,
        typer.Option("--value-json", help="Each line is a JSON document, and is the value."),
    ] = False,
    files: Annotated[
        list[str] | None,
        typer.Option("--file", metavar="PATH", help="Each file is one record; - is stdin."),
    ] = None,
    from_line: Annotated[
        int,
        typer.Option(
            "--from-line", min=1, metavar="NUMBER", help="Pass over the lines before this one."
        ),
    ] = 1,
    keep_partitions: Annotated[
        bool,
        typer.Option("--keep-partitions", help="With ndjson: to the partitions that it names."),
    ] = False,
    new_timestamps: Annotated[
        bool, typer.Option("--new-timestamps", help="With ndjson: not the times that it names.")
    ] = False,
    compression: Annotated[
        str | None,
        typer.Option(
            "-z", "--compression", metavar="CODEC", help="none, gzip, snappy, lz4 or zstd."
        ),
    ] = None,
    acks: Annotated[
        str | None,
        typer.Option("--acks", metavar="ACKS", help="all, 1 (leader) or 0 (no answer)."),
    ] = None,
    no_idempotence: Annotated[
        bool,
        typer.Option(
            "--no-idempotence",
            help="Without a producer id; what may be stored is then not sent again.",
        ),
    ] = False,
    batch_bytes: Annotated[
        int | None,
        typer.Option(
            "--batch-bytes",
            min=0,
            metavar="BYTES",
            help="Largest batch before compression; 1 MiB, and less where the topic takes less.",
        ),
    ] = None,
    linger_ms: Annotated[
        int | None,
        typer.Option(
            "--linger", min=0, metavar="MS", help="How long a batch waits for more records; 50."
        ),
    ] = None,
    transactional_id: Annotated[
        str | None,
        typer.Option(
            "--transactional-id",
            metavar="ID",
            help="In transactions of this id; another producer that uses it is fenced.",
        ),
    ] = None,
    per_transaction: Annotated[
        int | None,
        typer.Option(
            "--per-transaction",
            min=1,
            metavar="NUMBER",
            help="So many records a transaction; else all of the input is one.",
        ),
    ] = None,
    abort_every: Annotated[
        int | None,
        typer.Option(
            "--abort-every",
            min=1,
            metavar="NUMBER",
            help="Abort every so many-th transaction, for rehearsals.",
        ),
    ] = None,
    transaction_timeout_ms: Annotated[
        int | None,
        typer.Option(
            "--transaction-timeout",
            min=1,
            metavar="MS",
            help="After how long the cluster aborts an open transaction; 60000.",
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FORMAT",
            help=f"Print a row for each batch stored: {FORMATS_HELP}",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("-X", metavar="KEY=VALUE", help="A client setting, as linger.ms=5."),
    ] = None,
    bootstrap: Bootstrap = None,
    command_config: CommandConfig = None,
    context: Context = None,
    timeout: Timeout = TIMEOUT_S,
) -> int:
    """Produce records from stdin: a line each, or NDJSON; or from files, one each.

    A broker that goes away is waited for until --timeout; batches that are too large for the topic
    are split. Stops at the first record that fails and shows the --from-line to go on with.

    With --transactional-id records are counted once their transaction is committed; what is open at
    an error or Ctrl-C is aborted.

    Ctrl-C ends it once what was read is stored; a second one ends it at once.
    """
    from kctl.client_overrides import client_overrides
    from kctl.commands.produce.producing import produce_records
    from kctl.commands.produce.request import PRODUCER_KEYS, ProduceRequest

    options = ClusterOptions(bootstrap, command_config, context, timeout)
    overrides = client_overrides(settings or [], PRODUCER_KEYS).above(
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
