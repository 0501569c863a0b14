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
    list[int] | None, typer.Argument(metavar="ID...", help="Brokers; all without any.")
]


@app.command("list", epilog="Example: kctl brokers list -o json")
@on_cluster
def list_(
    cluster: ClusterOptions,
    output: Output = "table",
) -> int:
    """List the live brokers, and which of them is the controller.

    A KRaft cluster names any broker as its controller.
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
    """Show brokers: replicas and leaders on them, bytes, disk left, settings that differ.

    Settings, log directories and the version they speak with each other (none since 4.0) are in
    wide, json, ndjson, yaml and csv.
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
            help="The embedded cluster's directory, if not the default one.",
        ),
    ] = None,
    timeout: Annotated[
        float,
        typer.Option("--timeout", min=0.001, metavar="SECONDS", help="Give up after this time."),
    ] = 60.0,
) -> int:
    """Stop a broker of an embedded cluster: its leaders move first, then its process or part ends.

    `kctl cluster restart BROKER` starts it again, and so does a start of the cluster. Kafka's
    protocol can take the leaders from a broker and not end it, and would keep them off it until it
    restarts. So any other broker is stopped where it runs: by its service, or SIGTERM, which moves
    its leaders as well.
    """
    from kctl.commands.cluster.brokers import request_change

    return request_change("stop", broker, data, timeout)


@app.command("drain", epilog="Example: kctl brokers drain 3 --throttle 50MB")
@on_cluster
def drain(
    cluster: ClusterOptions,
    moves: JobOptions,
    broker: Annotated[int, typer.Argument(metavar="BROKER", help="The broker to be emptied.")],
) -> int:
    """Move every replica off a broker, wait, and check that it is empty.

    Ended early, the same command goes on where it was.
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
    old: Annotated[int, typer.Argument(metavar="OLD", help="The broker that goes, dead or alive.")],
    new: Annotated[int, typer.Argument(metavar="NEW", help="The broker that takes its place.")],
) -> int:
    """Give every replica of one broker to another, in its place among the replicas, and wait.

    Ended early, the same command goes on where it was.
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
        bool, typer.Option("--replicas", help="A row for each replica, not each directory.")
    ] = False,
    output: Output = "table",
) -> int:
    """Show the log directories of brokers: replicas, bytes, disk size and what is left of it."""
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
    """Show the APIs and versions that brokers offer, and the version that kctl would use."""
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
            help="Only where NAME or NAME:ATTRIBUTE matches, with * and ?, or contains this.",
        ),
    ] = None,
    output: Output = "table",
) -> int:
    """Show metrics of embedded brokers by the names that those of Kafka have in JMX.

    Partitions, leaders, ISR, logs, directories, the controller, groups and parked requests; counts
    and rates of topics' traffic, requests, errors and changes of ISR; times and sizes of requests,
    times of syncs and of the controller's events. Brokers of Kafka have theirs in JMX alone.
    """
    from kctl.commands.brokers.metrics import MetricsRequest, show_metrics

    return show_metrics(cluster, MetricsRequest(ids or [], match, output))
