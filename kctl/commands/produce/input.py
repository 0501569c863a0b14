"""Turn lines and files into records, by the input options of `kctl produce`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import repeat
from typing import Protocol

from engine.client.outgoing_batch import InputPlaces
from engine.client.producing import OutgoingRecord, OutgoingValues
from engine.errors import EngineError
from engine.limits import PRODUCE_LINE_BYTES_MAX
from engine.records.record import Header
from kctl.arguments import UnreadableArgument
from kctl.commands.produce.request import ProduceRequest
from kctl.escapes import decode_escapes
from kctl.input_lines import InputLines
from kctl.record_input import Keep, parse_json, parse_record

LINES = "lines"
NDJSON = "ndjson"
_INPUTS = (LINES, NDJSON)


class FileTooLong(EngineError):
    """A file is longer than the longest record."""

    hint = "no broker takes a request as long (socket.request.max.bytes); split it"

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} is longer than {PRODUCE_LINE_BYTES_MAX} bytes")
        self.path = path


class RecordSink(Protocol):
    """Accepts records to send, like `Producer`."""

    def add(self, record: OutgoingRecord, place: int = ...) -> None:
        """Add a record to the producer; `place` is its line or file number, from 1, for errors."""
        ...

    def add_fast(self, records: OutgoingValues, places: Sequence[int]) -> None:
        """Add records with equal key, headers and partition in one call."""
        ...


class RecordSource(Protocol):
    """Makes records from lines; `skipped` has the numbers of lines without a record."""

    skipped: InputPlaces

    def feed(self, producer: RecordSink, chunk: InputLines) -> None:
        """Convert lines to records, and add them to a producer.

        Errors: UnreadableRecord, ApiError.
        """
        ...


def create_record_source(request: ProduceRequest) -> RecordSource | FileRecords:
    """Return the source of records for the input options; raises UnreadableArgument.

    The source reads lines, JSON documents, NDJSON rows, or files of one record each.
    """
    if request.input not in _INPUTS:
        raise UnreadableArgument("a value of --input", request.input, ", ".join(_INPUTS))
    _check_options(request)
    source: RecordSource | FileRecords
    if request.files:
        source = FileRecords(request)
    elif request.value_json:
        source = _Documents(request)
    elif request.input == NDJSON:
        source = _Rows(request)
    else:
        source = _Lines(request)
    if request.from_line > 1 and not isinstance(source, FileRecords):
        source = _FromLine(source, request.from_line)
    return source


def _check_options(request: ProduceRequest) -> None:
    """Raise UnreadableArgument for an option that has no effect on this kind of input."""
    kind, expected = _kind_of_input(request)
    options = {
        "--key-delimiter": (request.key_delimiter, (LINES,)),
        "--key": (request.key, (LINES, "--value-json", "--file")),
        "--null": (request.null, (LINES,)),
        "--keep-partitions": (request.keep_partitions, (NDJSON,)),
        "--new-timestamps": (request.new_timestamps, (NDJSON,)),
        "--from-line": (request.from_line > 1, (LINES, NDJSON, "--value-json")),
    }
    for name, (value, kinds) in options.items():
        if (value or value == "") and kind not in kinds:
            raise UnreadableArgument(f"an option of {expected}", name, _input_kinds_text(kinds))
    if request.value_json and request.files:
        raise UnreadableArgument("an option of --file", "--value-json", "one of both")
    if request.key_delimiter == "":
        raise UnreadableArgument("a delimiter", "", "one or more characters")


def _kind_of_input(request: ProduceRequest) -> tuple[str, str]:
    """Return the kind of input, and the option that selects it, for error messages."""
    if request.files:
        return "--file", "--file"
    if request.value_json:
        return "--value-json", "--value-json"
    return request.input, f"--input {request.input}"


def _input_kinds_text(kinds: tuple[str, ...]) -> str:
    """Return the options that select kinds of input, as text."""
    return ", ".join(kind if kind.startswith("-") else f"--input {kind}" for kind in kinds)


def _encoded(text: str | None) -> bytes | None:
    """Return an argument as bytes, None for None."""
    # Restore the original bytes of an argument that is not UTF-8.
    return None if text is None else os.fsencode(text)


def _headers(request: ProduceRequest) -> tuple[Header, ...]:
    """Return the headers that --header gives to each record; raises UnreadableArgument."""
    return tuple(_parse_header(text) for text in request.headers)


def _parse_header(text: str) -> Header:
    """Parse a header NAME=VALUE; raises UnreadableArgument."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise UnreadableArgument("a header", text, "NAME=VALUE")
    return name, os.fsencode(value)


class _FromLine:
    """Skips the lines before `from_line`, and passes later ones to `source`."""

    def __init__(self, source: RecordSource, from_line: int) -> None:
        self._source = source
        self._from_line = from_line
        self.skipped = source.skipped

    def feed(self, producer: RecordSink, chunk: InputLines) -> None:
        """Pass on the lines from --from-line on; earlier ones were stored by a previous run.

        Lines are numbered from 1.
        """
        skipped_count = self._from_line - chunk.first
        if skipped_count <= 0:
            self._source.feed(producer, chunk)
        elif skipped_count < len(chunk.lines):
            self._source.feed(producer, InputLines(self._from_line, chunk.lines[skipped_count:]))


