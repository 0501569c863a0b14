"""What `kctl produce` does: reads stdin, makes records, sends them in batches.

A batch leaves when it is full, when stdin ends, or when stdin has been quiet for a moment: so
`tail -f log | kctl produce` is prompt and a large file goes in large batches.

Ctrl-C ends the reading; what was read before is still sent, unless Ctrl-C comes once more.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, NamedTuple

from engine.client.producing import (
    ACKS_ALL,
    ACKS_LEADER,
    ACKS_NONE,
    OutgoingRecord,
    Produced,
    Producer,
    ProducerOptions,
)
from engine.errors import EngineError
from engine.limits import PRODUCE_LINE_BYTES_MAX
from engine.model import TopicPartition
from engine.records.codec import Codec
from engine.records.record import Header
from kctl import exits
from kctl.asking import report_error, say
from kctl.connect import ClusterOptions, connect
from kctl.interrupts import HeldInterrupts, held_interrupts
from kctl.record_rows import Keep, UnreadableRecord, parse_record
from kctl.render import Column, RowWriter, check_format
from kctl.words import UnreadableWord

_ACKS = {"all": ACKS_ALL, "-1": ACKS_ALL, "1": ACKS_LEADER, "0": ACKS_NONE}
_CODECS = {codec.name.lower(): codec for codec in Codec}
_INPUTS = ("lines", "ndjson")
_READ_BYTES = 1 << 16
_QUIET_S = 0.05

BATCH_COLUMNS = (
    Column("topic", "TOPIC"),
    Column("partition", "PARTITION", right=True),
    Column("base_offset", "OFFSET", right=True),
    Column("record_count", "RECORDS", right=True),
)


class ProduceRequest(NamedTuple):
    """The options of `kctl produce`."""

    topic: str
    key_delimiter: str | None
    key: str | None
    headers: list[str]
    null: str | None
    partition: int | None
    compression: str
    acks: str
    input: str
    keep_partitions: bool
    new_timestamps: bool
    output: str | None


class LineTooLong(EngineError):
    """A line is longer than any record may be."""

    def __init__(self, line: int) -> None:
        super().__init__(f"line {line} is longer than {PRODUCE_LINE_BYTES_MAX} bytes")
        self.line = line


def produce_records(options: ClusterOptions, request: ProduceRequest) -> int:
    """Send what comes from stdin; returns the exit code."""
    producer_options = ProducerOptions(
        _word("--acks", request.acks, _ACKS),
        _word("--compression", request.compression, _CODECS),
    )
    parse = _Parser(request)
    report = _Report(request.output)
    with connect(options) as client:
        client.view_of_existing([request.topic])
        producer = Producer(client, producer_options)
        try:
            with held_interrupts() as interrupts:
                _send_all(producer, parse, report, interrupts)
        finally:
            # Also of a cluster that is gone, it counts what was stored before.
            report.close()
    return report.exit_code


def _send_all(
    producer: Producer, parse: _Parser, report: _Report, interrupts: HeldInterrupts
) -> None:
    """Send what comes from stdin; whatever ends that, what came before is stored and counted."""
    try:
        _send_lines(producer, parse, report, interrupts)
    except (UnreadableRecord, LineTooLong) as error:
        report.take(producer.flush())
        report.fail(error)
    except KeyboardInterrupt:
        report.take(producer.flush())
        raise
    else:
        report.take(producer.flush())


def _send_lines(
    producer: Producer, parse: _Parser, report: _Report, interrupts: HeldInterrupts
) -> None:
    for number, line in numbered_lines(sys.stdin.buffer, interrupts):
        if line is None:
            report.take(producer.flush())
        elif line or not parse.skips_empty:
            report.take(producer.add(parse(line, number)))
        if report.exit_code != exits.OK:
            return


def _word(option: str, text: str, words: Mapping[str, Any]) -> Any:
    if text not in words:
        raise UnreadableWord(f"a value of {option}", text, ", ".join(words))
    return words[text]


class _Parser:
    """Makes records of lines."""

    def __init__(self, request: ProduceRequest) -> None:
        if request.input not in _INPUTS:
            raise UnreadableWord("a value of --input", request.input, ", ".join(_INPUTS))
        self._request = request
        self._is_ndjson = request.input == "ndjson"
        self._keep = Keep(request.keep_partitions, not request.new_timestamps)
        self._delimiter = _encoded(request.key_delimiter)
        self._null = _encoded(request.null)
        self._key = _encoded(request.key)
        self._headers = tuple(_header(text) for text in request.headers)
        _check_options(request, is_ndjson=self._is_ndjson)

    @property
    def skips_empty(self) -> bool:
        """Tell whether empty lines are passed over: as records, they are empty values."""
        return self._is_ndjson

    def __call__(self, line: bytes, number: int) -> OutgoingRecord:
        """Return the record of a line; raises UnreadableRecord."""
        if self._is_ndjson:
            record = parse_record(line, number, self._request.topic, self._keep)
            record = record._replace(headers=record.headers + self._headers)
            if self._request.partition is not None:
                record = record._replace(partition=self._request.partition)
            return record
        key, value = self._key, line
        if self._delimiter is not None:
            before, delimiter, after = line.partition(self._delimiter)
            if delimiter:
                key, value = before, after
        return OutgoingRecord(
            self._request.topic,
            self._nullable(key),
            self._nullable(value),
            self._headers,
            None,
            self._request.partition,
        )

    def _nullable(self, content: bytes | None) -> bytes | None:
        return None if content == self._null else content


def _check_options(request: ProduceRequest, *, is_ndjson: bool) -> None:
    """Refuse options that would have no effect; raises UnreadableWord."""
    of_lines = {
        "--key-delimiter": request.key_delimiter,
        "--key": request.key,
        "--null": request.null,
    }
    of_ndjson = {
        "--keep-partitions": request.keep_partitions,
        "--new-timestamps": request.new_timestamps,
    }
    misplaced = [name for name, value in (of_lines if is_ndjson else of_ndjson).items() if value]
    if misplaced:
        other = _INPUTS[0] if is_ndjson else _INPUTS[1]
        raise UnreadableWord(
            f"an option of --input {request.input}", misplaced[0], f"--input {other}"
        )
    if request.key_delimiter == "":
        raise UnreadableWord("a delimiter", "", "one or more characters")


def _encoded(text: str | None) -> bytes | None:
    # What the shell passed on as bytes that are not UTF-8 comes back as the same bytes.
    return None if text is None else os.fsencode(text)


def _header(text: str) -> Header:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise UnreadableWord("a header", text, "NAME=VALUE")
    return name, os.fsencode(value)


class _Report:
    """Counts what was stored, prints rows if they are wanted."""

    def __init__(self, output: str | None) -> None:
        self._writer = None
        if output is not None:
            check_format(output)
            self._writer = RowWriter(BATCH_COLUMNS, output)
        self._count = 0
        self._failures = 0
        self.exit_code = exits.OK

    def take(self, results: Mapping[TopicPartition, Produced | EngineError]) -> None:
        """Note results of batches."""
        for partition, result in results.items():
            if isinstance(result, EngineError):
                self.fail(result, str(partition))
                continue
            self._count += result.record_count
            if self._writer is not None:
                offset = result.base_offset
                row = partition._asdict() | {
                    "base_offset": offset if offset >= 0 else None,
                    "record_count": result.record_count,
                }
                self._writer.write(row)

    def fail(self, error: EngineError, about: str | None = None) -> None:
        """Tell an error."""
        report_error(error, about)
        self._failures += 1
        self.exit_code = max(self.exit_code, getattr(error, "exit_code", exits.FAILED))

    def close(self) -> None:
        """Complete the rows and tell how many records were sent."""
        if self._writer is not None:
            self._writer.close(failures=self._failures)
        say(f"{self._count} records")


def numbered_lines(
    stream: BinaryIO, interrupts: HeldInterrupts
) -> Iterator[tuple[int, bytes | None]]:
    """Yield lines without their ends, numbered from 1; None when the input pauses.

    Errors: LineTooLong. KeyboardInterrupt comes behind the lines that have been read.
    """
    number = 0
    rest = b""
    for chunk in _chunks(stream, interrupts):
        if chunk is None:
            yield number, None
            continue
        lines = (rest + chunk).split(b"\n") if b"\n" in chunk else [rest + chunk]
        rest = lines.pop()
        for line in lines:
            number += 1
            yield number, line
        if len(rest) > PRODUCE_LINE_BYTES_MAX:
            raise LineTooLong(number + 1)
    if rest:
        yield number + 1, rest


def _chunks(stream: BinaryIO, interrupts: HeldInterrupts) -> Iterator[bytes | None]:
    """Yield what can be read, and None each time that nothing can for a moment."""
    try:
        descriptor = stream.fileno()
    except OSError:
        yield from iter(lambda: stream.read(_READ_BYTES), b"")
        return
    from select import select

    while True:
        with interrupts.allowed():
            readable, _, _ = select([descriptor], [], [], _QUIET_S)
        if not readable:
            yield None
            with interrupts.allowed():
                select([descriptor], [], [])
        chunk = os.read(descriptor, _READ_BYTES)
        if not chunk:
            return
        yield chunk
