"""`kctl produce`: records from stdin."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.commands.cluster_options import (
    TIMEOUT_S,
    Bootstrap,
    CommandConfig,
    Context,
    Timeout,
)
from kctl.connect import ClusterOptions

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command(
    epilog="Examples: echo hello | kctl produce clicks · kctl produce clicks -k : < pairs · "
    "kctl consume a -e -o ndjson | kctl produce b --input ndjson"
)
def produce(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Where the records go.")],
    key_delimiter: Annotated[
        str | None,
        typer.Option(
            "-k",
            "--key-delimiter",
            metavar="TEXT",
            help="What stands between key and value; a line without it has no key.",
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
    compression: Annotated[
        str,
        typer.Option(
            "-z", "--compression", metavar="CODEC", help="none, gzip, snappy, lz4 or zstd."
        ),
    ] = "none",
    acks: Annotated[
        str,
        typer.Option(
            "--acks", metavar="ACKS", help="all (idempotent), 1 (leader) or 0 (no answer)."
        ),
    ] = "all",
    input_: Annotated[
        str,
        typer.Option(
            "--input", metavar="FORMAT", help="lines, or ndjson as `kctl consume -o ndjson` prints."
        ),
    ] = "lines",
    keep_partitions: Annotated[
        bool,
        typer.Option("--keep-partitions", help="With ndjson: to the partitions that it names."),
    ] = False,
    new_timestamps: Annotated[
        bool, typer.Option("--new-timestamps", help="With ndjson: not the times that it names.")
    ] = False,
    output: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FORMAT",
            help="Print a row for each batch stored: table, json, ndjson, yaml or csv.",
        ),
    ] = None,
    bootstrap: Bootstrap = None,
    command_config: CommandConfig = None,
    context: Context = None,
    timeout: Timeout = TIMEOUT_S,
) -> int:
    """Produce records from stdin: a line each, or NDJSON. Stops at the first that fails.

    Ctrl-C ends it once what was read is stored; a second one ends it at once.
    """
    from kctl.commands.produce_work import ProduceRequest, produce_records

    request = ProduceRequest(
        topic=topic,
        key_delimiter=key_delimiter,
        key=key,
        headers=headers or [],
        null=null,
        partition=partition,
        compression=compression,
        acks=acks,
        input=input_,
        keep_partitions=keep_partitions,
        new_timestamps=new_timestamps,
        output=output,
    )
    return produce_records(ClusterOptions(bootstrap, command_config, context, timeout), request)
