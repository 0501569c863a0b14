"""What `kctl compact` does: open a directory, look at its logs or clean them, print rows."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from engine.broker.host import real_directory_lock
from engine.forecast.compaction_run import run_compaction
from engine.forecast.directory_copy import copy_directory
from engine.forecast.dirtiness import CompactedLog, dirtiness
from engine.forecast.opened_directory import DirectoryHost
from engine.host import lock_file
from engine.host.real import RealClock, RealEntropy, RealFiles
from engine.log.cleaner.cleaning_facts import CleaningSettings
from engine.log.log_config import LogConfig
from engine.log.log_dir import find_log_dir
from engine.log.offset_checkpoint import CLEANER_POINTS
from kctl.asking import confirm, report_error, say
from kctl.commands.retention_run import RunWhere
from kctl.commands.retention_settings import TopicNotInDirs, log_config, overrides_of
from kctl.ending import end_with
from kctl.render import Column, check_format
from kctl.render.table import size_text
from kctl.sizes import parse_bytes
from kctl.words import counted

_DIRTY: tuple[Column, ...] = (
    Column("topic", "TOPIC", is_name=True),
    Column("partition", "PARTITION", right=True),
    Column("size_bytes", "SIZE", right=True, is_size=True),
    Column("first_dirty_offset", "FIRST-DIRTY", right=True),
    Column("first_uncleanable_offset", "CLEANABLE-TO", right=True),
    Column("log_end_offset", "END", right=True),
    Column("cleanable_bytes", "CLEANABLE", right=True, is_size=True),
    Column("dirty_ratio", "RATIO", right=True, kind="number"),
)
PLAN_COLUMNS = (*_DIRTY, Column("is_due", "DUE", kind="boolean"))
RUN_COLUMNS = (
    *_DIRTY,
    Column("passes", "PASSES", right=True),
    Column("freed_bytes", "FREED", right=True, is_size=True),
    Column("freed_records", "RECORDS", right=True),
)


class CompactRequest(NamedTuple):
    """The options of `kctl compact`."""

    directory: str
    topics: list[str]
    settings: list[str]
    in_place: bool | None
    out: str | None
    yes: bool
    output: str
    buffer: str = "128MiB"


class _Chosen(NamedTuple):
    """The topics that are taken as compacted, and their settings."""

    topics: frozenset[str]
    compacted: LogConfig
    other: LogConfig

    def config_of(self, topic: str) -> LogConfig:
        return self.compacted if topic in self.topics else self.other

    def is_wanted(self, topic: str) -> bool:
        return topic in self.topics


def _choose(request: CompactRequest) -> _Chosen:
    overrides = overrides_of(request.settings)
    noted = find_log_dir(RealFiles(), request.directory).state.checkpoints.get(CLEANER_POINTS, {})
    topics = frozenset(request.topics or (key.topic for key in noted))
    say("settings are Kafka's defaults but for --set: log directories do not have those of topics")
    # Nothing of a topic that is not meant may go because of its age.
    kept = log_config({"retention.ms": "-1"})
    return _Chosen(topics, log_config({"cleanup.policy": "compact", **overrides}), kept)


def _host() -> DirectoryHost:
    return DirectoryHost(RealFiles(), RealClock(), RealEntropy(), real_directory_lock())


def show_dirtiness(request: CompactRequest) -> int:
    """Print how dirty logs are; returns the exit code."""
    check_format(request.output)
    chosen = _choose(request)
    files = RealFiles()
    log_dir = find_log_dir(files, request.directory)
    now_ms = RealClock().wall_ms()
    logs = dirtiness(files, log_dir, chosen.compacted, chosen.is_wanted, now_ms)
    rows = [{**_row(log), "is_due": log.is_due} for log in logs]
    missing = _tell_missing(request, {row["topic"] for row in rows})
    return end_with(PLAN_COLUMNS, rows, request.output, failures=missing)


def _tell_missing(request: CompactRequest, found: set[str]) -> int:
    """Tell which topics were named and have no log there; returns how many."""
    missing = sorted(set(request.topics) - found)
    for topic in missing:
        report_error(TopicNotInDirs(topic))
    return len(missing)


def clean_now(request: CompactRequest) -> int:
    """Clean logs; returns the exit code."""
    check_format(request.output)
    if request.in_place == (request.out is not None):
        raise RunWhere(
            "--dir needs one of --in-place and --out DIR", "--out leaves the directory as it is"
        )
    chosen = _choose(request)
    target = request.directory
    if request.out is None:
        topics = counted(len(chosen.topics), "topic")
        question = f"clean {topics} in {os.path.abspath(request.directory)}"
        confirm(question, yes=request.yes, can_be_tried=False)
    else:
        target = request.out
        copy_directory(RealFiles(), request.directory, target, lock_file.is_held)
    settings = CleaningSettings(map_bytes=parse_bytes(request.buffer))
    logs = list(run_compaction(_host(), target, chosen.config_of, chosen.is_wanted, settings))
    for log in logs:
        if log.fault is not None:
            report_error(log.fault, str(log.topic_partition))
    rows = [
        {
            **_row(log),
            "passes": log.pass_count,
            "freed_bytes": log.freed_bytes,
            "freed_records": log.freed_records,
        }
        for log in logs
        if log.fault is None
    ]
    freed = sum(log.freed_bytes for log in logs)
    say(f"{size_text(freed)} went, of {counted(len(rows), 'partition')}")
    missing = _tell_missing(request, {log.topic_partition.topic for log in logs})
    return end_with(RUN_COLUMNS, rows, request.output, failures=len(logs) - len(rows) + missing)


def _row(log: CompactedLog) -> dict[str, Any]:
    return {
        **log.topic_partition._asdict(),
        "size_bytes": log.size_bytes,
        "first_dirty_offset": log.first_dirty_offset,
        "first_uncleanable_offset": log.first_uncleanable_offset,
        "log_end_offset": log.log_end_offset,
        "cleanable_bytes": log.cleanable_bytes,
        "dirty_ratio": round(log.dirty_ratio, 4),
    }
