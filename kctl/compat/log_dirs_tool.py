"""`kafka-log-dirs`: prints the brokers' log directories with their replicas as JSON.

Source: LogDirsCommand of 3.9.1.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TextIO

from engine.client.blocking import KafkaClient
from engine.client.cluster_admin import LogDirView, describe_log_dirs
from engine.errors import ApiError, EngineError
from engine.host.ports import Files
from kctl import exits
from kctl.compat.java_admin import admin_call, admin_failure
from kctl.compat.java_failures import TerseFailure, ToolFailure, java_class
from kctl.compat.java_numbers import java_number
from kctl.compat.java_options import HELP, VERSION, GivenOptions, ToolOption, require
from kctl.compat.java_order import in_java_map_order, names_in_sized_java_order
from kctl.compat.java_split import java_split
from kctl.compat.releases import Release

SUMMARY = "Shows the log directories of brokers and the replicas in them."
_OPTIONS = (
    ToolOption("bootstrap-server", "Brokers to ask first. Required.", "HOST:PORT,..."),
    ToolOption("command-config", "Client properties.", "FILE"),
    ToolOption("describe", "Show the directories. Required."),
    ToolOption("topic-list", "Only replicas of these topics.", "NAME,..."),
    ToolOption("broker-list", "Only these brokers.", "ID,..."),
    HELP,
    VERSION,
)


def options(release: Release) -> tuple[ToolOption, ...]:
    """Return the options of kafka-log-dirs, the same in each release."""
    del release
    return _OPTIONS


def check_options(given: GivenOptions) -> None:
    """Raise OptionsRefused if kafka-log-dirs lacks --bootstrap-server or --describe."""
    require(given, "bootstrap-server", "describe")


def perform(
    given: GivenOptions,
    wanted: None,
    connect: Callable[[], KafkaClient],
    files: Files,
    out: TextIO,
    err: TextIO,
) -> int:
    """Run kafka-log-dirs: print the log directories of brokers as JSON; returns the exit code."""
    del wanted, files
    try:
        with connect() as client:
            _print_dirs(client, given, out)
    except TerseFailure as failure:
        err.write(f"{failure}\n")
        return exits.FAILED
    except ToolFailure as failure:
        err.write(f"{failure}\n{failure.trace()}\n")
        return exits.FAILED
    return exits.OK


def _print_dirs(client: KafkaClient, given: GivenOptions, out: TextIO) -> None:
    """Print the log directories of brokers as JSON; raises TerseFailure for unknown brokers."""
    topics = _parts(given, "topic-list")
    with admin_call("listNodes"):
        in_cluster = sorted(client.view([]).brokers)
    named = sorted({java_number(part) for part in _parts(given, "broker-list")})
    missing = [broker_id for broker_id in named if broker_id not in in_cluster]
    if missing:
        raise TerseFailure(
            f"ERROR: The given brokers do not exist from --broker-list: {_joined(missing)}. "
            f"Current existent brokers: {_joined(in_cluster)}"
        )
    broker_ids = named or in_cluster
    out.write("Querying brokers for log directories information\n")
    described = describe_log_dirs(client, broker_ids, is_sorted=False)
    rows = []
    for broker_id in broker_ids:
        dirs = described[broker_id]
        if isinstance(dirs, EngineError):
            raise admin_failure(dirs, "describeLogDirs")
        rows.append({"broker": broker_id, "logDirs": _dir_rows(dirs, topics)})
    out.write(f"Received log directory information from brokers {_joined(broker_ids)}\n")
    document = {"brokers": rows, "version": 1}
    out.write(json.dumps(document, separators=(",", ":"), ensure_ascii=False) + "\n")


def _parts(given: GivenOptions, name: str) -> list[str]:
    """Return the non-empty parts of an option's value, separated by commas."""
    text = given.text(name) if given.has(name) else None
    return [part for part in java_split(text or "", ",") if part]


def _joined(broker_ids: Iterable[int]) -> str:
    """Return broker ids as text, such as `1,2,3`."""
    return ",".join(map(str, broker_ids))


def _dir_rows(dirs: Sequence[LogDirView], topics: Collection[str]) -> list[dict[str, object]]:
    """Return a JSON object for each log directory, in the order of Java's HashMap."""
    by_path = {log_dir.path: log_dir for log_dir in dirs}
    rows = []
    for path in names_in_sized_java_order(by_path):
        error = by_path[path].error
        name = java_class(error) if isinstance(error, ApiError) else None
        row: dict[str, object] = {
            "partitions": _replica_rows(by_path[path], topics),
            "error": name,
            "logDir": path,
        }
        rows.append(row)
    return rows


def _replica_rows(log_dir: LogDirView, topics: Collection[str]) -> list[dict[str, object]]:
    """Return a JSON object for each replica of the topics; empty `topics` selects all."""
    replicas = {replica.partition: replica for replica in log_dir.replicas}
    return [
        {
            "partition": str(key),
            "size": replicas[key].size_bytes,
            "offsetLag": replicas[key].offset_lag,
            "isFuture": replicas[key].is_future,
        }
        for key in in_java_map_order(replicas)
        if not topics or key.topic in topics
    ]
