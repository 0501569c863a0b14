"""Rows as records: what consume and dump-log print comes in again, and nothing else does."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.dump.options import DumpOptions
from engine.dump.rows import RECORD_COLUMNS as DUMP_COLUMNS
from engine.dump.rows import RowDump
from engine.host.memory import MemoryFiles
from engine.model import TopicPartition
from engine.records.builder import BatchSettings, build_batch
from engine.records.record import NO_TIMESTAMP, Record, TimestampType
from kctl.record_input import (
    ROW_FIELDS,
    Keep,
    LineNotJson,
    UnreadableRecord,
    parse_json,
    parse_record,
)
from kctl.record_rows import RECORD_COLUMNS, record_row

P3 = TopicPartition("t", 3)
LOG = "/t-3/00000000000000000000.log"

contents = st.none() | st.binary(max_size=20) | st.text(max_size=20).map(str.encode)
records = st.builds(
    Record,
    offset=st.integers(0, 1 << 62),
    timestamp_ms=st.integers(NO_TIMESTAMP, 1 << 50),
    timestamp_type=st.just(TimestampType.CREATE_TIME),
    key=contents,
    value=contents,
    headers=st.lists(st.tuples(st.text(max_size=5), contents), max_size=3).map(tuple),
)


def parsed(row: dict[str, Any], **keep: bool) -> Any:
    return parse_record(json.dumps(row).encode(), 7, "t", Keep(**keep))


def agrees(record: Record, found: Any) -> bool:
    return bool(
        (record.key, record.value, record.headers, record.timestamp_ms)
        == (found.key, found.value, found.headers, found.timestamp_ms)
    )


@given(records)
def test_what_consume_prints_is_read_back_exactly(record: Record) -> None:
    found = parsed(record_row(P3, record, 0), partitions=True)
    assert ("t", 3) == (found.topic, found.partition)
    assert agrees(record, found)


@settings(max_examples=50)
@given(st.lists(records, min_size=1, max_size=4))
def test_what_dump_log_prints_is_read_back_exactly(found: list[Record]) -> None:
    stored = [record._replace(offset=number) for number, record in enumerate(found)]
    files = MemoryFiles()
    files.make_dir("/t-3")
    files.replace_file(LOG, bytes(build_batch(stored, BatchSettings())))
    dump = RowDump(files, DumpOptions(), headers_only=False)
    rows = [row for dumped in dump.dump_rows([LOG]) for row in dumped.iter_rows()]
    for record, row in zip(stored, rows, strict=True):
        assert agrees(record, parsed(row))
        # The text alone says it too, for users who leave the long form out.
        short = {name: value for name, value in row.items() if not name.endswith("_base64")}
        for header in short["headers"]:
            del header["value_base64"]
        assert agrees(record, parsed(short))


def test_every_field_of_both_is_known_and_no_other() -> None:
    assert ROW_FIELDS == {column.key for column in RECORD_COLUMNS} | set(DUMP_COLUMNS)


def test_a_marker_of_a_transaction_is_no_record() -> None:
    assert parsed({"key": "\0", "value": None, "is_control": True}) is None


def test_no_time_is_not_now() -> None:
    assert NO_TIMESTAMP == parsed({"value": "a", "timestamp": None}).timestamp_ms
    assert NO_TIMESTAMP == parsed({"value": "a", "timestamp_ms": -1}).timestamp_ms
    assert parsed({"value": "a"}).timestamp_ms is None
    assert parsed({"value": "a", "timestamp": 5}, timestamps=False).timestamp_ms is None


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"[]",
        b"{",
        b"\xff",
        b"[" * 100_000,
        b"{}",
        b'{"key": "k"}',
        b'{"val": "x"}',
        b'{"value": "x", "partitions": 1}',
        b'{"value": "a", "key": 1}',
        b'{"value": "?", "value_encoding": "base64"}',
        b'{"value": "a", "value_base64": "?"}',
        b'{"value": "a", "value_encoding": "rot13"}',
        b'{"value": "\\\\y", "value_encoding": "escaped"}',
        b'{"value": "\\ud800"}',
        b'{"value": "\\ud800", "value_encoding": "escaped"}',
        b'{"value": "a", "headers": {}}',
        b'{"value": "a", "headers": [{}]}',
        b'{"value": "a", "headers": [{"key": "h", "val": "1"}]}',
        b'{"value": "a", "timestamp": "now"}',
        b'{"value": "a", "timestamp": -5}',
        b'{"value": "a", "partition": true}',
    ],
)
def test_a_line_that_is_no_record_is_reported_with_its_number(line: bytes) -> None:
    with pytest.raises(UnreadableRecord, match="line 7: "):
        parse_record(line, 7, "t", Keep(partitions=True))


def test_a_document_that_is_none_has_a_hint_of_its_own() -> None:
    with pytest.raises(LineNotJson) as caught:
        parse_json(b"nope", 5)
    assert "JSON document" in str(caught.value.hint)


def test_a_field_that_is_misspelt_is_named_with_what_it_may_be() -> None:
    with pytest.raises(UnreadableRecord, match=r"no field 'valeu' \(did you mean value\?\)"):
        parsed({"valeu": "x"})
