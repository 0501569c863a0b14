"""Records as rows, templates and lines: what goes out comes in again."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.model import TopicPartition
from engine.records.record import Record, TimestampType
from kctl.commands.offset_points import Point, PointKind, parse_point
from kctl.commands.produce_work import numbered_lines
from kctl.interrupts import HeldInterrupts
from kctl.record_format import RecordFormat
from kctl.record_rows import Keep, UnreadableRecord, parse_record, record_row, time_text
from kctl.selection import parse_numbers, parse_partitions
from kctl.words import UnreadableWord
from tests.runs import run_of

P3 = TopicPartition("t", 3)
NOW_MS = 1_000_000_000

contents = st.none() | st.binary(max_size=20) | st.text(max_size=20).map(str.encode)
records = st.builds(
    Record,
    offset=st.integers(0, 1 << 62),
    timestamp_ms=st.integers(0, 1 << 50),
    timestamp_type=st.just(TimestampType.CREATE_TIME),
    key=contents,
    value=contents,
    headers=st.lists(st.tuples(st.text(max_size=5), contents), max_size=3).map(tuple),
)


@given(records)
def test_a_row_makes_the_same_record_again(record: Record) -> None:
    line = json.dumps(record_row(P3, record, 0)).encode()
    found = parse_record(line, 1, "other", Keep(partitions=True))
    assert ("other", 3) == (found.topic, found.partition)
    assert (record.key, record.value, record.headers, record.timestamp_ms) == (
        found.key,
        found.value,
        found.headers,
        found.timestamp_ms,
    )


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"[]",
        b"{",
        b"\xff",
        b"[" * 100_000,
        b'{"key": 1}',
        b'{"value": "?", "value_encoding": "base64"}',
        b'{"value": "a", "value_encoding": "rot13"}',
        b'{"value": "\\ud800"}',
        b'{"headers": {}}',
        b'{"headers": [{}]}',
        b'{"timestamp": "now"}',
        b'{"timestamp": -5}',
        b'{"partition": true}',
    ],
)
def test_a_line_that_is_no_record_is_told_with_its_number(line: bytes) -> None:
    with pytest.raises(UnreadableRecord, match="line 7: "):
        parse_record(line, 7, "t", Keep(partitions=True))


def test_a_template_is_filled_byte_for_byte() -> None:
    record = Record(5, 9, TimestampType.CREATE_TIME, None, b"\xff", (("h", None),))
    filled = RecordFormat("%t %p %o %T [%k]%K [%s]%S %h %e %%\\x00\\t\\\\").fill(
        P3, run_of(record, leader_epoch=2)
    )
    assert b"t 3 5 9 []-1 [\xff]1 h=NULL 2 %\x00\t\\" == filled


@pytest.mark.parametrize("template", ["%", "%x", "\\", "\\y", "\\xz1"])
def test_an_unknown_letter_is_refused(template: str) -> None:
    with pytest.raises(UnreadableWord):
        RecordFormat(template)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("start", Point(PointKind.TIMESTAMP, -2)),
        ("end", Point(PointKind.TIMESTAMP, -1)),
        ("12", Point(PointKind.OFFSET, 12)),
        ("-12", Point(PointKind.TAIL, 12)),
        ("-2h", Point(PointKind.TIMESTAMP, NOW_MS - 7_200_000)),
        ("@12", Point(PointKind.TIMESTAMP, 12)),
        ("1970-01-01T00:00:01Z", Point(PointKind.TIMESTAMP, 1_000)),
        ("max-timestamp", Point(PointKind.TIMESTAMP, -3)),
    ],
)
def test_points(text: str, expected: Point) -> None:
    assert expected == parse_point(text, NOW_MS)


@pytest.mark.parametrize("text", ["", "-", "-h", "-1y", "@", "soon", "1.5"])
def test_what_is_no_point(text: str) -> None:
    with pytest.raises(UnreadableWord):
        parse_point(text, NOW_MS)


def test_partitions_are_numbers_and_ranges_with_both_ends() -> None:
    assert ("t", None) == parse_partitions("t")
    assert ("t", {0, 4, 5, 6}) == parse_partitions("t:0,4-6")
    for text in ("", "a", "1-", "-1", "3-1", "0-99999999999"):
        with pytest.raises(UnreadableWord):
            parse_numbers(text)


@given(st.lists(st.binary(max_size=10).filter(lambda line: b"\n" not in line), max_size=10))
def test_lines_are_numbered_and_lose_only_their_ends(lines: list[bytes]) -> None:
    found = list(
        numbered_lines(io.BytesIO(b"".join(line + b"\n" for line in lines)), HeldInterrupts())
    )
    assert list(enumerate(lines, 1)) == found


def test_a_last_line_without_an_end_counts() -> None:
    assert [(1, b"a"), (2, b"b")] == list(numbered_lines(io.BytesIO(b"a\nb"), HeldInterrupts()))


def test_times_are_utc_and_never_fail() -> None:
    assert "1970-01-01T00:00:00.001Z" == time_text(1)
    assert str(1 << 62) == time_text(1 << 62)
