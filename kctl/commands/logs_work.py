"""What `kctl logs` does: calls the engine, prints rows, chooses exit codes."""

from __future__ import annotations

import os
import posixpath
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from engine.errors import EngineError
from engine.host.real import RealFiles
from engine.log.log_dir import LOCK_FILE, find_log_dir
from kctl import exits
from kctl.commands import logs_rows
from kctl.commands.logs_progress import Progress
from kctl.render import RowWriter, check_format

if TYPE_CHECKING:
    from engine.log.log_dir import LogDir
    from engine.log.repair_actions import RepairOptions, RepairPlan


class ChooseTarget(EngineError):
    """It was not said where the repaired data should go, or said twice."""

    exit_code = exits.USAGE
    hint = "--output DIR writes repaired copies, --in-place changes the data, --dry-run shows"

    def __init__(self) -> None:
        super().__init__("choose one of --output DIR, --in-place and --dry-run")


class DirectoryInUse(EngineError):
    """A broker holds the lock of the directory."""

    hint = "stop the broker first, or repair a copy with --output DIR"

    def __init__(self, path: str) -> None:
        super().__init__(f"{path}: another process holds the lock of this log directory")
        self.path = path


class NotConfirmed(EngineError):
    """Data would be cut, and no one said yes."""

    hint = "look at it with --dry-run, then repeat with --yes"

    def __init__(self) -> None:
        super().__init__("not repaired: records would be cut")


class NotOnePartition(EngineError):
    """A path holds several partitions where one is meant."""

    exit_code = exits.USAGE
    hint = "name one <topic>-<partition> directory"

    def __init__(self, path: str, count: int) -> None:
        super().__init__(f"{path}: holds {count} partitions, expected one")


class VerifyRequest(NamedTuple):
    """The options of `kctl logs verify`."""

    deep: bool
    compacted: bool | None
    notes: bool
    output: str


class RepairRequest(NamedTuple):
    """The options of `kctl logs repair`."""

    into: str | None
    in_place: bool
    dry_run: bool
    backup: bool
    from_recovery_point: bool
    rebuild_indexes: bool
    index_interval_bytes: int
    yes: bool
    output: str


def list_dirs(paths: list[str], output: str) -> int:
    """Print a row for each partition; returns the exit code."""
    from engine.log.partition_summary import summarize

    writer = RowWriter(logs_rows.DIRS_COLUMNS, output)
    found, failed = _open_all(paths)
    for log_dir in found:
        for problem in log_dir.state.problems:
            _say(f"warning: {problem}")
        for partition in log_dir.partitions:
            try:
                summary = summarize(RealFiles(), partition, log_dir.state)
            except EngineError as error:
                failed = _report(error)
                continue
            writer.write(logs_rows.dirs_row(summary))
    writer.close()
    return exits.FAILED if failed else exits.OK


def verify_dirs(paths: list[str], request: VerifyRequest) -> int:
    """Print a row for each finding and a summary; returns the exit code."""
    from engine.log.verify import (
        VerifyOptions,
        verify_duplicates,
        verify_log_dir,
        verify_partition,
    )

    writer = RowWriter(logs_rows.FINDING_COLUMNS, request.output)
    found, failed = _open_all(paths)
    options = VerifyOptions(compacted=request.compacted, deep=request.deep)
    problems = partitions = batches = 0
    with Progress(_log_bytes(found), "verifying") as progress:
        own = [(finding, None) for finding in verify_duplicates(found)]
        own += [(finding, None) for log_dir in found for finding in verify_log_dir(log_dir)]
        findings = list(own)
        for log_dir in found:
            for partition in log_dir.partitions:
                try:
                    report = verify_partition(
                        RealFiles(), partition, log_dir.state, options, on_read=progress.advance
                    )
                except EngineError as error:
                    failed = _report(error)
                    continue
                partitions += 1
                batches += report.batches
                findings += [(finding, report.name) for finding in report.findings]
    for finding, name in findings:
        problems += finding.is_problem
        if finding.is_problem or request.notes:
            writer.write(logs_rows.finding_row(finding, name))
    writer.close()
    _say(f"{_counted(partitions, 'partition')}, {_counted(batches, 'batch', 'es')}: "
         f"{_counted(problems, 'problem')}")  # fmt: skip
    if failed:
        return exits.FAILED
    return exits.PROBLEMS_FOUND if problems else exits.OK
