"""Implementation of `kctl compact` on log directories: read logs, try a cleaning, clean, print."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

from engine.broker.host import real_directory_lock
from engine.errors import EngineError
from engine.forecast.compaction_run import run_compaction
from engine.forecast.directory_copy import copied_directory
from engine.forecast.dirtiness import CompactedLog, read_dirtiness
from engine.forecast.opened_directory import DirectoryHost
from engine.forecast.topic_settings import log_config
from engine.host import lock_file
from engine.host.ports import Clock, Entropy
from engine.host.real import RealClock, RealEntropy, RealFiles
from engine.host.temporary import temporary_folder
from engine.log.cleaner.cleaning_facts import CleaningSettings
from engine.log.directory.log_dir import LogDir, find_log_dir
from engine.log.directory.log_directory import DirectoryLock
from engine.log.directory.offset_checkpoint import CLEANER_POINTS
from engine.log.log_config import LogConfig
from kctl.arguments import counted
from kctl.command_results import end_with
from kctl.commands.compact.requests import (
    BUFFER,
    CompactPlanRequest,
    CompactRunRequest,
    KeysExceedMemory,
)
from kctl.commands.compact.rows import (
    RUN_COLUMNS,
    Freed,
    dirty_row,
    draw_bars,
    plan_columns,
    print_sum,
    with_freed,
)
from kctl.commands.retention.settings import TopicNotInDirs, parse_overrides
from kctl.console import confirm, notify, report_error
from kctl.destinations import check_destination
from kctl.render import check_format
from kctl.render.rows import OutputRow
from kctl.render.table import size_text
from kctl.run_location import ConflictingRunOptions
from kctl.sizes import parse_bytes


class _Chosen(NamedTuple):
    """The topics to treat as compacted, with the settings for these and for all other topics."""

    topics: frozenset[str]
    compacted: LogConfig
    other: LogConfig

    def config_of(self, topic: str) -> LogConfig:
        """Return the settings of a topic's logs: compacted if the topic is chosen."""
        return self.compacted if topic in self.topics else self.other

    def is_wanted(self, topic: str) -> bool:
        """Return True if the logs of a topic are to be cleaned."""
        return topic in self.topics


def _choose_topics(
    log_dir: LogDir, topics: list[str], match: str | None, settings: list[str]
) -> _Chosen:
    """Choose the topics of a log directory to compact: the named ones, and those matching `match`.

    Without either, those in the cleaner's checkpoint file, which a broker wrote. `settings` are
    KEY=VALUE texts that override the defaults of compacted logs.
    """
    overrides = parse_overrides(settings)
    present = {f.topic_partition.topic for f in log_dir.partitions if f.topic_partition}
    named = set(topics)
    if match is not None:
        from kctl.selection import name_matcher

        matcher = name_matcher(match)
        named |= {topic for topic in present if matcher.fullmatch(topic)}
    elif not topics:
        noted = log_dir.state.checkpoints.get(CLEANER_POINTS, {})
        named = {key.topic for key in noted}
        if not named:
            notify(
                f"{log_dir.path}: no cleaner has noted a topic there: name those that are compacted"
            )
    # Retention by age must not delete records of topics that were not chosen.
    kept = log_config({"retention.ms": "-1"})
    compacted = log_config({"cleanup.policy": "compact", **overrides})
    return _Chosen(frozenset(named), compacted, kept)


def _print_settings_note() -> None:
    """Print that log directories lack topics' settings, so that Kafka's defaults are assumed."""
    notify(
        "settings are Kafka's defaults but for --set: log directories do not have those of topics"
    )


def _real_ports() -> tuple[Clock, Entropy, DirectoryLock]:
    """Return the clock, randomness and directory lock of this machine."""
    return RealClock(), RealEntropy(), real_directory_lock()


def print_plan_of_dirs(request: CompactPlanRequest) -> int:
    """Print the dirty ranges of the logs in `--dir` directories; returns the exit code.

    A directory that cannot be read is reported, and the others are still read.
    """
    check_format(request.output)
    request.cleaning_settings()
    rows: list[dict[str, object]] = []
    failures = 0
    found: set[str] = set()
    _print_settings_note()
    for path in request.dirs:
        try:
            log_dir = find_log_dir(RealFiles(), path)
            chosen = _choose_topics(log_dir, request.topics, request.match, request.settings)
            for row, fault in _plan_rows(log_dir, chosen, request):
                found.add(row["topic"])
                rows.append(row)
                if fault is not None:
                    report_error(fault, f"{row['topic']}-{row['partition']}")
                    failures += 1
        except EngineError as error:
            report_error(error, path)
            failures += 1
    failures += _report_missing(request.topics, found)
    rows.sort(key=lambda row: (row["topic"], row["partition"]))
    print_sum(rows, is_exact=request.exact)
    if request.chart:
        draw_bars(rows, is_exact=request.exact)
    columns = plan_columns(is_exact=request.exact, has_chart=request.chart)
    return end_with(columns, rows, request.output, failures=failures)


