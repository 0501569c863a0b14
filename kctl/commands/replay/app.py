"""`kctl replay`: send the records of copied logs to a cluster at their original pace."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.connect import ClusterOptions
from kctl.options.cluster import (
    TIMEOUT_S,
    Bootstrap,
    CommandConfig,
    Context,
    Settings,
    Timeout,
    one_command,
    with_settings,
)

app = one_command()


@app.command(
    epilog="Examples: kctl replay /copy/data --topic orders --to orders-again --speed 10x · "
    "kctl replay /copy/data/orders-0 --to load --speed max --from -1h"
)
def replay(
    path: Annotated[
        str, typer.Argument(metavar="LOGDIR", help="Log directory or partition directory.")
    ],
    to: Annotated[str, typer.Option("--to", metavar="TOPIC", help="Target topic.")],
    topic: Annotated[
        str | None,
        typer.Option(
            "--topic", metavar="TOPIC", help="Source topic, if the directory has several."
        ),
    ] = None,
    partition: Annotated[
        int | None,
        typer.Option(
            "-p",
            "--partition",
            min=0,
            metavar="NUMBER",
            help="Target partition of all records; default: the source's number.",
        ),
    ] = None,
    speed: Annotated[
        str,
        typer.Option(
            "--speed",
            metavar="FACTOR",
            help="Pace relative to the original: 1x, 10x, 0.5x, or max.",
        ),
    ] = "1x",
    start: Annotated[
        str | None,
        typer.Option("--from", metavar="POINT", help="First offset or time: 12, -1h, 2026-01-31."),
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="POINT", help="End offset or time, exclusive.")
    ] = None,
    max_records: Annotated[
        int | None,
        typer.Option("--max-records", min=0, metavar="N", help="Maximum number of records."),
    ] = None,
    new_timestamps: Annotated[
        bool,
        typer.Option(
            "--new-timestamps", help="Use current timestamps instead of the original ones."
        ),
    ] = False,
    source_headers: Annotated[
        bool,
        typer.Option(
            "--source-headers/--no-source-headers",
            help="Add headers with the origin of each record: replay.topic, replay.partition, "
            "replay.offset.",
        ),
    ] = True,
    bootstrap_server: Bootstrap = None,
    command_config: CommandConfig = None,
    context: Context = None,
    timeout: Timeout = TIMEOUT_S,
    settings: Settings = None,
) -> int:
    """Send the records of copied logs to a topic, at the intervals at which they were written.

    The logs are only read. Records of aborted transactions and control records are skipped. The
    topic must exist, with as many partitions as the source unless --partition is given.
    """
    from kctl.commands.replay.replaying import ReplayRequest, replay_logs

    request = ReplayRequest(
        path=path,
        to=to,
        topic=topic,
        partition=partition,
        speed=speed,
        start=start,
        until=until,
        max_records=max_records,
        new_timestamps=new_timestamps,
        source_headers=source_headers,
    )
    cluster = ClusterOptions(bootstrap_server, command_config, context, timeout)
    return replay_logs(with_settings(cluster, settings), request)
