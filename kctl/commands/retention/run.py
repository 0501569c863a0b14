"""Implementation of `kctl retention run`: on the embedded cluster, or in a log directory."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, NamedTuple

from engine.errors import EngineError
from engine.forecast.topic_settings import log_config
from engine.host.ports import Files
from engine.host.real import RealClock, RealEntropy, RealFiles
from engine.log.directory.log_dir import find_log_dir
from kctl.arguments import counted
from kctl.command_results import end_with
from kctl.commands.retention.settings import TopicNotInDirs, parse_overrides
from kctl.connect import ClusterOptions, connect
from kctl.console import confirm, notify, report_error
from kctl.destinations import check_destination
from kctl.render import Column, check_format
from kctl.render.rows import OutputRow
from kctl.render.table import size_text
from kctl.run_location import ConflictingRunOptions, find_embedded_cluster

if TYPE_CHECKING:
    from engine.forecast.retention_run import RetainedLog

RUN_COLUMNS = (
    Column("topic", "TOPIC", is_name=True),
    Column("partition", "PARTITION", right=True),
    Column("freed_segments", "FREED-SEGMENTS", right=True, kind="integer?"),
    Column("freed_bytes", "FREED", right=True, is_size=True),
    Column("left_bytes", "LEFT", right=True, is_size=True),
    Column("reasons", "BY", kind="string[]"),
    Column("start_offset", "START", right=True),
    Column("end_offset", "END", right=True),
)


class RunRequest(NamedTuple):
    """The options of `kctl retention run`."""

    topics: list[str]
    directory: str | None
    settings: list[str]
    in_place: bool
    out: str | None
    yes: bool
    output: str


class ForeignCluster(EngineError):
    """Kafka's protocol has no request to apply retention now."""

    hint = (
        "its brokers check every log.retention.check.interval.ms; `kctl configs set --topic "
        "NAME retention.ms=…` shows what goes then, `kctl records delete` takes records at once"
    )

    def __init__(self) -> None:
        super().__init__("no request makes a broker of Kafka check retention now")


def run_now(options: ClusterOptions, request: RunRequest) -> int:
    """Delete the segments that are due: of an embedded cluster, or of a log directory (`--dir`).

    Returns the exit code. Errors: ConflictingRunOptions, ForeignCluster for a cluster that is not
    embedded.
    """
    check_format(request.output)
    if request.directory is None:
        return _run_on_embedded(options, request)
    if request.in_place == (request.out is not None):
        raise ConflictingRunOptions(
            "--dir needs one of --in-place and --out DIR", "--out leaves the directory as it is"
        )
    return _run_in_directory(request.directory, request)


def _run_in_directory(directory: str, request: RunRequest) -> int:
    """Apply retention in a log directory that no broker uses, or in a copy of it (--out).

    Prints a row for each log. Returns the exit code.
    """
    from engine.broker.host import real_directory_lock
    from engine.forecast.opened_directory import DirectoryHost
    from engine.forecast.retention_run import run_retention
    from engine.host import lock_file

    check_destination(request.out, [directory])
    files = RealFiles()
    config = log_config(parse_overrides(request.settings))
    wanted, absent = _named(files, directory, request.topics)
    for topic in absent:
        report_error(TopicNotInDirs(topic))
    if absent and not wanted:
        return end_with(RUN_COLUMNS, [], request.output, failures=len(absent))
    what = "all topics" if not wanted else counted(len(wanted), "topic")
    if request.out is None:
        prompt = f"delete what is due of {what} in {os.path.abspath(directory)}"
        confirm(prompt, yes=request.yes, can_be_tried=False)
        where: AbstractContextManager[str] = nullcontext(directory)
    else:
        from engine.forecast.directory_copy import copied_directory

        where = copied_directory(files, directory, request.out, lock_file.is_held)
    rows: list[OutputRow] = []
    with where as target:
        run_retention(
            DirectoryHost(files, RealClock(), RealEntropy(), real_directory_lock()),
            target,
            lambda _: config,
            lambda topic: not wanted or topic in wanted,
            lambda log: rows.append(_retained_row(log)),
        )
    freed = sum(row["freed_bytes"] for row in rows)
    notify(f"{size_text(freed)} went, of {counted(len(rows), 'partition')}")
    return end_with(RUN_COLUMNS, rows, request.output, failures=len(absent))


def _named(files: Files, directory: str, topics: list[str]) -> tuple[set[str], list[str]]:
    """Return the named topics that have a log in the directory, and those that have none.

    Both are empty if no topic is named, which means all.
    """
    found = find_log_dir(files, directory).partitions
    present = {folder.topic_partition.topic for folder in found if folder.topic_partition}
    return set(topics) & present, [t for t in dict.fromkeys(topics) if t not in present]


def _retained_row(log: RetainedLog) -> OutputRow:
    """Return the row of a log after retention; its end offset is exclusive."""
    return {
        **log.topic_partition._asdict(),
        "freed_segments": log.freed_segments,
        "freed_bytes": log.freed_bytes,
        "left_bytes": log.left_bytes,
        "reasons": [reason.value for reason in log.reasons],
        "start_offset": log.log_start_offset,
        "end_offset": log.log_end_offset,
    }


def _run_on_embedded(options: ClusterOptions, request: RunRequest) -> int:
    """Make the brokers of an embedded cluster apply retention, and wait for it.

    Prints the logs whose start offset has risen, and returns the exit code. Errors:
    ConflictingRunOptions, ForeignCluster.
    """
    from engine.cluster import daemon
    from engine.cluster.requests import Action, request_action
    from engine.forecast.cluster_history import request_log_extents

    for given, name in (
        (request.topics, "a topic"),
        (request.settings, "--set"),
        (request.in_place, "--in-place"),
        (request.out, "--out"),
    ):
        if given:
            raise ConflictingRunOptions(
                f"{name} needs --dir", "a cluster checks all its topics as they are"
            )
    with connect(options) as client:
        data = find_embedded_cluster(client)
        if data is None:
            raise ForeignCluster
        # The request returns no result: the logs are compared before and after it.
        before = request_log_extents(client)

        def pause(duration_ms: int) -> None:
            """Let the client's connections run while the cluster's process is awaited."""
            client.connections.pause(duration_ms)

        timeout_s = client.timeout_ms / 1000
        with daemon.hold_start_lock(data, RealFiles(), RealClock(), timeout_s, pause):
            request_action(data, Action.RETENTION, None, RealClock(), timeout_s, pause)
        after = request_log_extents(client)
    rows = [
        {
            **key._asdict(),
            "freed_segments": None,
            "freed_bytes": max(0, before[key].size_bytes - now.size_bytes),
            "left_bytes": now.size_bytes,
            "reasons": [],
            "start_offset": now.start_offset,
            "end_offset": now.end_offset,
        }
        for key, now in after.items()
        if key in before and before[key].start_offset < now.start_offset
    ]
    notify(f"every broker has checked: {counted(len(rows), 'partition')} begin later")
    return end_with(RUN_COLUMNS, rows, request.output)
