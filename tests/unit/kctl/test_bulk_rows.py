"""Rows by the column read as rows one by one do, in every format."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.model import TopicPartition
from engine.records.record import Record, TimestampType
from kctl.record_rows import RECORD_COLUMNS, record_row, run_columns
from kctl.render import Column, RowWriter
from kctl.render.bulk import Numbers, Texts, csv_rows
from kctl.render.rows import FORMATS, MARKUPS
from tests.runs import run_of

KEYS = ("shared", "text", "number", "any", "nowhere", "per%cent")
COLUMNS = tuple(Column(key, key.upper()) for key in KEYS)
SIGNS = st.text(st.sampled_from('a%s",\r\n\\é\x00\ud800'), max_size=4)
VALUES = st.none() | SIGNS | st.integers() | st.booleans() | st.lists(SIGNS, max_size=2)
ROWS = st.lists(st.tuples(st.none() | SIGNS, st.integers(), VALUES), min_size=1, max_size=4)


def _by_row(output: str, rows: list[dict[str, Any]], columns: tuple[Column, ...] = COLUMNS) -> str:
    stream = io.StringIO()
    writer = RowWriter(columns, output, stream)
    for row in rows:
        writer.write(row)
    writer.close()
    return stream.getvalue()


@pytest.mark.parametrize("output", ["json", "ndjson", "csv", "name"])
@given(VALUES, ROWS)
def test_columns_give_the_text_of_rows(
    output: str, shared: Any, rows: list[tuple[Any, ...]]
) -> None:
    texts, numbers, anything = zip(*rows, strict=True)
    stream = io.StringIO()
    writer = RowWriter(COLUMNS, output, stream)
    for _ in range(2):
        writer.write_run(
            {"shared": shared, "per%cent": shared},
            {"text": Texts(texts), "number": Numbers(numbers), "any": anything},
        )
    writer.close()
    expected = [
        {"shared": shared, "per%cent": shared, "text": text, "number": number, "any": any_}
        for text, number, any_ in rows
    ]
    assert _by_row(output, expected * 2) == stream.getvalue()


@given(st.lists(SIGNS, min_size=2, max_size=4))
def test_a_line_of_csv_is_read_back(cells: list[str]) -> None:
    keys = [str(number) for number in range(len(cells))]
    line = csv_rows(
        keys, {}, {key: Texts([cell]) for key, cell in zip(keys, cells, strict=True)}, str
    )
    if "\x00" not in line:
        assert [cells] == list(csv.reader(io.StringIO(line + "\n", newline="")))


contents = st.none() | st.binary(max_size=8) | st.text(max_size=8).map(str.encode)
records = st.builds(
    Record,
    offset=st.integers(0, 1 << 62),
    timestamp_ms=st.sampled_from((-1, 0, 1_767_225_600_123, 1 << 61)),
    timestamp_type=st.just(TimestampType.CREATE_TIME),
    key=contents,
    value=contents,
    headers=st.lists(st.tuples(st.text(max_size=5), contents), max_size=2).map(tuple),
)


@pytest.mark.parametrize("output", [name for name in FORMATS if name not in (*MARKUPS, "name")])
@given(st.lists(records, min_size=1, max_size=4))
def test_the_columns_of_a_run_are_the_rows_of_its_records(output: str, run: list[Record]) -> None:
    partition, is_table = TopicPartition("a%b", 3), output in ("table", "wide", "csv")
    stream = io.StringIO()
    writer = RowWriter(RECORD_COLUMNS, output, stream)
    writer.write_run(*run_columns(partition, run_of(*run), is_table=is_table))
    writer.close()
    rows = [record_row(partition, record, 0, is_table=is_table) for record in run]
    assert _by_row(output, rows, RECORD_COLUMNS) == stream.getvalue()


def test_a_document_that_goes_on_is_one_document() -> None:
    stream = io.StringIO()
    writer = RowWriter(COLUMNS, "json", stream)
    writer.write({"text": "a"})
    writer.write_run({}, {"number": Numbers([1, 2])})
    writer.close()
    assert ["a", None, None] == [row["text"] for row in json.loads(stream.getvalue())]
