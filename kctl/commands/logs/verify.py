"""Implementation of `kctl logs verify`: a row for each partition, or for each problem.

| output | rows |
|---|---|
| table, wide | one per partition, with its worst problem; with `--all` also one per problem |
| other formats | one per problem |
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import NamedTuple

from engine.errors import EngineError
from engine.host.real import RealFiles
from engine.inspection.findings import Finding, Severity
from engine.inspection.verify import (
    PartitionReport,
    VerifyOptions,
    verify_duplicates,
    verify_log_dir,
    verify_partition,
)
from engine.log.directory.log_dir import LogDir
from kctl import exits
from kctl.arguments import counted
from kctl.commands.logs.listing import kept_partitions, log_bytes, open_dirs
from kctl.commands.logs.progress import Progress
from kctl.commands.logs.rows import (
    FINDING_COLUMNS,
    SUMMARY_COLUMNS,
    finding_row,
    summary_row,
)
from kctl.console import notify, report_error
from kctl.render import TABLES, RowWriter


class VerifyRequest(NamedTuple):
    """The options of `kctl logs verify`."""

    deep: bool
    compacted: bool | None
    notes: bool
    show_all: bool
    output: str


def verify_dirs(paths: list[str], request: VerifyRequest) -> int:
    """Check the logs of directories, print the problems, and a total on stderr.

    Returns the exit code: PROBLEMS_FOUND for problems, FAILED if a log cannot be read.
    """
    rows = _Rows(request)
    dirs, failures = open_dirs(paths)
    options = VerifyOptions(compacted=request.compacted, deep=request.deep)
    for log_dir, findings in _own_findings(dirs):
        rows.add_directory(log_dir, findings)
    partitions = kept_partitions(dirs)
    with Progress(log_bytes(dirs), "verifying") as progress:
        for log_dir, partition in partitions:
            try:
                report = verify_partition(
                    RealFiles(), partition, log_dir.state, options, on_read=progress.advance
                )
            except EngineError as error:
                report_error(error)
                failures += 1
            else:
                rows.add_partition(report)
    rows.close(failures)
    if dirs:
        found = (
            counted(len(partitions), "partition"),
            counted(rows.batches, "batch"),
            counted(rows.problems, "problem"),
        )
        notify("{}, {}: {}".format(*found))
    if rows.has_hidden:
        notify("hint: --all shows each problem, -o json has them for scripts")
    if failures:
        return exits.FAILED
    return exits.PROBLEMS_FOUND if rows.problems else exits.OK


def _own_findings(dirs: list[LogDir]) -> list[tuple[LogDir | None, list[Finding]]]:
    """Return the problems of each log directory as a whole, outside of its partitions.

    The key None has the problems of all directories together: partitions that are in several.
    Directories without a problem are left out.
    """
    found: list[tuple[LogDir | None, list[Finding]]] = [(None, verify_duplicates(dirs))]
    found += [(log_dir, verify_log_dir(log_dir)) for log_dir in dirs]
    return [(log_dir, findings) for log_dir, findings in found if findings]


class _Rows:
    """Counts findings and prints the requested rows."""

    def __init__(self, request: VerifyRequest) -> None:
        """Create writers for the rows of the output format: findings, a summary, or both."""
        self._notes = request.notes
        is_table = request.output in TABLES
        shows_each = not is_table or request.show_all or request.notes
        #: Writes a row per finding; None if only the summary is shown.
        self._findings = RowWriter(FINDING_COLUMNS, request.output) if shows_each else None
        self._summary = RowWriter(SUMMARY_COLUMNS, request.output) if is_table else None
        self.problems = self.batches = 0

    @property
    def has_hidden(self) -> bool:
        """Return True if problems were counted but not printed one by one.

        Then a hint names the options that print them.
        """
        return self._findings is None and self.problems > 0

    def add_directory(self, log_dir: LogDir | None, findings: list[Finding]) -> None:
        """Add problems outside of partitions; `log_dir` None means all directories together."""
        self._add_findings(findings, None)
        shown = [finding for finding in findings if finding.is_problem]
        if self._summary is not None and shown:
            self._summary.write(summary_row(None, shown, log_dir.path if log_dir else None))

    def add_partition(self, report: PartitionReport) -> None:
        """Write the rows of a verified partition: its summary, and its problems."""
        self.batches += report.batches
        self._add_findings(list(report.findings), report.name)
        if self._summary is not None:
            self._summary.write(summary_row(report, worst_first(report.findings), report.path))

    def _add_findings(self, findings: list[Finding], partition: str | None) -> None:
        """Count the problems, and write them as rows; notes are written only with --notes."""
        for finding in findings:
            self.problems += finding.is_problem
            if self._findings is not None and (finding.is_problem or self._notes):
                self._findings.write(finding_row(finding, partition))

    def close(self, failures: int) -> None:
        """Print the buffered rows: the summary, then the problems."""
        if self._summary is not None:
            self._summary.close(failures=failures)
            if self._findings is None or not self._findings.count:
                return
            sys.stdout.write("\n")
        if self._findings is not None:
            self._findings.close(failures=failures)


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings that are problems, errors before warnings, each in log order."""
    problems = [finding for finding in findings if finding.is_problem]
    return sorted(problems, key=lambda finding: finding.severity is not Severity.ERROR)
