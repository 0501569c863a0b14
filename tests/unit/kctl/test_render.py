"""Rows in every output format."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
import yaml

from kctl.render import Column, write_rows
from kctl.render.rows import UnknownFormat

COLUMNS = [
    Column("name", "NAME"),
    Column("size_bytes", "SIZE", right=True),
    Column("tags", "TAGS", wide=True),
]
ROWS: list[dict[str, Any]] = [
    {"name": "orders", "size_bytes": 1234, "tags": ["a", "b"]},
    {"name": "caf\u00e9\rx", "size_bytes": None, "tags": []},
]


def _written(output: str, rows: list[dict[str, Any]] = ROWS) -> str:
    stream = io.StringIO(newline="")
    write_rows(COLUMNS, rows, output, stream)
    return stream.getvalue()


@pytest.mark.parametrize("rows", [ROWS, ROWS[:1], []])
def test_json_yaml_and_ndjson_give_the_rows_back(rows: list[dict[str, Any]]) -> None:
    assert rows == json.loads(_written("json", rows))
    assert rows == yaml.safe_load(_written("yaml", rows))
    assert rows == [json.loads(line) for line in _written("ndjson", rows).split("\n")[:-1]]


def test_csv_is_read_back_and_null_is_an_empty_cell() -> None:
    table = list(csv.DictReader(io.StringIO(_written("csv"), newline="")))
    assert ["orders", "caf\u00e9\rx"] == [row["name"] for row in table]
    assert ["1234", ""] == [row["size_bytes"] for row in table]
    assert '["a", "b"]' == table[0]["tags"]


def test_csv_without_rows_still_has_its_heading() -> None:
    assert "name,size_bytes,tags\n" == _written("csv", [])


def test_a_table_leaves_wide_columns_out_and_aligns_numbers() -> None:
    assert ["NAME    SIZE", "orders  1234"] == _written("table", ROWS[:1]).splitlines()
    assert "TAGS" in _written("wide", ROWS[:1])


def test_null_is_a_dash_in_tables() -> None:
    assert _written("table", [{"name": "x", "size_bytes": None}]).endswith("   -\n")


def test_names_alone_are_for_scripts() -> None:
    assert "orders\n" == _written("name", ROWS[:1])


def test_rows_are_called_by_the_column_that_is_their_name() -> None:
    columns = [Column("kind", "KIND"), Column("key", "KEY", is_name=True)]
    rows = [{"kind": "topic", "key": "a"}, {"kind": "topic", "key": None}]
    stream = io.StringIO()
    write_rows(columns, rows, "name", stream)
    assert "a\n" == stream.getvalue()


def test_a_text_beneath_its_row_is_wrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    columns = [Column("key", "KEY"), Column("text", "TEXT", beneath=True)]
    rows = [{"key": "k", "text": "one two three four five six seven"}, {"key": "l", "text": None}]
    stream = io.StringIO()
    write_rows(columns, rows, "table", stream)
    expected = ["KEY", "k", "    one two three four five", "    six seven", "l"]
    assert expected == stream.getvalue().splitlines()
    stream = io.StringIO()
    write_rows(columns, rows, "json", stream)
    assert rows == json.loads(stream.getvalue())


def test_an_unknown_format_is_wrong_usage() -> None:
    with pytest.raises(UnknownFormat) as caught:
        _written("xml")
    assert 2 == caught.value.exit_code


@pytest.mark.parametrize("output", ["json", "ndjson"])
def test_json_is_what_strict_parsers_read(output: str) -> None:
    stream = io.StringIO()
    values = (float("nan"), float("inf"), -float("inf"), 1.5, [float("nan")], {"a": float("inf")})
    columns = (Column("a", "A"), Column("b", "B"))
    write_rows(columns, [{"a": value, "b": 1} for value in values], output, stream)
    text = stream.getvalue()

    def refuse(name: str) -> None:
        raise AssertionError(name)

    lines = [text] if output == "json" else text.splitlines()
    rows = [json.loads(line, parse_constant=refuse) for line in lines]
    rows = rows[0] if output == "json" else rows
    expected = ["NaN", "Infinity", "-Infinity", 1.5, ["NaN"], {"a": "Infinity"}]
    assert expected == [row["a"] for row in rows]
