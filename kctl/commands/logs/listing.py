"""Implementation of `kctl logs dirs` and `diff`."""

from __future__ import annotations

from collections.abc import Iterable

from engine.errors import EngineError
from engine.host.real import RealFiles
from engine.log.directory.log_dir import HoldsPartitions, LogDir, PartitionFolder, find_log_dir
from kctl import exits
from kctl.commands.logs.rows import (
    DIFF_COLUMNS,
    DIRS_COLUMNS,
    diff_row,
    dirs_row,
)
from kctl.console import notify, report_error
from kctl.render import RowWriter


class DifferentPartitions(EngineError):
    """Two directories are not copies of the same partition."""

    exit_code = exits.USAGE
    hint = "copies of one partition have equal bytes; --force compares these all the same"

    def __init__(self, left: str, right: str, reason: str) -> None:
        super().__init__(f"{left} and {right}: {reason}")
        self.left = left
        self.right = right


def list_dirs(paths: list[str], output: str) -> int:
    """Print a row for each partition in log directories; returns the exit code.

    An error of a directory or partition is printed, and the others are still shown.
    """
    from engine.inspection.partition_summary import summarize

    writer = RowWriter(DIRS_COLUMNS, output)
    dirs, failures = open_dirs(paths)
    for log_dir in dirs:
        for problem in log_dir.state.problems:
            notify(f"warning: {problem}")
        for partition in log_dir.partitions:
            try:
                summary = summarize(RealFiles(), partition, log_dir.state)
            except EngineError as error:
                report_error(error)
                failures += 1
            else:
                writer.write(dirs_row(summary))
    writer.close(failures=failures)
    return exits.FAILED if failures else exits.OK


def diff_partitions(left: str, right: str, output: str, *, force: bool) -> int:
    """Print the first difference between two copies of a partition's log.

    Returns the exit code, PROBLEMS_FOUND if they differ. Errors: HoldsPartitions;
    DifferentPartitions if they belong to different partitions, unless `force` is set.
    """
    from engine.inspection.log_compare import compare_partitions, unlike_reason

    writer = RowWriter(DIFF_COLUMNS, output)
    one, other = (_one_partition(path) for path in (left, right))
    reason = None if force else unlike_reason(RealFiles(), one, other)
    if reason is not None:
        raise DifferentPartitions(left, right, reason)
    comparison = compare_partitions(RealFiles(), one.files, other.files)
    writer.write(diff_row(comparison))
    writer.close()
    for damage in comparison.damage:
        notify(f"warning: {damage}")
    return exits.OK if comparison.is_same else exits.PROBLEMS_FOUND


def open_dirs(paths: Iterable[str]) -> tuple[list[LogDir], int]:
    """Open log directories; return them, and the number of paths whose error was printed."""
    dirs: list[LogDir] = []
    failures = 0
    for path in paths:
        try:
            dirs.append(find_log_dir(RealFiles(), path))
        except EngineError as error:
            report_error(error)
            failures += 1
    return dirs, failures


def log_bytes(dirs: Iterable[LogDir]) -> int:
    """Return the total size of the segments in the directories, for the progress of a check.

    Partitions that a broker is deleting do not count, as they are not read.
    """
    return sum(partition.files.log_bytes for _, partition in kept_partitions(dirs))


def kept_partitions(dirs: Iterable[LogDir]) -> list[tuple[LogDir, PartitionFolder]]:
    """Return the partitions with their directories, without those that a broker is deleting."""
    return [
        (log_dir, partition)
        for log_dir in dirs
        for partition in log_dir.partitions
        if partition.is_kept
    ]


def _one_partition(path: str) -> PartitionFolder:
    """Return the only partition in a path; raises HoldsPartitions for none or several."""
    partitions = find_log_dir(RealFiles(), path).partitions
    if len(partitions) != 1:
        raise HoldsPartitions(path, [partition.name for partition in partitions])
    return partitions[0]
