"""Why segments were rolled, from their files alone."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from engine.analysis.local_query import run_local_query
from engine.analysis.roll_rules import ClosedSegment, NextBatch, rule_of_roll
from engine.analysis.splits import Selection, plan_splits
from engine.host.real import RealFiles
from tests.golden_cases import case_dir

_SEGMENT = ClosedSegment(100, 1000, 5_000, 3, 3)
_NEXT = NextBatch(200, 50, 6_000)
_WEEK_MS = 7 * 86_400_000


@pytest.mark.parametrize(
    ("segment", "following", "largest_bytes", "rule"),
    [
        (_SEGMENT, _NEXT._replace(last_offset=100 + (1 << 31)), 1000, "offsets"),
        (_SEGMENT, _NEXT._replace(last_offset=99 + (1 << 31)), 1000, "segment.bytes"),
        (_SEGMENT._replace(index_entries=1_310_720), _NEXT, 1000, "segment.index.bytes"),
        (_SEGMENT._replace(index_entries=1_310_719), _NEXT, 1000, "segment.bytes"),
        (_SEGMENT._replace(time_index_entries=873_812), _NEXT, 1000, "segment.index.bytes"),
        (_SEGMENT._replace(time_index_entries=873_811), _NEXT, 1000, "segment.bytes"),
        (_SEGMENT, _NEXT._replace(max_timestamp_ms=5_001 + _WEEK_MS), 1000, "segment.ms"),
        (_SEGMENT, _NEXT._replace(max_timestamp_ms=5_000 + _WEEK_MS), 1000, "segment.bytes"),
        (_SEGMENT, _NEXT, 1049, "segment.bytes"),
        (_SEGMENT, _NEXT, 1050, "segment.ms"),
        (_SEGMENT, _NEXT._replace(max_timestamp_ms=5_000), 1050, "other"),
        (_SEGMENT._replace(first_timestamp_ms=None), _NEXT, 1050, "other"),
        (_SEGMENT._replace(first_timestamp_ms=-1), _NEXT._replace(max_timestamp_ms=1 << 40), 1050,
         "other"),
        (_SEGMENT._replace(first_timestamp_ms=0), _NEXT, 1050, "segment.ms"),
        (_SEGMENT._replace(index_entries=None, time_index_entries=None), _NEXT, 1000,
         "segment.bytes"),
    ],
)  # fmt: skip
def test_a_rule_is_found_by_what_shows_it(
    segment: ClosedSegment, following: NextBatch, largest_bytes: int, rule: str
) -> None:
    assert rule == rule_of_roll(segment, following, largest_bytes)


def _rules(data: Path) -> list[dict[str, Any]]:
    splits = plan_splits(RealFiles(), [str(data)], Selection())
    query = "select baseOffset, rolledBy from segments where topic = 'clicks' order by baseOffset"
    return run_local_query(query, splits, control=False, max_rows=0).rows


def test_segments_of_kafka_with_segment_bytes_were_rolled_by_it_but_for_the_last() -> None:
    rules = [row["rolledBy"] for row in _rules(case_dir("plain") / "data")]
    assert ["segment.bytes"] * 3 + [None] == rules


def test_a_rule_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(case_dir("plain") / "data", data)
    second = _rules(data)[1]["baseOffset"]
    path = data / "clicks-0" / f"{second:020}.log"
    path.write_bytes(b"\xff" * 40)
    assert _rules(data)[0]["rolledBy"] is None
    path.write_bytes(b"")
    assert _rules(data)[0]["rolledBy"] is None