class _Lines:
    """Makes a record of each line: key and value around a delimiter, or only a value."""

    def __init__(self, request: ProduceRequest) -> None:
        """Create a source of which each line of input is a record, by the options of `request`."""
        #: Numbers of lines without a record.
        self.skipped = InputPlaces()
        delimiter = request.key_delimiter
        self._delimiter = None if delimiter is None else decode_escapes(delimiter, "a delimiter")
        #: Null marker: bytes of a key or value that mean null; None without a marker.
        self._null = _encoded(request.null)
        key = _encoded(request.key)
        self._partition = request.partition
        #: Template of all records, to which the fast path adds the values.
        self._fast = OutgoingValues(
            request.topic,
            (),
            key=None if key == self._null else key,
            headers=_headers(request),
            partition=request.partition,
        )

    def feed(self, producer: RecordSink, chunk: InputLines) -> None:
        """Add a record for each line, all in one call if the lines have the same form."""
        if not self._feed_fast(producer, chunk):
            for place, line in zip(chunk.places, chunk.lines, strict=True):
                producer.add(self._record_of_line(line), place)

    def _feed_fast(self, producer: RecordSink, chunk: InputLines) -> bool:
        """Add all records in one call to `producer`; return False if the lines differ too much.

        Every line must have a delimiter, if one is given, and no key or value may be null.
        """
        fast, null = self._fast, self._null
        keys: Sequence[bytes] | None = None
        values: Sequence[bytes] = chunk.lines
        if self._delimiter is not None:
            parts = map(bytes.partition, chunk.lines, repeat(self._delimiter))
            keys, delimiters, values = zip(*parts, strict=True)
            if not all(delimiters):
                return False
        if null is not None and (null in values or (keys is not None and null in keys)):
            return False
        producer.add_fast(fast._replace(values=values, keys=keys), chunk.places)
        return True

    def _record_of_line(self, line: bytes) -> OutgoingRecord:
        """Return the record of a line; the text before the first delimiter is its key.

        A line without the delimiter is a value without a key of its own.
        """
        key, value = self._fast.key, line
        if self._delimiter is not None:
            before, delimiter, after = line.partition(self._delimiter)
            if delimiter:
                key, value = self._nullable(before), after
        fast = self._fast
        return OutgoingRecord(
            fast.topic, key, self._nullable(value), fast.headers, None, fast.partition
        )

    def _nullable(self, content: bytes) -> bytes | None:
        """Return a key or value, None if it equals the null marker."""
        return None if content == self._null else content


class _Rows:
    """Makes a record of each row that `kctl consume -o ndjson` printed; skips empty lines."""

    def __init__(self, request: ProduceRequest) -> None:
        """Create a source of which each line is a record as NDJSON, as `kctl consume` writes them.

        Headers and partition of `request` are added to, or replace, those of the rows.
        """
        #: Numbers of lines without a record.
        self.skipped = InputPlaces()
        self._topic = request.topic
        self._partition = request.partition
        self._headers = _headers(request)
        #: Whether partitions and timestamps of rows are kept.
        self._keep = Keep(request.keep_partitions, not request.new_timestamps)

    def feed(self, producer: RecordSink, chunk: InputLines) -> None:
        """Parse rows of NDJSON, and add their records to `producer`; empty lines are skipped."""
        for place, line in zip(chunk.places, chunk.lines, strict=True):
            record = None
            if line.strip():
                record = parse_record(line, place, self._topic, self._keep)
            if record is None:
                self.skipped.append(place)
                continue
            if self._headers:
                record = record._replace(headers=record.headers + self._headers)
            if self._partition is not None:
                record = record._replace(partition=self._partition)
            producer.add(record, place)


class _Documents:
    """Makes a record of each JSON document, whose bytes are the value; skips empty lines."""

    def __init__(self, request: ProduceRequest) -> None:
        """Create a source of which each line is a JSON document, checked and sent as a value."""
        #: Numbers of lines without a record.
        self.skipped = InputPlaces()
        #: Template of all records, to which the fast path adds the values.
        self._fast = OutgoingValues(
            request.topic,
            (),
            key=_encoded(request.key),
            headers=_headers(request),
            partition=request.partition,
        )

    def feed(self, producer: RecordSink, chunk: InputLines) -> None:
        """Add a record for each JSON document; a malformed one raises after earlier ones are added.

        Empty lines are noted as skipped. Errors: UnreadableRecord.
        """
        places: list[int] = []
        values: list[bytes] = []
        try:
            for place, line in zip(chunk.places, chunk.lines, strict=True):
                if line.strip():
                    parse_json(line, place)
                    places.append(place)
                    values.append(line)
                else:
                    self.skipped.append(place)
        finally:
            producer.add_fast(self._fast._replace(values=values), places)


class FileRecords:
    """Makes a record of each file, whose bytes are the value; `-` means stdin."""

    def __init__(self, request: ProduceRequest) -> None:
        self._request = request
        self._headers = _headers(request)

    def feed(self, producer: RecordSink) -> None:
        """Add a record for each file of --file; its content is the value.

        Errors: FileMissing, FileRefused, FileTooLong, ApiError.
        """
        request = self._request
        for place, path in enumerate(request.files, 1):
            record = OutgoingRecord(
                request.topic,
                _encoded(request.key),
                _read_content(path),
                self._headers,
                None,
                request.partition,
            )
            producer.add(record, place)


def _read_content(path: str) -> bytes:
    """Return the content of a file, or of stdin for `-`; raises FileTooLong above the limit."""
    if path == "-":
        import sys

        # One byte above the limit reveals that stdin is too long.
        content = sys.stdin.buffer.read(PRODUCE_LINE_BYTES_MAX + 1)
        if len(content) > PRODUCE_LINE_BYTES_MAX:
            raise FileTooLong(path)
        return content
    from engine.host.real import RealFiles

    files = RealFiles()
    if files.size_bytes(path) > PRODUCE_LINE_BYTES_MAX:
        raise FileTooLong(path)
    return files.read_bytes(path)
