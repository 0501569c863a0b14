"""Points in time as a person types them."""

from __future__ import annotations

import time

import pytest

from kctl.arguments import UnreadableArgument
from kctl.durations import parse_duration_ms
from kctl.iso_times import UnreadableTime, parse_time_ms
from kctl.offset_points import Point, PointKind, parse_point

NOW_MS = 1_767_268_800_000  # 2026-01-01T12:00:00Z
HOUR_MS = 3_600_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1767225600000", 1_767_225_600_000),
        ("@1767225600000", 1_767_225_600_000),
        ("-5", -5),
        ("-90s", NOW_MS - 90_000),
        ("-15m", NOW_MS - 15 * 60_000),
        ("-1h", NOW_MS - HOUR_MS),
        ("-7d", NOW_MS - 7 * 24 * HOUR_MS),
        ("-2w", NOW_MS - 14 * 24 * HOUR_MS),
        ("-999999w", 0),
        ("now", NOW_MS),
        ("today", NOW_MS - 12 * HOUR_MS),
        ("yesterday", NOW_MS - 36 * HOUR_MS),
        ("Yesterday", NOW_MS - 36 * HOUR_MS),
        ("2026-01-01", NOW_MS - 12 * HOUR_MS),
        ("2026-01-01T12:00:00Z", NOW_MS),
        ("2026-01-01T12:00", NOW_MS),
        ("2026-01-01T12:00:00.250+01:00", NOW_MS - HOUR_MS + 250),
    ],
)
def test_a_time_is_read(text: str, expected: int) -> None:
    assert expected == parse_time_ms(text, NOW_MS)


@pytest.mark.parametrize("text", ["", "-", "-h", "1h", "-1x", "tomorrow", "@", "2026-13-01", "٣"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(UnreadableTime):
        parse_time_ms(text, NOW_MS)


def test_the_clock_is_asked_where_no_time_is_given() -> None:
    before = time.time_ns() // 1_000_000
    assert before - HOUR_MS <= parse_time_ms("-1h") <= time.time_ns() // 1_000_000 - HOUR_MS


@pytest.mark.parametrize("text", ["-1h", "-2w", "yesterday", "2026-01-01"])
def test_points_in_a_partition_take_the_same_times(text: str) -> None:
    expected = Point(PointKind.TIMESTAMP, parse_time_ms(text, NOW_MS))
    assert expected == parse_point(text, NOW_MS)


def test_a_duration_is_a_century_at_most_and_no_less_than_what_it_is_for() -> None:
    assert 0 == parse_duration_ms("0s", "--for")
    assert 36_500 * 24 * HOUR_MS == parse_duration_ms("36500d", "--for")
    for text in ("36501d", "9999999999999999d", "1", "-1s", "soon"):
        with pytest.raises(UnreadableArgument, match="--for"):
            parse_duration_ms(text, "--for")
    assert 1_000 == parse_duration_ms("1s", "--every", lowest_ms=1_000)
    with pytest.raises(UnreadableArgument, match="1s to"):
        parse_duration_ms("0s", "--every", lowest_ms=1_000)
