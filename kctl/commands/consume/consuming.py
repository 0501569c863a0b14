"""Implementation of `kctl consume`: resolve start and end offsets, fetch records, print them."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from engine.client.blocking import KafkaClient
from engine.client.fetching import ConsumedRecords, Fetcher, FetchOptions
from engine.client.group_consumer import AUTO_COMMIT_INTERVAL_MS, GroupConsumer
from engine.client.group_consumers import create_group_consumer
from engine.client.member_session import MemberSettings
from engine.dump.filters import Filters
from engine.errors import EngineError, api_error
from engine.kafka_errors import OFFSET_OUT_OF_RANGE
from engine.model import TopicPartition
from engine.native.bulk_reading import BulkReading
from engine.records.record_run import RecordRun
from kctl import exits
from kctl.arguments import UnreadableArgument
from kctl.connect import ClusterOptions, connect
from kctl.console import notify, report_error
from kctl.exits import Terminated
from kctl.interrupts import HeldInterrupts, deferred_interrupts
from kctl.offset_points import OffsetLookup, PointKind, parse_point
from kctl.record_decoding import Decoded, RecordDecoding, create_decoders
from kctl.record_format import RecordFormat
from kctl.record_rows import DECODED_COLUMNS, RECORD_COLUMNS, run_columns
from kctl.render import MARKUPS, TABLES, RowWriter, check_format
from kctl.render.rate_line import RateLine
from kctl.render.visible import visible_lines
from kctl.selection import select_partitions

_TEXT = "text"
_FORMATS = (_TEXT, *TABLES, "json", "ndjson", "yaml", "csv", *MARKUPS)
_VALUES = "%s\\n"
#: Time-out of one poll for records; Ctrl-C interrupts it.
_WAIT_MS = 1_000


class ConsumeRequest(NamedTuple):
    """The options of `kctl consume`."""

    selectors: list[str]
    start: str
    until: str | None
    max_messages: int | None
    fetch: FetchOptions
    template: str | None
    output: str
    is_raw: bool = False
    filters: Filters = Filters()
    schema_registry: str | None = None
    schemas: str | None = None
    key_schema: str | None = None
    #: None without --group.
    group: MemberSettings | None = None
    auto_commit_interval_ms: int = AUTO_COMMIT_INTERVAL_MS


class Sink(Protocol):
    """The destination of records."""

    def write(self, partition: TopicPartition, run: RecordRun, decoded: Decoded | None) -> None:
        """Print records of a partition; `decoded` has their keys and values as decoded by schemas.

        `decoded` is None without schemas.
        """
        ...

    def flush(self) -> None:
        """Flush written records to stdout."""
        ...

    def close(self, *, failures: int) -> None:
        """Complete the output; `failures` is the number of errors that were printed."""
        ...


class TextSink:
    """Prints records by a template, as bytes or with control characters escaped for a terminal."""

    def __init__(self, template: str, *, is_visible: bool) -> None:
        self._format = RecordFormat(template, visible_lines if is_visible else None)
        self._stream = sys.stdout.buffer

    def write(self, partition: TopicPartition, run: RecordRun, decoded: Decoded | None) -> None:
        """Print records by the template of `--format`.

        `decoded` has keys and values as decoded by schemas; None without schemas.
        """
        run = run if decoded is None else decoded.texts(run)
        self._stream.write(self._format.fill(partition, run))

    def flush(self) -> None:
        """Flush written records to stdout."""
        self._stream.flush()

    def close(self, *, failures: int) -> None:  # a text has no heading
        """Flush written records to stdout; texts have no end, and `failures` is ignored."""
        self._stream.flush()


class RowSink:
    """Prints records as rows of an output format."""

    def __init__(self, output: str, *, is_decoded: bool) -> None:
        columns = (*RECORD_COLUMNS, *DECODED_COLUMNS) if is_decoded else RECORD_COLUMNS
        self._writer = RowWriter(columns, output, is_stream=True)
        self._is_table = output in (*TABLES, "csv", *MARKUPS)

    def write(self, partition: TopicPartition, run: RecordRun, decoded: Decoded | None) -> None:
        """Print records as rows; `decoded` has texts by schemas, None without schemas."""
        shared, varying = run_columns(partition, run, is_table=self._is_table)
        if decoded is not None:
            varying |= decoded.columns()
        self._writer.write_run(shared, varying)

    def flush(self) -> None:
        """Flush written rows to stdout."""
        self._writer.flush()

    def close(self, *, failures: int) -> None:
        """Write the end of the output, with the number of failures, and flush it."""
        self._writer.close(failures=failures)
        self._writer.flush()


def consume_records(options: ClusterOptions, request: ConsumeRequest) -> int:
    """Print records up to the requested end; returns the exit code, TERMINATED after SIGTERM."""
    try:
        with deferred_interrupts(signal.SIGINT, signal.SIGTERM) as interrupts:
            return _consume(options, request, interrupts)
    except Terminated:
        return exits.TERMINATED


def _consume(options: ClusterOptions, request: ConsumeRequest, interrupts: HeldInterrupts) -> int:
    """Print records as a member of a group, or from offsets without a group; returns the exit code.

    Interrupts are deferred except while records are awaited, so that the output stays complete.
    """
    decoders = create_decoders(
        request.schema_registry,
        request.schemas,
        request.key_schema,
        os.environ,
        options.timeout_s,
    )
    sink = _create_sink(request, is_decoded=decoders is not None)
    with connect(options) as client:
        run = PrintRun(sink, request.max_messages, interrupts)
        if request.filters.json_conditions:
            run.filters = request.filters._replace(on_unjudged=run.fail)
        else:
            run.filters = request.filters
        if decoders is not None:
            run.decoding = RecordDecoding(decoders, run.fail)
        try:
            if request.group is not None:
                run.consume_all(join_group(client, request, run), client.timeout_ms)
            else:
                with interrupts.allowed():
                    starts = _resolve_range(client, request, run)
                run.rate_line = _rate_line(client, starts, run.ends)
                run.fetch_all(client, starts, request.fetch)
        finally:
            # Complete the document even after Ctrl-C.
            run.clear_rate_line()
            sink.close(failures=run.failures)
    return run.exit_code


def _resolve_range(
    client: KafkaClient, request: ConsumeRequest, run: PrintRun
) -> dict[TopicPartition, int]:
    """Return the start offset of each partition that has records to print.

    Sets `run.ends` if --until gives an end. An error of a partition is printed and counted, and the
    partition is left out.
    """
    now_ms = client.clock.wall_ms()
    start = parse_point(request.start, now_ms)
    until = None if request.until is None else parse_point(request.until, now_ms)
    _, partitions, errors = select_partitions(client, request.selectors)
    for error in errors:
        run.fail(error)
    lookup = OffsetLookup(client, partitions, read_committed=request.fetch.read_committed)
    starts = run.drop_failed(lookup.resolve(start))
    if until is None:
        return starts
    ends = lookup.resolve(until)
    run.ends = run.drop_failed({partition: ends[partition] for partition in starts})
    left = {p: o for p, o in starts.items() if p in run.ends and o < run.ends[p]}
    if start.kind is PointKind.OFFSET and len(left) < len(starts):
        _report_offsets_beyond_end(run, lookup, {p: o for p, o in starts.items() if p not in left})
    return left


def join_group(client: KafkaClient, request: ConsumeRequest, run: PrintRun) -> GroupConsumer:
    """Return a consumer that joins the requested group; with an end, `run.ends` gets end offsets.

    Errors: UnreadableArgument for a partition number, or an end other than the log end.
    """
    assert request.group is not None
    for selector in request.selectors:
        if ":" in selector:
            raise UnreadableArgument("a topic for --group", selector, "TOPIC: the group shares it")
    if request.until not in (None, "end"):
        raise UnreadableArgument("an end for --group", request.until or "", "-e, or none")
    start = parse_point(request.start, client.clock.wall_ms())
    read_committed = request.fetch.read_committed

    def start_of(
        partitions: Sequence[TopicPartition],
    ) -> Mapping[TopicPartition, int | EngineError]:
        """Return where a partition without a committed offset starts."""
        return OffsetLookup(client, partitions, read_committed=read_committed).resolve(start)

    def record_ends(partitions: Sequence[TopicPartition]) -> None:
        """Set `run.ends` to the end offsets of newly assigned partitions; -e stops there."""
        lookup = OffsetLookup(client, partitions, read_committed=read_committed)
        run.ends = run.drop_failed(lookup.resolve(parse_point("end", 0)))

    consumer = create_group_consumer(
        client,
        request.group,
        request.selectors,
        start_of=start_of,
        fetch=request.fetch,
        auto_commit_interval_ms=request.auto_commit_interval_ms,
    )
    if request.until is not None:
        consumer.on_assigned = record_ends
    return consumer


def _report_offsets_beyond_end(
    run: PrintRun, lookup: OffsetLookup, offsets: Mapping[TopicPartition, int]
) -> None:
    """Print OFFSET_OUT_OF_RANGE for each offset above its partition's log end offset."""
    log_ends = lookup.resolve(parse_point("end", 0))
    for partition, offset in offsets.items():
        end = log_ends[partition]
        if isinstance(end, int) and offset > end:
            detail = f"{offset} lies beyond the end, {end}"
            run.fail(api_error(OFFSET_OUT_OF_RANGE, detail), str(partition))


