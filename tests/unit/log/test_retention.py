"""Which segments go, and why."""

from __future__ import annotations

import pytest

from engine.log.log_config import LogConfig
from engine.log.retention import LogFacts, RetentionReason, SegmentFacts, plan_retention

NEVER = LogConfig(retention_ms=-1, retention_bytes=-1)
NOW_MS = 10_000


def log(*segments: tuple[int, int], hw: int | None = None, start: int = 0) -> LogFacts:
    """Return a log of (size, largest time) segments, ten offsets each; the last one is active."""
    facts = [
        SegmentFacts(10 * n, 10 * n + 10, size, time, n == len(segments) - 1)
        for n, (size, time) in enumerate(segments)
    ]
    return LogFacts(facts, start, 10 * len(segments) if hw is None else hw, NOW_MS)


def plan(facts: LogFacts, config: LogConfig) -> dict[RetentionReason, int]:
    return {step.reason: step.segment_count for step in plan_retention(facts, config)}


@pytest.mark.parametrize(
    ("retention_bytes", "count"),
    [(400, 0), (350, 0), (301, 0), (300, 1), (299, 1), (100, 3), (0, 4), (-1, 0)],
)
def test_size_takes_segments_while_what_is_left_is_enough(retention_bytes: int, count: int) -> None:
    facts = log((100, 0), (100, 0), (100, 0), (100, 0))
    found = plan(facts, NEVER._replace(retention_bytes=retention_bytes))
    assert count == found.get(RetentionReason.SIZE, 0)


def test_time_takes_what_is_older_than_its_bound_and_stops_at_the_first_that_is_not() -> None:
    facts = log((1, NOW_MS - 101), (1, NOW_MS - 100), (1, NOW_MS - 500))
    assert plan(facts, NEVER._replace(retention_ms=100)) == {RetentionReason.TIME: 1}


def test_time_takes_the_active_segment_too_unless_it_is_empty() -> None:
    config = NEVER._replace(retention_ms=100)
    assert plan(log((1, 0), (1, 0)), config) == {RetentionReason.TIME: 2}
    assert plan(log((1, 0), (0, 0)), config) == {RetentionReason.TIME: 1}


def test_the_start_offset_takes_segments_that_end_by_it_but_never_the_active_one() -> None:
    for start, count in ((9, 0), (10, 1), (20, 2), (30, 2)):
        found = plan(log((1, 0), (1, 0), (1, 0), start=start), NEVER)
        assert count == found.get(RetentionReason.START_OFFSET, 0)


def test_nothing_at_or_above_the_high_watermark_goes() -> None:
    config = NEVER._replace(retention_ms=100)
    for high_watermark, count in ((9, 0), (10, 1), (29, 2), (30, 3)):
        found = plan(log((1, 0), (1, 0), (1, 0), hw=high_watermark), config)
        assert count == found.get(RetentionReason.TIME, 0)


def test_compacted_topics_lose_segments_by_start_offset_alone() -> None:
    config = LogConfig(retention_ms=1, retention_bytes=1, is_deleting=False, is_compacted=True)
    assert plan(log((9, 0), (9, 0), (9, 0), start=10), config) == {RetentionReason.START_OFFSET: 1}


def test_each_reason_counts_from_what_the_ones_before_left() -> None:
    config = NEVER._replace(retention_bytes=200, retention_ms=100)
    facts = log((100, 0), (100, 0), (100, 0), (100, NOW_MS), start=10)
    assert plan(facts, config) == {
        RetentionReason.START_OFFSET: 1,
        RetentionReason.SIZE: 1,
        RetentionReason.TIME: 1,
    }
