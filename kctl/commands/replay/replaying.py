"""Implementation of `kctl replay`: read logs in order of time, wait, send, count.

Ctrl-C ends the reading; records read up to then are still sent, unless a second Ctrl-C follows.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from engine.client.batch_sender import BatchResult
from engine.client.blocking import KafkaClient
from engine.client.producing import OutgoingRecord, Producer, ProducerCallbacks
from engine.errors import EngineError
from engine.host.real import RealFiles
from engine.inspection.replay import (
    Pace,
    ReplayBounds,
    SourceRecord,
    number_of,
    partitions_of,
    source_records,
)
from engine.log.directory.log_dir import PartitionFolder, find_log_dir
from engine.records.record import Header
from kctl import exits
from kctl.arguments import UnreadableArgument, counted
from kctl.connect import ClusterOptions, connect
from kctl.console import notify, report_error
from kctl.interrupts import HeldInterrupts, deferred_interrupts
from kctl.numbers import shortened
from kctl.offset_points import PointKind, parse_point
from kctl.render.rate_line import RateLine

#: Longest single wait in ms: in between, progress is shown and batches are sent.
_WAIT_MS = 200
#: Range of the speed factor: from one second in eleven days to faster than any machine.
_SPEED_MIN, _SPEED_MAX = 0.000001, 1_000_000_000.0


class ReplayRequest(NamedTuple):
    """The options of `kctl replay`."""

    path: str
    to: str
    topic: str | None
    partition: int | None
    speed: str
    start: str | None
    until: str | None
    max_records: int | None
    new_timestamps: bool
    source_headers: bool


class TooFewPartitions(EngineError):
    """The target topic has fewer partitions than the replayed logs."""

    exit_code = exits.USAGE

    def __init__(self, topic: str, count: int, needed: int) -> None:
        super().__init__(f"{topic} has {count} partitions, the logs go up to number {needed - 1}")
        self.hint = f"`kctl topics alter {topic} -p {needed}`, or --partition sends all to one"
        self.topic = topic
        self.count = count
        self.needed = needed


def replay_logs(options: ClusterOptions, request: ReplayRequest) -> int:
    """Send the records of copied logs to a topic at their original pace; returns the exit code.

    Errors: those of the log directory and of options, TooFewPartitions.
    """
    speed = parse_speed(request.speed)
    bounds = _parse_bounds(request, time.time_ns() // 1_000_000)
    files = RealFiles()
    partitions = partitions_of(find_log_dir(files, request.path), request.topic)
    with connect(options) as client:
        _check_partitions(client, request, partitions)
        report = _Report(client, sum(folder.files.log_bytes for folder in partitions))
        records = source_records(files, partitions, bounds, on_read=report.read)
        producer = Producer(client, None, ProducerCallbacks(on_retry=report.on_retry))
        try:
            with deferred_interrupts() as interrupts:
                run = _Run(client, producer, request, report, interrupts)
                run.send_all(islice(records, request.max_records), Pace(speed))
        finally:
            report.close()
    return report.exit_code


def parse_speed(text: str) -> float | None:
    """Parse a speed factor such as `10x`; None for `max`, without pauses.

    Errors: UnreadableArgument.
    """
    if text == "max":
        return None
    try:
        factor = float(text.removesuffix("x"))
    except ValueError:
        factor = 0.0
    if not _SPEED_MIN <= factor <= _SPEED_MAX:
        expected = f"1x, 10x, 0.5x or max; from {_SPEED_MIN}x to {_SPEED_MAX:.0f}x"
        raise UnreadableArgument("a value of --speed", shortened(text), expected)
    return factor


def _parse_bounds(request: ReplayRequest, now_ms: int) -> ReplayBounds:
    """Return the bounds of `--from` and `--until`, each an offset or a time in ms."""
    start, until = request.start, request.until
    from_offset, from_ms = _parse_bound("--from", start, now_ms) if start else (None, None)
    to_offset, to_ms = _parse_bound("--until", until, now_ms) if until else (None, None)
    return ReplayBounds(from_offset, to_offset, from_ms, to_ms)


def _parse_bound(option: str, text: str, now_ms: int) -> tuple[int | None, int | None]:
    """Parse a bound into (offset, time in ms), of which one is None; raises UnreadableArgument."""
    point = parse_point(text, now_ms)
    if point.kind is PointKind.OFFSET:
        return point.number, None
    if point.is_time:
        return None, point.number
    expected = "an offset, -1h, yesterday, @MILLISECONDS or 2026-01-31T12:00:00Z"
    raise UnreadableArgument(f"a value of {option}", text, expected)


def _check_partitions(
    client: KafkaClient, request: ReplayRequest, partitions: list[PartitionFolder]
) -> None:
    """Raise TooFewPartitions if the target topic lacks a partition that records go to.

    That is the number of each source partition, or that of --partition.
    """
    count = len(client.view_of_existing([request.to]).topics[request.to].partitions)
    needed = 1 + (
        max(map(number_of, partitions)) if request.partition is None else request.partition
    )
    if needed > count:
        raise TooFewPartitions(request.to, count, needed)


class _Run:
    """One run: from the first record to the result of the last batch."""

    def __init__(
        self,
        client: KafkaClient,
        producer: Producer,
        request: ReplayRequest,
        report: _Report,
        interrupts: HeldInterrupts,
    ) -> None:
        """Create a run that sends records to the target topic; `interrupts` defers Ctrl-C."""
        self._clock = client.clock
        self._producer = producer
        self._request = request
        self._report = report
        self._interrupts = interrupts

    def send_all(self, records: Iterable[SourceRecord], pace: Pace) -> None:
        """Send all records at their pace, until the first error.

        Also after an error or Ctrl-C, the records that were read are sent and counted.
        """
        try:
            for record in self._paced(records, pace):
                place = self._report.note(record)
                self._producer.add(self._outgoing(record), place)
                self._report.take(self._producer.poll(0) if not place % 1000 else ())
                if self._report.exit_code != exits.OK:
                    break
        finally:
            if not self._interrupts.is_urgent:
                self._report.take(self._producer.flush())

    def _paced(self, records: Iterable[SourceRecord], pace: Pace) -> Iterator[SourceRecord]:
        """Yield each record at the time that `pace` gives it, sending batches while waiting."""
        for record in records:
            due_ms = pace.due_ms(record.order_ms, self._clock.monotonic_ms())
            while (left_ms := due_ms - self._clock.monotonic_ms()) > 0:
                self._report.take(self._producer.poll(0))
                with self._interrupts.allowed():
                    time.sleep(min(left_ms, _WAIT_MS) / 1000)
            yield record

    def _outgoing(self, record: SourceRecord) -> OutgoingRecord:
        """Return the record to send to the target topic.

        Its timestamp is that of the source, unless --new-timestamps is given. The producer fills in
        a timestamp or partition that is None.
        """
        request = self._request
        headers = record.headers
        if request.source_headers:
            headers += _source_headers(record)
        return OutgoingRecord(
            request.to,
            record.key,
            record.value,
            headers,
            None if request.new_timestamps or record.timestamp_ms < 0 else record.timestamp_ms,
            record.partition if request.partition is None else request.partition,
        )


def _source_headers(record: SourceRecord) -> tuple[Header, ...]:
    """Return headers with topic, partition and offset of the source record."""
    return (
        ("replay.topic", record.topic.encode()),
        ("replay.partition", b"%d" % record.partition),
        ("replay.offset", b"%d" % record.offset),
    )


class _Report:
    """Counts read and stored records, and prints progress."""

    def __init__(self, client: KafkaClient, total_bytes: int) -> None:
        """Create the report of a replay; `total_bytes` is the input's size, for the progress."""
        self._rate_line = RateLine(client.clock, total_bytes=total_bytes)
        self._read_bytes = 0
        self._stored = 0
        #: Source partition and offset of each record without a result, by place.
        self._places: dict[int, tuple[int, int]] = {}
        self._next_place = 1
        #: The highest stored offset of each source partition.
        self._ends: dict[int, int] = {}
        self.exit_code = exits.OK

    def read(self, size_bytes: int) -> None:
        """Count bytes of the source as read, for the progress."""
        self._read_bytes += size_bytes

    def note(self, record: SourceRecord) -> int:
        """Note from which partition and offset a record comes; return the place to send it with.

        The result of its batch has this place.
        """
        place, self._next_place = self._next_place, self._next_place + 1
        self._places[place] = record.partition, record.offset
        return place

    def take(self, results: Iterable[BatchResult]) -> None:
        """Count the stored records of batches, and print the errors of failed batches."""
        for result in results:
            origins = [self._places.pop(place) for place in result.batch.places]
            if result.error is not None:
                self._rate_line.clear()
                partition, offset = origins[0]
                report_error(result.error, f"offset {offset} of partition {partition}")
                self.exit_code = max(
                    self.exit_code, getattr(result.error, "exit_code", exits.FAILED)
                )
                continue
            self._stored += len(origins)
            for partition, offset in origins:
                self._ends[partition] = max(self._ends.get(partition, -1), offset)
        self._rate_line.update(self._stored, self._read_bytes)

    def on_retry(self, error: EngineError) -> None:
        """Print that batches are sent again after an error."""
        self._rate_line.clear()
        notify(f"sending again: {error}")

    def close(self) -> None:
        """Print the number of stored records, and the highest stored offset of each partition."""
        self._rate_line.clear()
        ends = ", ".join(f"{number}: {end}" for number, end in sorted(self._ends.items()))
        notify(counted(self._stored, "record") + (f", up to offsets {ends}" if ends else ""))