def _rate_line(
    client: KafkaClient,
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
) -> RateLine | None:
    """Return a progress line, shown while output goes to a file or pipe.

    None if no end is known, if records go to a terminal, or if stderr is not a terminal.
    """
    is_watched = sys.stderr is not None and sys.stderr.isatty()
    if not ends or sys.stdout.isatty() or not is_watched:
        return None
    return RateLine(client.clock, total_count=sum(ends[p] - o for p, o in starts.items()))


def _create_sink(request: ConsumeRequest, *, is_decoded: bool) -> Sink:
    """Return the sink for the output format; raises UnreadableArgument for --format with rows."""
    check_format(request.output, _FORMATS)
    if request.output == _TEXT:
        is_visible = sys.stdout.isatty() and not request.is_raw
        return TextSink(request.template or _VALUES, is_visible=is_visible)
    if request.template is not None:
        raise UnreadableArgument("an output that takes --format", request.output, _TEXT)
    return RowSink(request.output, is_decoded=is_decoded)


class PrintRun:
    """A run of the command: counts the records left to print and the failures."""

    def __init__(
        self,
        sink: Sink,
        max_messages: int | None,
        interrupts: HeldInterrupts,
    ) -> None:
        """Create a run without ends and filters; `max_messages` None means no limit."""
        self._sink = sink
        self._interrupts = interrupts
        self.filters = Filters()
        #: Whether the last poll had a temporary error: such errors are printed once.
        self._is_waiting = False
        #: Decodes keys and values for the sink; None prints the bytes.
        self.decoding: RecordDecoding | None = None
        #: Shows the progress; None without a terminal to show it on.
        self.rate_line: RateLine | None = None
        self._read_count = 0
        self._read_bytes = 0
        #: Records left to print by --max-messages; None without a limit.
        self._left = max_messages
        #: Offset of the last printed record or None; a group member commits up to it.
        self._last_offset: int | None = None
        self._bulk = BulkReading()
        #: End offset (exclusive) of each partition; empty if the run has no end.
        self.ends: dict[TopicPartition, int] = {}
        #: Number of errors of records and partitions; the exit code is the highest of the errors.
        self.failures = 0
        self.exit_code = exits.OK

    def clear_rate_line(self) -> None:
        """Clear the progress line, if there is one."""
        if self.rate_line is not None:
            self.rate_line.clear()

    def fail(self, error: EngineError, about: str | None = None) -> None:
        """Print and count the error of one partition; the other partitions are still read."""
        self.clear_rate_line()
        report_error(error, about)
        self.failures += 1
        self.exit_code = max(self.exit_code, getattr(error, "exit_code", exits.FAILED))

    def drop_failed(
        self, results: dict[TopicPartition, int | EngineError]
    ) -> dict[TopicPartition, int]:
        """Return the offsets of partitions without an error; print and count the errors."""
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
        """Print records from `starts` until every partition reaches its end, or --max-messages.

        An error of a partition is printed; it does not end the run.
        """
        fetcher = Fetcher(client, starts, options)
        while fetcher.partitions and self._left != 0:
            with self._interrupts.allowed():
                arrived = fetcher.poll(_WAIT_MS)
            for fetched in arrived:
                self._print_fetched(fetcher, fetched)
            self._sink.flush()
            self._notify_of_retries(fetcher.trouble, client.timeout_ms)

    def consume_all(self, consumer: GroupConsumer, timeout_ms: int) -> None:
        """Print records as a group member until the end offsets or --max-messages, then leave.

        Offsets of printed records are committed, also after Ctrl-C.
        """
        try:
            while self._left != 0 and not consumer.is_at(self.ends):
                with self._interrupts.allowed():
                    arrived = consumer.poll(_WAIT_MS)
                for consumed in arrived:
                    self._print_consumed(consumer, consumed)
                self._sink.flush()
                self._notify_of_retries(consumer.trouble, timeout_ms)
        finally:
            self._sink.flush()
            consumer.close()

    def _print_consumed(self, consumer: GroupConsumer, consumed: ConsumedRecords) -> None:
        """Print records that a group member consumed; mark only printed ones as processed.

        The member commits the offsets of processed records, so that records behind --max-messages
        are consumed by a later run.
        """
        for run in consumed.runs:
            if self._left == 0:
                consumer.set_processed(consumed.partition, run.offsets[0])
                return
            self._print_run(consumed.partition, run)
            if self._left == 0 and self._last_offset is not None:
                consumer.set_processed(consumed.partition, self._last_offset + 1)
                return
        if consumed.error is not None:
            self.fail(consumed.error, str(consumed.partition))

    def _notify_of_retries(self, trouble: EngineError | None, timeout_ms: int) -> None:
        """Print once that no broker responds, and once that one responds again.

        `trouble` is the error of the last poll, None if it succeeded.
        """
        if trouble is not None and not self._is_waiting:
            self.clear_rate_line()
            notify(f"{trouble}; trying again for {timeout_ms // 1000} s (--timeout)")
        elif trouble is None and self._is_waiting:
            notify("going on")
        self._is_waiting = trouble is not None

    def _print_fetched(self, fetcher: Fetcher, fetched: ConsumedRecords) -> None:
        """Print fetched records below the end; stop fetching a partition that reached it."""
        partition = fetched.partition
        end = self.ends.get(partition)
        for run in fetched.runs:
            self._print_run(partition, run if end is None else run.select_offsets(0, end))
        if fetched.error is not None:
            self.fail(fetched.error, str(partition))
        elif end is not None and fetched.next_offset >= end:
            fetcher.stop(partition)

    def _print_run(self, partition: TopicPartition, run: RecordRun) -> None:
        """Print the records of a run that pass the filters, up to the limit of --max-messages.

        Callers stop when `_left` is 0; a group member then commits up to `_last_offset`.
        """
        # Load the compiled record reader only after a few thousand records.
        self._bulk.count(run.record_count)
        if self.rate_line is not None:
            self._read_count += run.record_count
            self._read_bytes += sum(map(len, filter(None, run.values)))
            self.rate_line.update(self._read_count, self._read_bytes)
        decoded = None if self.decoding is None else self.decoding.decoded(run)
        if self.filters.picks_some:
            places = self.filters.places(run if decoded is None else decoded.texts(run))
            run = run.at_places(places)
            decoded = None if decoded is None else decoded.at_places(places)
        if self._left is not None:
            run = run.slice(0, self._left)
            decoded = None if decoded is None else decoded.first(self._left)
            self._left -= run.record_count
        if run.record_count:
            self._last_offset = run.offsets[-1]
            self._sink.write(partition, run, decoded)
