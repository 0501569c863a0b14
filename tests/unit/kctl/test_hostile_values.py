"""Records that anybody may have written, through every format and every decoder."""

from __future__ import annotations

import contextlib
import csv
import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.dump.decoders import DECODER_NAMES, PairDecoder
from engine.dump.filters import Filters
from engine.dump.json_condition import parse_condition
from engine.dump.rows import parse_decoded as decoded_by_dump
from engine.errors import EngineError
from engine.model import TopicPartition
from engine.records.record import NO_TIMESTAMP, Record, TimestampType
from engine.schemas.decoding import SchemaDecoder
from engine.schemas.schema import Schema, SchemaKind
from kctl.commands.consume.consuming import RowSink, Sink, TextSink
from kctl.record_decoding import NOTHING, Decoders, RecordDecoding
from kctl.record_rows import RECORD_COLUMNS
from kctl.render import MARKUPS, TABLES, RowWriter
from tests.runs import run_of

P0 = TopicPartition("t", 0)
CREATED = TimestampType.CREATE_TIME
ROWS = ("json", "ndjson", "yaml", "csv", *TABLES, *MARKUPS)


def nested(depth: int, opening: bytes = b"[", closing: bytes = b"]") -> bytes:
    return opening * depth + b"1" + closing * depth


HOSTILE = (
    nested(100_000),
    nested(150),
    nested(199),
    nested(201),
    nested(900),
    nested(150, b'{"a":', b"}"),
    nested(5_000, b'{"a":', b"}"),
    b"[" * 100_000,
    b'"\\ud800"',
    b'{"\\udfff": 1}',
    b"NaN",
    b'{"a": -Infinity}',
    b"[1e400, -1e400]",
    b"9" * 5_000,
    b'"\\u0000\\u001b[31m\\u202e\\ufffe"',
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"",
    b"\0" * 9,
    b'=1+1,"\r\n|<script>&',
    b"- a: &x *x !!python/object:os.system",
    b"null",
    b'"a text"',
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters())
DOCUMENTS = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters()), inner)
)
VALUES = st.sampled_from(HOSTILE) | st.binary() | DOCUMENTS.map(lambda d: json.dumps(d).encode())


@contextlib.contextmanager
def printed() -> Iterator[io.BytesIO]:
    """Take what is printed, as strictly as a pipe does."""
    raw = io.BytesIO()
    stdout = io.TextIOWrapper(raw, encoding="utf-8", newline="")
    with contextlib.redirect_stdout(stdout):
        yield raw
    stdout.detach()


def consumed(sink: Sink, values: list[bytes], *, schema: bool) -> tuple[list[Any], list[str]]:
    """Write the values as `kctl consume` does; returns what they say, and the errors."""
    errors: list[EngineError] = []
    one = Schema(SchemaKind.JSON, "{}") if schema else None
    decoder = SchemaDecoder(None, one)
    decoding = RecordDecoding(Decoders(decoder, decoder), errors.append)
    records = [
        Record(offset, NO_TIMESTAMP, CREATED, value, value, (("h", value),))
        for offset, value in enumerate(values)
    ]
    run = run_of(*records)
    decoded = decoding.decoded(run) if schema else None
    sink.write(P0, run, decoded)
    sink.close(failures=len(errors))
    return [] if decoded is None else list(decoded.values), [str(error) for error in errors]


def strict(text: str | bytes) -> Any:
    def refuse(name: str) -> Any:
        raise AssertionError(f"{name} is no JSON")

    return json.loads(text, parse_constant=refuse)


