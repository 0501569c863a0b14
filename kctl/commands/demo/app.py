"""`kctl demo`: producers and consumers at work, on a cluster of their own or on any other."""

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
            help="Wait for each record's acknowledgement, or have it reported as it comes.",
        ),
    ] = "async",
    records: Annotated[
        int | None,
        typer.Option("--records", min=1, metavar="N", help="End after so many records."),
    ] = None,
    topic: Annotated[
        str, typer.Option("--topic", metavar="TOPIC", help="Created if it is not there.")
    ] = "kctl-demo",
    output: Output = "table",
) -> int:
    """Produce records and consume them at the same time; print each, and at the end the rate.

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
        int, typer.Argument(min=1, max=1000, metavar="PARTITIONS", help="Of each of both topics.")
    ],
    instances: Annotated[
        int,
        typer.Argument(
            min=1, max=100, metavar="INSTANCES", help="Processes that share the partitions."
        ),
    ],
    records: Annotated[
        int, typer.Argument(min=1, metavar="RECORDS", help="Written to the input beforehand.")
    ],
    kill: Annotated[
        bool,
        typer.Option(
            "--kill",
            help="Kill instances on the way and, of the temporary cluster, brokers.",
        ),
    ] = False,
    prefix: Annotated[
        str,
        typer.Option(
            "--prefix",
            metavar="NAME",
            help="Topics are NAME-input and NAME-output; the group and transactional ids begin "
            "with it.",
        ),
    ] = "kctl-demo-exactly-once",
    yes: Yes = False,
    output: Output = "table",
) -> int:
    """Copy a topic by several processes, each record exactly once, and check the result.

    Both topics are created again from nothing. Each instance consumes, transforms and produces in
    transactions that have its offsets (KIP-447). The output is read with read_committed: it must
    have every record once, in the order of the input. Exits with 4 if it has not.

    Without -b, --context and --command-config it starts a temporary embedded cluster, of three
    brokers with --kill. The brokers must be 2.5 or newer.
    """
    from kctl.commands.demo.exactly_once import ExactlyOnceRequest, run_exactly_once

    request = ExactlyOnceRequest(partitions, instances, records, kill, prefix, yes, output)
    return run_exactly_once(cluster, request)
