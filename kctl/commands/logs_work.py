"""What `kctl logs dirs` and `diff` do: call the engine, print rows, choose exit codes."""

from __future__ import annotations

from collections.abc import Iterable

from engine.errors import EngineError
from engine.host.real import RealFiles
from engine.log.log_dir import LogDir, PartitionFolder, find_log_dir
from kctl import exits
from kctl.asking import report_error, say
from kctl.commands.logs_rows import (
    DIFF_COLUMNS,
    DIRS_COLUMNS,
    diff_row,
    dirs_row,
)
from kctl.render import RowWriter


class NotOnePartition(EngineError):
    """A path holds several partitions where one is meant."""

    exit_code = exits.USAGE
    hint = "name one <topic>-<partition> directory"

    def __init__(self, path: str, count: int) -> None:
        super().__init__(f"{path}: holds {count} partitions, expected one")
        self.path = path
        self.count = count


def list_dirs(paths: list[str], output: str) -> int:
    """Print a row for each partition; returns the exit code."""
    from engine.inspection.partition_summary import summarize

    writer = RowWriter(DIRS_COLUMNS, output)
    dirs, failures = open_dirs(paths)
    for log_dir in dirs:
        for problem in log_dir.state.problems:
            say(f"warning: {problem}")
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


def diff_partitions(left: str, right: str, output: str) -> int:
    """Print where two copies first differ; returns the exit code."""
    from engine.inspection.log_compare import compare_partitions

    writer = RowWriter(DIFF_COLUMNS, output)
    one, other = (_one_partition(path) for path in (left, right))
    comparison = compare_partitions(RealFiles(), one.files, other.files)
    writer.write(diff_row(comparison))
    writer.close()
    for damage in comparison.damage:
        say(f"warning: {damage}")
    return exits.OK if comparison.is_same else exits.PROBLEMS_FOUND


def open_dirs(paths: Iterable[str]) -> tuple[list[LogDir], int]:
    """Return the log directories behind paths, and how many could not be read (and were told)."""
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
    """Return how much there is to read."""
    return sum(partition.files.log_bytes for _, partition in kept_partitions(dirs))


def kept_partitions(dirs: Iterable[LogDir]) -> list[tuple[LogDir, PartitionFolder]]:
    """Return what is checked: not what a broker is about to remove."""
    return [
        (log_dir, partition)
        for log_dir in dirs
        for partition in log_dir.partitions
        if partition.is_kept
    ]


def _one_partition(path: str) -> PartitionFolder:
    partitions = find_log_dir(RealFiles(), path).partitions
    if len(partitions) != 1:
        raise NotOnePartition(path, len(partitions))
    return partitions[0]
