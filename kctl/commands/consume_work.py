"""What `kctl consume` does: finds where to start and stop, fetches, prints."""

from __future__ import annotations

import sys
from typing import NamedTuple, Protocol

from engine.client.blocking import KafkaClient
from engine.client.fetching import ConsumedRecords, Fetcher, FetchOptions
from engine.errors import EngineError
from engine.model import TopicPartition
from engine.records.record import Record
from kctl import exits
from kctl.asking import report_error
from kctl.commands.offset_points import parse_point, resolve
from kctl.connect import ClusterOptions, connect
from kctl.record_format import RecordFormat
from kctl.record_rows import RECORD_COLUMNS, record_row
from kctl.render import TABLES, RowWriter, check_format
from kctl.selection import select_partitions
from kctl.words import UnreadableWord

_TEXT = "text"
_FORMATS = (_TEXT, *TABLES, "json", "ndjson", "yaml", "csv")
_VALUES = "%s\\n"
#: How long one wait for records lasts; Ctrl-C ends it at once.
_WAIT_MS = 1_000


class ConsumeRequest(NamedTuple):
    """The options of `kctl consume`."""

    words: list[str]
    start: str
    until: str | None
    max_messages: int | None
    fetch: FetchOptions
    template: str | None
    output: str


class Sink(Protocol):
    """Where records go."""

    def write(self, partition: TopicPartition, record: Record, leader_epoch: int) -> None:
        """Take one record."""
        ...

    def flush(self) -> None:
        """Make what was written visible."""
        ...

    def close(self, *, failures: int) -> None:
        """Complete the output; so many errors were told beside it."""
        ...


class TextSink:
    """Records by a template, byte for byte."""

    def __init__(self, template: str) -> None:
        self._format = RecordFormat(template)
        self._stream = sys.stdout.buffer

    def write(self, partition: TopicPartition, record: Record, leader_epoch: int) -> None:
        """Print one record."""
        self._stream.write(self._format.fill(partition, record, leader_epoch))

    def flush(self) -> None:
        """Make what was written visible."""
        self._stream.flush()

    def close(self, *, failures: int) -> None:  # a text has no heading
        """Make the last record visible."""
        self._stream.flush()


class RowSink:
    """Records as rows of a format."""

    def __init__(self, output: str) -> None:
        self._writer = RowWriter(RECORD_COLUMNS, output)
        self._is_table = output in (*TABLES, "csv")

    def write(self, partition: TopicPartition, record: Record, leader_epoch: int) -> None:
        """Write one record."""
        self._writer.write(record_row(partition, record, leader_epoch, is_table=self._is_table))

    def flush(self) -> None:
        """Make what was written visible."""
        sys.stdout.flush()

    def close(self, *, failures: int) -> None:
        """Complete the document."""
        self._writer.close(failures=failures)
        sys.stdout.flush()


def consume_records(options: ClusterOptions, request: ConsumeRequest) -> int:
    """Print records until the end that was asked for; returns the exit code."""
    sink = _sink(request)
    with connect(options) as client:
        now_ms = client.clock.wall_ms()
        start = parse_point(request.start, now_ms)
        until = None if request.until is None else parse_point(request.until, now_ms)
        _, partitions, errors = select_partitions(client, request.words)
        run = _Run(sink, request.max_messages)
        for error in errors:
            run.fail(error)
        is_committed = request.fetch.read_committed
        starts = run.without_errors(resolve(client, partitions, start, read_committed=is_committed))
        if until is not None:
            run.ends = run.without_errors(
                resolve(client, list(starts), until, read_committed=is_committed)
            )
            starts = {p: o for p, o in starts.items() if p in run.ends and o < run.ends[p]}
        try:
            run.fetch_all(client, starts, request.fetch)
        finally:
            # A document that is cut short by Ctrl-C still ends as it should.
            sink.close(failures=run.failures)
    return run.exit_code


def _sink(request: ConsumeRequest) -> Sink:
    check_format(request.output, _FORMATS)
    if request.output == _TEXT:
        return TextSink(request.template or _VALUES)
    if request.template is not None:
        raise UnreadableWord("an output that takes --format", request.output, _TEXT)
    return RowSink(request.output)


class _Run:
    """One run: what is left to print, and what went wrong."""

    def __init__(self, sink: Sink, max_messages: int | None) -> None:
        self._sink = sink
        self._left = max_messages
        self.ends: dict[TopicPartition, int] = {}
        self.failures = 0
        self.exit_code = exits.OK

    def fail(self, error: EngineError, about: str | None = None) -> None:
        """Tell the error of one partition; the others go on."""
        report_error(error, about)
        self.failures += 1
        self.exit_code = max(self.exit_code, getattr(error, "exit_code", exits.FAILED))

    def without_errors(
        self, results: dict[TopicPartition, int | EngineError]
    ) -> dict[TopicPartition, int]:
        """Return the offsets that were found, and tell of the others."""
        offsets = {}
        for partition, result in results.items():
            if isinstance(result, EngineError):
                self.fail(result, str(partition))
            else:
                offsets[partition] = result
        return offsets

    def fetch_all(
        self, client: KafkaClient, starts: dict[TopicPartition, int], options: FetchOptions
    ) -> None:
        """Print records until nothing is left to print."""
        fetcher = Fetcher(client, starts, options)
        while fetcher.partitions and self._left != 0:
            for fetched in fetcher.poll(_WAIT_MS):
                self._take(fetcher, fetched)
            self._sink.flush()

    def _take(self, fetcher: Fetcher, fetched: ConsumedRecords) -> None:
        partition = fetched.partition
        end = self.ends.get(partition)
        for record, leader_epoch in fetched.records:
            if self._left == 0 or (end is not None and record.offset >= end):
                break
            self._sink.write(partition, record, leader_epoch)
            if self._left is not None:
                self._left -= 1
        if fetched.error is not None:
            self.fail(fetched.error, str(partition))
        elif end is not None and fetched.next_offset >= end:
            fetcher.stop(partition)
