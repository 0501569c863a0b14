"""The options of `kctl perf` that several measurements have."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import typer

Topic = Annotated[
    str | None,
    typer.Option(
        "--topic", "-t", metavar="TOPIC", help="Else one is made for the run, and deleted."
    ),
]
Records = Annotated[
    int, typer.Option("--records", "-n", min=1, metavar="N", help="How many records count.")
]
WarmUp = Annotated[
    int,
    typer.Option(
        "--warm-up", min=0, metavar="N", help="Records before, which do not count; see below."
    ),
]
Size = Annotated[int, typer.Option("--size", min=0, metavar="BYTES", help="Bytes of each value.")]
Rate = Annotated[
    float | None,
    typer.Option("--rate", min=0.001, metavar="N", help="Records a second at most."),
]
Keys = Annotated[
    int,
    typer.Option(
        "--keys",
        min=0,
        metavar="N",
        help="So many keys, by which partitions are chosen; else in turn.",
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("-X", metavar="KEY=VALUE", help="A client setting, as linger.ms=5."),
]


class TopicOptions(NamedTuple):
    """The topic that is made where none is named; None leaves it to the brokers."""

    partitions: Annotated[
        int | None,
        typer.Option(
            "-p",
            "--partitions",
            min=1,
            metavar="N",
            help="Of the topic that is made; 1 without it.",
        ),
    ] = None
    replication_factor: Annotated[
        int | None,
        typer.Option(
            "-r", "--replication-factor", min=1, metavar="N", help="Of the topic that is made."
        ),
    ] = None
    interval: Annotated[
        str,
        typer.Option("--interval", metavar="DURATION", help="A row of rates for each so long."),
    ] = "1s"


class SendOptions(NamedTuple):
    """Options for sending records; None where an option was not given."""

    acks: Annotated[
        str | None, typer.Option("--acks", metavar="ACKS", help="all, 1 (leader) or 0 (no answer).")
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
            "--batch-bytes", min=0, metavar="BYTES", help="Largest batch before compression; 1 MiB."
        ),
    ] = None
    linger_ms: Annotated[
        int | None,
        typer.Option(
            "--linger", min=0, metavar="MS", help="How long a batch waits for more records."
        ),
    ] = None
