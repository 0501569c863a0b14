"""Templates of records, and the words that choose them."""

from __future__ import annotations

import pytest

from engine.model import TopicPartition
from engine.records.record import Record, TimestampType
from kctl.arguments import UnreadableArgument
from kctl.offset_points import Point, PointKind, parse_point
from kctl.record_format import RecordFormat
from kctl.selection import parse_numbers, parse_partitions
from kctl.time_text import time_text
from tests.runs import run_of

P3 = TopicPartition("t", 3)
NOW_MS = 1_000_000_000


def test_a_template_is_filled_byte_for_byte() -> None:
    record = Record(5, 9, TimestampType.CREATE_TIME, None, b"\xff", (("h", None),))
    filled = RecordFormat("%t %p %o %T [%k]%K [%s]%S %h %e %%\\x00\\t\\\\").fill(
        P3, run_of(record, leader_epoch=2)
    )
    assert b"t 3 5 9 []-1 [\xff]1 h=NULL 2 %\x00\t\\" == filled


@pytest.mark.parametrize("template", ["%", "%x", "\\", "\\y", "\\xz1"])
def test_an_unknown_letter_is_refused(template: str) -> None:
    with pytest.raises(UnreadableArgument):
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
    with pytest.raises(UnreadableArgument):
        parse_point(text, NOW_MS)


def test_partitions_are_numbers_and_ranges_with_both_ends() -> None:
    assert ("t", None) == parse_partitions("t")
    assert ("t", {0, 4, 5, 6}) == parse_partitions("t:0,4-6")
    for text in ("", "a", "1-", "-1", "3-1", "0-99999999999"):
        with pytest.raises(UnreadableArgument):
            parse_numbers(text)


def test_times_are_utc_and_never_fail() -> None:
    assert "1970-01-01T00:00:00.001Z" == time_text(1)
    assert str(1 << 62) == time_text(1 << 62)
