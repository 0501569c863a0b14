"""Which part of an estimated log has left its active segment for sure."""

from __future__ import annotations

import pytest

from engine.forecast.closed_segments import ClosedRange, closed_segments
from engine.forecast.log_history import LogHistory
from engine.log.cleaner.compaction_wait import CompactionWait
from engine.log.log_config import LogConfig
from engine.log.retention import SegmentFacts
from engine.model import TopicPartition

NOW_MS = 10_000_000
#: Ten parts of ten records and 100 bytes, a second apart, the newest a second old.
PARTS = [
    SegmentFacts(n * 10, n * 10 + 10, 100, NOW_MS - 10_000 + 1000 * n, n == 9) for n in range(10)
]
WIDE = LogConfig(is_compacted=True)


def closed(config: LogConfig, parts: list[SegmentFacts] = PARTS) -> ClosedRange:
    end = parts[-1].end_offset
    log = LogHistory(TopicPartition("t", 0), parts, 0, end, NOW_MS - 10_000, True)
    return closed_segments(log, config, NOW_MS)


def test_a_log_within_one_segment_may_be_active_as_a_whole() -> None:
    assert ClosedRange(0, 0, CompactionWait.ACTIVE_SEGMENT) == closed(WIDE)


@pytest.mark.parametrize(("segment_bytes", "end"), [(300, 70), (301, 60), (999, 0), (900, 10)])
def test_all_but_the_bytes_of_one_segment_is_closed(segment_bytes: int, end: int) -> None:
    part = closed(WIDE._replace(segment_bytes=segment_bytes))
    assert (end, end * 10) == part[:2]


@pytest.mark.parametrize(("segment_ms", "end"), [(2999, 70), (3000, 60), (9000, 0), (8999, 10)])
def test_what_is_older_than_a_roll_is_closed(segment_ms: int, end: int) -> None:
    part = closed(WIDE._replace(segment_ms=segment_ms))
    assert (end, end * 10) == part[:2]


def test_of_both_the_further_counts() -> None:
    assert 70 == closed(WIDE._replace(segment_bytes=300, segment_ms=8999))[0]


@pytest.mark.parametrize(("lag_ms", "end"), [(5000, 60), (5001, 50), (1, 70), (0, 70)])
def test_what_is_young_is_not_cleaned(lag_ms: int, end: int) -> None:
    part = closed(WIDE._replace(segment_bytes=300, min_compaction_lag_ms=lag_ms))
    waits_for = CompactionWait.LAG if end < 70 else None
    assert ClosedRange(end, end * 10, waits_for) == part


def test_an_empty_log_waits_for_nothing() -> None:
    empty = [SegmentFacts(5, 5, 0, -1, True)]
    log = LogHistory(TopicPartition("t", 0), empty, 5, 5, None, True)
    assert ClosedRange(5, 0, None) == closed_segments(log, WIDE, NOW_MS)
