"""`kctl demo`: producers and consumers on a temporary or a given cluster."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.connect import ClusterOptions
from kctl.options.cluster import Output, Yes, noun, on_cluster

app = noun("Producers and consumers at work, on a temporary cluster or on any with -b.")


@app.command(
    "produce-consume",
    epilog="Examples: kctl demo produce-consume sync --records 10 · kctl demo produce-consume · "
    "kctl demo produce-consume async -b broker1:9092 -o ndjson",
)
@on_cluster
def produce_consume(
    cluster: ClusterOptions,
    mode: Annotated[
        str,
        typer.Argument(
            metavar="[sync|async]",
            help="Wait for each acknowledgement, or send on and handle it later.",
        ),
    ] = "async",
    records: Annotated[
        int | None,
        typer.Option("--records", min=1, metavar="N", help="Stop after N records."),
    ] = None,
    topic: Annotated[
        str, typer.Option("--topic", metavar="TOPIC", help="Topic, created if missing.")
    ] = "kctl-demo",
    output: Output = "table",
) -> int:
    """Produce records and consume them at the same time; print each record, and finally the rate.

    Runs until Ctrl-C. Without -b, --context and --command-config it starts a temporary embedded
    cluster, which is removed at the end.
    """
    from kctl.commands.demo.produce_consume import ProduceConsumeRequest, run_produce_consume

    return run_produce_consume(cluster, ProduceConsumeRequest(mode, records, topic, output))


@app.command(
    "exactly-once",
    epilog="Examples: kctl demo exactly-once 6 3 50000 · "
    "kctl demo exactly-once 6 3 50000 --kill · kctl demo exactly-once 6 3 50000 -b broker1:9092 -y",
)
@on_cluster
def exactly_once(
    cluster: ClusterOptions,
    partitions: Annotated[
        int, typer.Argument(min=1, max=1000, metavar="PARTITIONS", help="Partitions of each topic.")
    ],
    instances: Annotated[
        int,
        typer.Argument(min=1, max=100, metavar="INSTANCES", help="Processes in the group."),
    ],
    records: Annotated[int, typer.Argument(min=1, metavar="RECORDS", help="Records of the input.")],
    kill: Annotated[
        bool,
        typer.Option(
            "--kill",
            help="Kill instances during the run, and brokers of a temporary cluster.",
        ),
    ] = False,
    prefix: Annotated[
        str,
        typer.Option(
            "--prefix",
            metavar="NAME",
            help="Prefix of topics (NAME-input, NAME-output), group and transactional ids.",
        ),
    ] = "kctl-demo-exactly-once",
    yes: Yes = False,
    output: Output = "table",
) -> int:
    """Copy a topic with several processes, each record exactly once, and check the result.

    Deletes and recreates both topics. Each instance consumes, transforms and produces in
    transactions that include its offsets (KIP-447). The output, read with read_committed, must
    contain every record once, in the order of the input; else the exit code is 4.

    Without -b, --context and --command-config it starts a temporary embedded cluster, with three
    brokers for --kill. The brokers must be 2.5 or newer.
    """
    from kctl.commands.demo.exactly_once import ExactlyOnceRequest, run_exactly_once

    request = ExactlyOnceRequest(partitions, instances, records, kill, prefix, yes, output)
    return run_exactly_once(cluster, request)