def _plan_rows(
    log_dir: LogDir, chosen: _Chosen, request: CompactPlanRequest
) -> Iterator[tuple[OutputRow, EngineError | None]]:
    """Yield (row, error) for each chosen log; the error is that of its trial cleaning, or None.

    Only `--exact` makes a trial cleaning.
    """
    now_ms = RealClock().wall_ms()
    logs = list(read_dirtiness(RealFiles(), log_dir, chosen.compacted, chosen.is_wanted, now_ms))
    tried = _try_cleaning(log_dir, chosen, request.cleaning_settings()) if request.exact else {}
    for log in logs:
        waits_for = None if log.waits_for is None else log.waits_for.value
        row = {
            **dirty_row(log),
            "is_due": log.is_due,
            "waits_for": waits_for,
            "is_estimated": False,
        }
        if not request.exact:
            yield row, None
            continue
        freed, fault = _freed_by_trial(tried.get(str(log.topic_partition)))
        yield with_freed(row, freed), fault


def _freed_by_trial(trial: CompactedLog | None) -> tuple[Freed, EngineError | None]:
    """Return the bytes and records that a trial cleaning freed, and an error or None.

    If the keys exceed the cleaner's memory, the result covers only the first pass, and the error is
    KeysExceedMemory.
    """
    if trial is None:
        return Freed(), None
    if trial.fault is not None:
        return Freed(), trial.fault
    fault = None
    if trial.cleanable_bytes and trial.pass_count:
        fault = KeysExceedMemory(str(trial.topic_partition), trial.first_dirty_offset)
    return Freed(trial.freed_bytes, trial.freed_records), fault


def _try_cleaning(
    log_dir: LogDir, chosen: _Chosen, settings: CleaningSettings
) -> dict[str, CompactedLog]:
    """Clean temporary copies of the chosen logs; return the results by `topic-partition`.

    So `--exact` counts the bytes freed without changing the directory.
    """
    from engine.forecast.compaction_trial import trial_files, try_compaction

    with temporary_folder("kctl-compact-") as folder:
        logs = try_compaction(
            trial_files(),
            _real_ports(),
            log_dir,
            folder,
            chosen.config_of,
            chosen.is_wanted,
            settings,
        )
        return {str(log.topic_partition): log for log in logs}


def _report_missing(topics: list[str], found: set[str]) -> int:
    """Print an error for each named topic without a log in the directories; return their number."""
    missing = sorted(set(topics) - found)
    for topic in missing:
        report_error(TopicNotInDirs(topic))
    return len(missing)


def clean_directory(directory: str, request: CompactRunRequest) -> int:
    """Compact the logs of a stopped broker's directory, in place or in a copy of the directory.

    Exactly one of `--in-place` and `--out` is required. Returns the exit code. Errors:
    ConflictingRunOptions, those of files and locks.
    """
    check_format(request.output)
    if request.in_place == (request.out is not None):
        raise ConflictingRunOptions(
            "--dir needs one of --in-place and --out DIR", "--out leaves the directory as it is"
        )
    check_destination(request.out, [directory])
    log_dir = find_log_dir(RealFiles(), directory)
    chosen = _choose_topics(log_dir, request.topics, request.match, request.settings)
    _print_settings_note()
    present = {f.topic_partition.topic for f in log_dir.partitions if f.topic_partition}
    if request.topics and not chosen.topics & present:
        missing = _report_missing(request.topics, present)
        return end_with(RUN_COLUMNS, [], request.output, failures=missing)
    settings = CleaningSettings(map_bytes=parse_bytes(request.buffer or BUFFER))
    host = DirectoryHost(RealFiles(), *_real_ports())
    if request.out is None:
        topics = counted(len(chosen.topics), "topic")
        prompt = f"clean {topics} in {os.path.abspath(directory)}"
        confirm(prompt, yes=request.yes, can_be_tried=False)
        where: AbstractContextManager[str] = nullcontext(directory)
    else:
        where = copied_directory(RealFiles(), directory, request.out, lock_file.is_held)
    with where as target:
        logs = list(run_compaction(host, target, chosen.config_of, chosen.is_wanted, settings))
    for log in logs:
        if log.fault is not None:
            report_error(log.fault, str(log.topic_partition))
    rows = [
        {
            **dirty_row(log),
            "passes": log.pass_count,
            "freed_bytes": log.freed_bytes,
            "freed_records": log.freed_records,
        }
        for log in logs
        if log.fault is None
    ]
    freed = sum(log.freed_bytes for log in logs)
    notify(f"{size_text(freed)} went, of {counted(len(rows), 'partition')}")
    missing = _report_missing(request.topics, {log.topic_partition.topic for log in logs})
    return end_with(RUN_COLUMNS, rows, request.output, failures=len(logs) - len(rows) + missing)