def rows_in(output: str, raw: bytes) -> list[Any]:
    text = raw.decode()
    if output == "json":
        return list(strict(text))
    if output == "ndjson":
        return [strict(line) for line in text.split("\n")[:-1]]
    if output == "yaml":
        return list(yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    # Python's reader has a bound of its own, 128 KiB.
    csv.field_size_limit(1 << 30)
    return list(csv.DictReader(io.StringIO(text, newline="")))


@pytest.mark.parametrize("output", ROWS)
@pytest.mark.parametrize("schema", [False, True])
@settings(max_examples=40, deadline=None)
@given(values=st.lists(VALUES, min_size=1, max_size=5))
@example(values=list(HOSTILE))
def test_every_record_is_a_row_of_every_format(
    output: str, schema: bool, values: list[bytes]
) -> None:
    with printed() as raw:
        consumed(RowSink(output, is_decoded=schema), values, schema=schema)
    if output in ("json", "ndjson", "yaml", "csv"):
        rows = rows_in(output, raw.getvalue())
        assert list(range(len(values))) == [int(row["offset"]) for row in rows]
    else:
        raw.getvalue().decode()


@pytest.mark.parametrize("schema", [False, True])
@settings(max_examples=40, deadline=None)
@given(values=st.lists(VALUES, min_size=1, max_size=5))
@example(values=list(HOSTILE))
def test_every_record_is_a_line_of_text(schema: bool, values: list[bytes]) -> None:
    for is_visible in (False, True):
        with printed() as raw:
            sink = TextSink("%o|%K\\0", is_visible=is_visible)
            consumed(sink, values, schema=schema)
        assert len(values) == raw.getvalue().count(b"\0")


def test_files_that_cannot_be_shown_are_reported_with_their_reason_and_the_next_one_follows() -> (
    None
):
    with printed():
        sink = RowSink("ndjson", is_decoded=True)
        values = [nested(100_000), b'"\\ud800"', b"[1e400]", nested(201), nested(150), b"7"]
        said, errors = consumed(sink, values, schema=True)
    assert [NOTHING] * 4 == said[:4]
    assert [strict(nested(150)), 7] == said[4:]
    for error, reason in zip(
        errors, ("nested", "half of a surrogate pair", "1e400", "nested"), strict=False
    ):
        assert reason in error


@pytest.mark.parametrize("name", DECODER_NAMES)
@settings(max_examples=60, deadline=None)
@given(value=VALUES)
def test_every_decoder_of_a_dump_gives_bytes_or_says_why_not_and_goes_on(
    name: str, value: bytes
) -> None:
    decoder = PairDecoder(name, name, "3.9.1")
    decoder.open()
    _, text = decoder.texts(0, value, value)
    assert text is not None
    if text.startswith(b"undecodable: "):
        assert name in ("int", "long", "schema-id")
    strict(json.dumps(decoded_by_dump(text), allow_nan=False))
    json.dumps(decoded_by_dump(text), ensure_ascii=False).encode()


@pytest.mark.parametrize(
    ("name", "raw", "text"),
    [
        ("int", b"abc", b"undecodable: an int has 4 bytes, here are 3: 616263"),
        ("long", b"", b"undecodable: a long has 8 bytes, here are 0: "),
        (
            "schema-id",
            b"\0\0",
            b"undecodable: the head of a schema envelope has 5 bytes, here are 2: 0000",
        ),
        (
            "schema-id",
            b"\x80" + bytes(4),
            b"undecodable: the first byte is 128, not the 0 of a schema envelope: 8000000000",
        ),
    ],
)
def test_what_a_decoder_cannot_read_is_shown_as_that_with_the_reason(
    name: str, raw: bytes, text: bytes
) -> None:
    decoder = PairDecoder("string", name, "3.9.1")
    decoder.open()
    assert (b"k", text) == decoder.texts(0, b"k", raw)


@pytest.mark.parametrize("value", HOSTILE)
def test_every_decoder_takes_what_is_hostile(value: bytes) -> None:
    for name in ("string", "bytes", "hex", "json"):
        decoder = PairDecoder(name, name, "3.9.1")
        decoder.open()
        _, text = decoder.texts(0, None, value)
        assert text is not None
        json.dumps(decoded_by_dump(text), ensure_ascii=False, allow_nan=False).encode()


@pytest.mark.parametrize("path", ["$..a", "$.a=1", "$[?@.a > 1]", "$..*", "$=x"])
def test_a_path_is_searched_in_deep_values_and_refused_where_that_cannot_be(path: str) -> None:
    told: list[EngineError] = []
    filters = Filters(json_conditions=(parse_condition(path),), on_unjudged=told.append)
    records = [Record(n, 0, CREATED, None, value) for n, value in enumerate((*HOSTILE, b'{"a":1}'))]
    places = filters.places(run_of(*records))
    deep = {HOSTILE.index(nested(150, b'{"a":', b"}"))}
    assert path != "$..a" or deep <= set(places)
    offsets = {error.offset for error in told}  # type: ignore[attr-defined]
    assert {0, HOSTILE.index(b"[" * 100_000)} <= offsets
    assert not offsets & set(places)


def test_a_path_finds_nothing_in_numbers_of_java() -> None:
    filters = Filters(json_conditions=(parse_condition("$"),))
    values = (b"\0\0\0\x31", b"\0\x31", b"1", b"\xef\xbb\xbf1")
    run = run_of(*(Record(n, 0, CREATED, None, value) for n, value in enumerate(values)))
    assert [2, 3] == list(filters.places(run))


def test_a_table_prints_no_row_twice_after_an_error() -> None:
    class Full(io.StringIO):
        def write(self, text: str) -> int:
            if "second" in text:
                raise OSError("full")
            return super().write(text)

    stream = Full()
    writer = RowWriter(RECORD_COLUMNS, "table", stream, is_stream=True)
    for value in ("first", "second"):
        writer.write({"value": value})
    with pytest.raises(OSError, match="full"):
        writer.flush()
    writer.close(failures=1)
    assert 1 == stream.getvalue().count("first")
