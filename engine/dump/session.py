"""Dumps a list of files one after the other, then reports the problems found.

Source: DumpLogSegments.main. The kind of a file is determined by the last suffix of its name.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

from engine.dump.file_names import (
    base_offset_of,
    name_of,
    normal_path,
    parse_snapshot_id,
    suffix_of,
)
from engine.dump.log_dump import LogDump
from engine.dump.options import DumpOptions
from engine.dump.output import Output
from engine.dump.problems import Problems
from engine.errors import StorageError
from engine.host.ports import File, Files

if TYPE_CHECKING:
    from engine.dump.index_dump import IndexDump


class Summary(NamedTuple):
    """The result of a dump: lines for stderr, and the number of problems."""

    remarks: list[str]
    problem_count: int


class DumpSession:
    """Dumps files in order to one output."""

    def __init__(self, files: Files, options: DumpOptions, out: Output) -> None:
        """Nothing is written yet."""
        self._files = files
        self._options = options
        self._out = out
        self._problems = Problems(options.kafka_version)
        #: Lines about unknown or unreadable files, which precede those about contents.
        self._remarks: list[str] = []
        #: Number of problems that are not in `_problems`; number of records shown so far.
        self._problem_count = 0
        self._shown_count = 0

    def run(self, paths: list[str]) -> Summary:
        """Dump all files in order and return the summary.

        After an error, everything that was read before it is written.
        """
        try:
            for path in paths:
                self.dump_file(normal_path(path))
        finally:
            self._out.flush()
        return self.summary()

    def summary(self) -> Summary:
        """Return the remarks and problems so far, with their number."""
        lines = self._remarks + self._problems.format_lines()
        return Summary(lines, self._problem_count + self._problems.count)

    def dump_file(self, path: str) -> None:
        """Write the content of one file as text, by the kind that its name shows.

        Raises the errors at which Kafka's tool stops.
        """
        self._out.line(f"Dumping {path}")
        suffix = suffix_of(path)
        if suffix in (".log", ".checkpoint"):
            self._dump_log(path)
        elif suffix == ".index":
            if self._options.index_fault is not None:
                raise self._options.index_fault
            self._indexes().dump_offset_index(path, path)
        elif suffix == ".timeindex":
            self._indexes().dump_time_index(path, path)
        elif suffix == ".snapshot":
            self._dump_snapshot(path)
        elif suffix == ".txnindex":
            from engine.dump.state_dump import dump_txn_index

            dump_txn_index(self._files, path, self._out)
        elif suffix is None and not self._options.is_four:
            raise NamelessKind(path)
        else:
            self._remarks.append(f"Ignoring unknown file {path}")

    def _indexes(self) -> IndexDump:
        """Return the dump of indexes, whose code is imported only when needed."""
        from engine.dump.index_dump import IndexDump

        return IndexDump(self._files, self._options, self._out, self._problems)

    def _dump_snapshot(self, path: str) -> None:
        """Dump a producer snapshot; damage becomes a remark."""
        from engine.dump.state_dump import dump_producer_snapshot

        fault = dump_producer_snapshot(self._files, path, self._out, self._options.is_four)
        if fault is not None:
            self._remarks.append(fault)
            self._problem_count += 1

    def _dump_log(self, path: str) -> None:
        """Print a log: the decoder's notices, the heading, batches up to the limit of records."""
        options = self._options
        notices = options.decoder.open()
        if not options.is_four:
            for notice in notices:
                self._out.line(notice)
        if options.log_fault is not None:
            raise options.log_fault
        self._out.line(_format_heading(path))
        if options.filters.max_records is not None:
            left = max(options.filters.max_records - self._shown_count, 0)
            if not left:
                return
            options = options._replace(filters=options.filters._replace(max_records=left))
        with closing(self._files.open(path)) as file:
            dump = LogDump(file, path, options, self._out, self._problems)
            try:
                dump.run(self._find_start(file))
            finally:
                self._shown_count += dump.shown_count
                self._problem_count += dump.bad_batch_count

    def _find_start(self, file: File) -> int:
        """Return the position in a log before which the filters exclude all records.

        0 without filters.
        """
        if not self._options.filters.any_set:
            return 0
        from engine.dump.seek import find_start

        return find_start(self._files, file, self._options.filters)


class NamelessKind(StorageError):
    """The name of a file has no suffix, so its kind is unknown."""

    hint = "name files with their suffix, such as 00000000000000000000.log"

    def __init__(self, path: str) -> None:
        super().__init__(f"{path}: the name has no suffix that tells the kind of file")
        self.path = path


def _format_heading(path: str) -> str:
    """Return the line before the batches of a log or metadata snapshot, by the file's name."""
    if path.endswith(".log"):
        return f"Log starting offset: {base_offset_of(path)}"
    if name_of(path) == "bootstrap.checkpoint":
        return "KRaft bootstrap snapshot"
    end_offset, epoch = parse_snapshot_id(path)
    return f"Snapshot end offset: {end_offset}, epoch: {epoch}"
