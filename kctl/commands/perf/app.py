"""`kctl perf`: rates of producing and consuming, and end-to-end latency."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.commands.perf.options import (
    Keys,
    Rate,
    Records,
    SendOptions,
    Settings,
    Size,
    Topic,
    TopicOptions,
    WarmUp,
)
from kctl.connect import ClusterOptions
from kctl.options.cluster import Output, noun, on_cluster

app = noun("Measure a cluster: producing, consuming, latency from end to end.")


@app.command(
    "produce",
    epilog="Examples: kctl perf produce -n 1000000 --size 100 -p 6 -z lz4 · kctl perf produce "
    "-t orders --rate 5000 --acks all -o json",
)
@on_cluster
def produce(
    cluster: ClusterOptions,
    made: TopicOptions,
    sent: SendOptions,
    topic: Topic = None,
    records: Records = 100_000,
    size: Size = 100,
    rate: Rate = None,
    keys: Keys = 0,
    warm_up: WarmUp = 1000,
    settings: Settings = None,
    output: Output = "table",
) -> int:
    """Measure the rate at which records are stored, with the client of kctl produce.

    The measurement starts after the warm-up, which sends at least one record to each partition, so
    that start-up and connections are not included. With --rate a latency starts when a record is
    due, so that it includes the wait behind a slow response.

    On a terminal, charts show rate and p99 of each --interval during the run.

    Ctrl-C ends it and prints the measurement up to then. Records stay in a topic given by --topic.
    """
    from kctl.commands.perf.measuring import PerfRequest, measure_producing

    request = PerfRequest(topic, records, size, rate, keys, warm_up, settings or [], output)
    return measure_producing(cluster, request, made, sent)


@app.command(
    "consume",
    epilog="Examples: kctl perf consume -t orders -n 1000000 · kctl perf consume --size 1000 -p 3",
)
@on_cluster
def consume(
    cluster: ClusterOptions,
    made: TopicOptions,
    topic: Topic = None,
    start: Annotated[
        str,
        typer.Option("--from", metavar="POINT", help="Start, given as for kctl consume."),
    ] = "start",
    records: Records = 100_000,
    size: Size = 100,
    warm_up: WarmUp = 1000,
    settings: Settings = None,
    output: Output = "table",
) -> int:
    """Measure the rate at which records are read, with the client of kctl consume.

    Without --topic the records and the warm-up records are produced first, which is not measured.
    The measurement starts with the first fetch after the warm-up, which reads an equal share of
    each partition. A latency is the wait for a response.

    On a terminal, charts show rate and p99 of each --interval during the run.
    """
    from kctl.commands.perf.measuring import PerfRequest, measure_consuming

    request = PerfRequest(topic, records, size, None, 0, warm_up, settings or [], output)
    return measure_consuming(cluster, request, made, start)


@app.command(
    "latency",
    epilog="Examples: kctl perf latency -n 1000 · kctl perf latency --rate 200 -p 3 --acks all",
)
@on_cluster
def latency(
    cluster: ClusterOptions,
    made: TopicOptions,
    sent: SendOptions,
    topic: Topic = None,
    records: Records = 1_000,
    size: Size = 100,
    rate: Rate = None,
    keys: Keys = 0,
    warm_up: WarmUp = 100,
    settings: Settings = None,
    output: Output = "table",
) -> int:
    """Measure the time from a producer to a consumer, both in this process.

    Without --rate a record is sent when the previous one has arrived. With --rate records are sent
    when they are due, and a latency starts then.

    On a terminal, charts show rate and p99 of each --interval during the run.
    """
    from kctl.commands.perf.measuring import PerfRequest, measure_latency

    request = PerfRequest(topic, records, size, rate, keys, warm_up, settings or [], output)
    return measure_latency(cluster, request, made, sent)
