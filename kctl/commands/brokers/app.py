"""`kctl brokers`: live brokers, their replicas, settings and API versions."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.connect import ClusterOptions
from kctl.options.cluster import (
    Output,
    noun,
    on_cluster,
)
from kctl.options.moves import JobOptions

app = noun(
    "Brokers: list, describe, drain, replace, shut down, directories, API versions, metrics."
)

_Ids = Annotated[
    list[int] | None, typer.Argument(metavar="ID...", help="Broker ids; default: all brokers.")
]


@app.command("list", epilog="Example: kctl brokers list -o json")
@on_cluster
def list_(
    cluster: ClusterOptions,
    output: Output = "table",
) -> int:
    """List the live brokers, and mark the controller.

    A KRaft cluster names an arbitrary broker as its controller.
    """
    from kctl.commands.brokers.listing import list_brokers

    return list_brokers(cluster, output)


@app.command("describe", epilog="Example: kctl brokers describe 1 -o yaml")
@on_cluster
def describe(
    cluster: ClusterOptions,
    ids: _Ids = None,
    output: Output = "table",
) -> int:
    """Show brokers: replicas, leaders, bytes, free disk space, settings that are not defaults.

    Settings, log directories and the inter.broker.protocol.version (none since 4.0) are in wide,
    json, ndjson, yaml and csv.
    """
    from kctl.commands.brokers.listing import describe_brokers

    options = cluster
    return describe_brokers(options, ids or [], output)


@app.command("shutdown", epilog="Example: kctl brokers shutdown 2")
def shutdown(
    broker: Annotated[int, typer.Argument(metavar="BROKER", help="The broker's id.")],
    data: Annotated[
        str | None,
        typer.Option(
            "--data",
            metavar="DIR",
            help="Directory of the embedded cluster, if not the default.",
        ),
    ] = None,
    timeout: Annotated[
        float,
        typer.Option("--timeout", min=0.001, metavar="SECONDS", help="Give up after this time."),
    ] = 60.0,
) -> int:
    """Stop a broker of an embedded cluster: its leaders move first, then the broker ends.

    `kctl cluster restart BROKER` or a start of the cluster starts it again. Other brokers cannot be
    stopped by Kafka's protocol, which can only move the leaders away: stop them where they run, by
    their service or SIGTERM; both move the leaders first.
    """
    from kctl.commands.cluster.brokers import request_change

    return request_change("stop", broker, data, timeout)


@app.command("drain", epilog="Example: kctl brokers drain 3 --throttle 50MB")
@on_cluster
def drain(
    cluster: ClusterOptions,
    moves: JobOptions,
    broker: Annotated[
        int, typer.Argument(metavar="BROKER", help="Broker to move all replicas off.")
    ],
) -> int:
    """Move every replica off a broker, wait, and check that it is empty.

    After an interruption the same command continues.
    """
    from engine.planner import planner
    from kctl.commands.reassign.jobs import JobRequest, run_job

    request = JobRequest(
        f"drain-{broker}",
        lambda model, constraints: planner.drain(model, [broker], constraints),
        moves.moves,
        emptied=broker,
    )
    return run_job(cluster, request)


@app.command("replace", epilog="Example: kctl brokers replace 3 7 --throttle 50MB")
@on_cluster
def replace(
    cluster: ClusterOptions,
    moves: JobOptions,
    old: Annotated[int, typer.Argument(metavar="OLD", help="Broker to replace, alive or not.")],
    new: Annotated[int, typer.Argument(metavar="NEW", help="Broker that takes its replicas.")],
) -> int:
    """Move every replica of one broker to another, at its position in the replica list, and wait.

    After an interruption the same command continues.
    """
    from engine.planner import planner
    from kctl.commands.reassign.jobs import JobRequest, run_job

    request = JobRequest(
        f"replace-{old}-{new}",
        lambda model, constraints: planner.replace(model, old, new, constraints),
        moves.moves,
        emptied=old,
    )
    return run_job(cluster, request)


@app.command("log-dirs", epilog="Example: kctl brokers log-dirs 1 --topic clicks --replicas")
@on_cluster
def log_dirs(
    cluster: ClusterOptions,
    ids: _Ids = None,
    topics: Annotated[
        list[str] | None,
        typer.Option("--topic", metavar="NAME", help="Count only this topic; may be repeated."),
    ] = None,
    replicas: Annotated[
        bool, typer.Option("--replicas", help="Print a row per replica, not per directory.")
    ] = False,
    output: Output = "table",
) -> int:
    """Show the log directories of brokers: replicas, bytes, disk size and free space."""
    from kctl.commands.brokers.listing import LogDirsRequest, list_log_dirs

    request = LogDirsRequest(ids=ids or [], topics=topics, replicas=replicas, output=output)
    return list_log_dirs(cluster, request)


@app.command("api-versions", epilog="Example: kctl brokers api-versions 1 -o ndjson")
@on_cluster
def api_versions(
    cluster: ClusterOptions,
    ids: _Ids = None,
    output: Output = "table",
) -> int:
    """Show the APIs and versions that brokers support, and the version that kctl uses."""
    from kctl.commands.brokers.listing import list_api_versions

    options = cluster
    return list_api_versions(options, ids or [], output)


@app.command("metrics", epilog="Example: kctl brokers metrics --match UnderReplicated")
@on_cluster
def metrics(
    cluster: ClusterOptions,
    ids: _Ids = None,
    match: Annotated[
        str | None,
        typer.Option(
            "--match",
            metavar="PATTERN",
            help="Show metrics whose NAME or NAME:ATTRIBUTE matches (* and ?) or contains it.",
        ),
    ] = None,
    output: Output = "table",
) -> int:
    """Show metrics of embedded brokers under the names that Kafka's metrics have in JMX.

    Partitions, leaders, ISR, logs, directories, the controller, groups and delayed requests; counts
    and rates of topics' traffic, requests, errors and ISR changes; times and sizes of requests,
    times of flushes and of the controller's events. Kafka's brokers offer theirs by JMX only.
    """
    from kctl.commands.brokers.metrics import MetricsRequest, show_metrics

    return show_metrics(cluster, MetricsRequest(ids or [], match, output))
