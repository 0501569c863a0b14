"""From lines and files to records, by the input options of `kctl produce`."""

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
from kctl.escapes import unescaped
from kctl.input_lines import InputLines
from kctl.record_input import Keep, parse_json, parse_record

LINES = "lines"
NDJSON = "ndjson"
_INPUTS = (LINES, NDJSON)


class FileTooLong(EngineError):
    """A file is longer than any record may be."""

    hint = "no broker takes a request as long (socket.request.max.bytes); split it"

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} is longer than {PRODUCE_LINE_BYTES_MAX} bytes")
        self.path = path


class RecordSink(Protocol):
    """Accepts records, as `Producer` does."""

    def add(self, record: OutgoingRecord, place: int = ...) -> None:
        """Add a record."""
        ...

    def add_fast(self, records: OutgoingValues, places: Sequence[int]) -> None:
        """Add records on the fast path."""
        ...


class RecordSource(Protocol):
    """Makes records of lines; `skipped` are the lines that are none, as empty ones."""

    skipped: InputPlaces

    def feed(self, producer: RecordSink, chunk: InputLines) -> None:
        """Add the records of lines to a producer. Errors: UnreadableRecord, ApiError."""
        ...


def record_source(request: ProduceRequest) -> RecordSource | FileRecords:
    """Return the source of records that the options define; raises UnreadableArgument."""
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
    """Refuse options that would have no effect; raises UnreadableArgument."""
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
    """Return the kind of input, and the option that requested it."""
    if request.files:
        return "--file", "--file"
    if request.value_json:
        return "--value-json", "--value-json"
    return request.input, f"--input {request.input}"


def _input_kinds_text(kinds: tuple[str, ...]) -> str:
    """Return kinds of input as the options that choose them."""
    return ", ".join(kind if kind.startswith("-") else f"--input {kind}" for kind in kinds)


def _encoded(text: str | None) -> bytes | None:
    # Arguments that are not UTF-8 come back as their original bytes.
    return None if text is None else os.fsencode(text)


def _headers(request: ProduceRequest) -> tuple[Header, ...]:
    return tuple(_header(text) for text in request.headers)


def _header(text: str) -> Header:
    """Return a header of NAME=VALUE; raises UnreadableArgument."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise UnreadableArgument("a header", text, "NAME=VALUE")
    return name, os.fsencode(value)


class _FromLine:
    """Skips the lines before a given one."""

    def __init__(self, source: RecordSource, from_line: int) -> None:
        self._source = source
        self._from_line = from_line
        self.skipped = source.skipped

    def feed(self, producer: RecordSink, chunk: InputLines) -> None:
        """Add the records of the lines that are selected."""
        skipped_count = self._from_line - chunk.first
        if skipped_count <= 0:
            self._source.feed(producer, chunk)
        elif skipped_count < len(chunk.lines):
            self._source.feed(producer, InputLines(self._from_line, chunk.lines[skipped_count:]))


class _Lines:
    """A record a line: key and value around a delimiter, or the value alone."""

    def __init__(self, request: ProduceRequest) -> None:
        """Read the delimiter and the fixed key, headers and partition of `request`."""
        #: Places of lines without a record.
        self.skipped = InputPlaces()
        delimiter = request.key_delimiter
        self._delimiter = None if delimiter is None else unescaped(delimiter, "a delimiter")
        #: Bytes of a key or value that mean null; None if no text does.
        self._null = _encoded(request.null)
        key = _encoded(request.key)
        self._partition = request.partition
        #: What all records have in common: the fast path fills in the values.
        self._fast = OutgoingValues(
            request.topic,
            (),
            key=None if key == self._null else key,
            headers=_headers(request),
            partition=request.partition,
        )

    def feed(self, producer: RecordSink, chunk: InputLines) -> None:
        """Add the records of lines; runs of one form on the fast path."""
        if not self._feed_fast(producer, chunk):
            for place, line in zip(chunk.places, chunk.lines, strict=True):
                producer.add(self._record(line), place)

    def _feed_fast(self, producer: RecordSink, chunk: InputLines) -> bool:
        """Add the records in one call if every line has a key or none can, and nothing is null."""
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

    def _record(self, line: bytes) -> OutgoingRecord:
        """Return the record of a line; the part before the delimiter is its key."""
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
        """Return a key or value, None for the marker that stands for null."""
        return None if content == self._null else content


class _Rows:
    """A record a row, as `kctl consume -o ndjson` prints them; empty lines are none."""

    def __init__(self, request: ProduceRequest) -> None:
        """Read the fixed headers and partition of `request`."""
        #: Places of lines without a record.
        self.skipped = InputPlaces()
        self._topic = request.topic
        self._partition = request.partition
        self._headers = _headers(request)
        #: Which fields of a row are kept: partitions, timestamps.
        self._keep = Keep(request.keep_partitions, not request.new_timestamps)

    def feed(self, producer: RecordSink, chunk: InputLines) -> None:
        """Add the records of rows."""
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
    """Each JSON document is the value of one record, byte for byte; empty lines are skipped."""

    def __init__(self, request: ProduceRequest) -> None:
        """Read the fixed key, headers and partition of `request`."""
        #: Places of lines without a record.
        self.skipped = InputPlaces()
        #: What all records have in common: the fast path fills in the values.
        self._fast = OutgoingValues(
            request.topic,
            (),
            key=_encoded(request.key),
            headers=_headers(request),
            partition=request.partition,
        )

    def feed(self, producer: RecordSink, chunk: InputLines) -> None:
        """Add the records of documents, including those before the first malformed one."""
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
    """A record a file, which is its value byte for byte; `-` is stdin."""

    def __init__(self, request: ProduceRequest) -> None:
        self._request = request
        self._headers = _headers(request)

    def feed(self, producer: RecordSink) -> None:
        """Add a record for each file.

        Errors: FileMissing, FileRefused, FileTooLong, ApiError.
        """
        request = self._request
        for place, path in enumerate(request.files, 1):
            record = OutgoingRecord(
                request.topic,
                _encoded(request.key),
                _content(path),
                self._headers,
                None,
                request.partition,
            )
            producer.add(record, place)


def _content(path: str) -> bytes:
    """Return a file's bytes, those of stdin for `-`; raises FileTooLong above the limit."""
    if path == "-":
        import sys

        # One byte more than the limit shows that there is too much.
        content = sys.stdin.buffer.read(PRODUCE_LINE_BYTES_MAX + 1)
        if len(content) > PRODUCE_LINE_BYTES_MAX:
            raise FileTooLong(path)
        return content
    from engine.host.real import RealFiles

    files = RealFiles()
    if files.size_bytes(path) > PRODUCE_LINE_BYTES_MAX:
        raise FileTooLong(path)
    return files.read_bytes(path)
