"""Options common to several measurements of `kctl perf`."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import typer

Topic = Annotated[
    str | None,
    typer.Option("--topic", "-t", metavar="TOPIC", help="Topic; default: a temporary one."),
]
Records = Annotated[
    int, typer.Option("--records", "-n", min=1, metavar="N", help="Number of measured records.")
]
WarmUp = Annotated[
    int,
    typer.Option(
        "--warm-up", min=0, metavar="N", help="Records of the warm-up, which are not measured."
    ),
]
Size = Annotated[
    int, typer.Option("--size", min=0, metavar="BYTES", help="Size of each value in bytes.")
]
Rate = Annotated[
    float | None,
    typer.Option("--rate", min=0.001, metavar="N", help="Maximum records per second."),
]
Keys = Annotated[
    int,
    typer.Option(
        "--keys",
        min=0,
        metavar="N",
        help="Number of keys that select partitions; default: partitions in turn.",
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("-X", metavar="KEY=VALUE", help="Client setting, such as linger.ms=5."),
]


class TopicOptions(NamedTuple):
    """Options of the topic created without --topic; None means the brokers' default."""

    partitions: Annotated[
        int | None,
        typer.Option(
            "-p",
            "--partitions",
            min=1,
            metavar="N",
            help="Partitions of the created topic; default 1.",
        ),
    ] = None
    replication_factor: Annotated[
        int | None,
        typer.Option(
            "-r",
            "--replication-factor",
            min=1,
            metavar="N",
            help="Replication factor of the created topic.",
        ),
    ] = None
    interval: Annotated[
        str,
        typer.Option(
            "--interval", metavar="DURATION", help="Length of an interval; one row of rates each."
        ),
    ] = "1s"


class SendOptions(NamedTuple):
    """Options for sending records; None if an option is not given."""

    acks: Annotated[
        str | None,
        typer.Option("--acks", metavar="ACKS", help="all, 1 (leader) or 0 (no response)."),
    ] = None
    compression: Annotated[
        str | None,
        typer.Option(
            "-z", "--compression", metavar="CODEC", help="none, gzip, snappy, lz4 or zstd."
        ),
    ] = None
    batch_bytes: Annotated[
        int | None,
        typer.Option(
            "--batch-bytes",
            min=0,
            metavar="BYTES",
            help="Maximum batch size before compression; default 1 MiB.",
        ),
    ] = None
    linger_ms: Annotated[
        int | None,
        typer.Option(
            "--linger", min=0, metavar="MS", help="How long a batch waits for more records."
        ),
    ] = None
