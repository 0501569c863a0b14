"""What goes now, later and in the end."""

from __future__ import annotations

from engine.forecast.log_history import LogHistory
from engine.forecast.retention_forecast import (
    LaterDeletion,
    forecast_retention,
    steady_bytes,
)
from engine.log.log_config import LogConfig
from engine.log.retention import RetentionReason, SegmentFacts
from engine.model import TopicPartition

HOUR_MS = 3_600_000


def log(*segments: tuple[int, int], first_ms: int | None = 0, watermark: int = 1000) -> LogHistory:
    """Return a log of segments of ten records each, given by bytes and newest time."""
    last = len(segments) - 1
    facts = [
        SegmentFacts(10 * number, 10 * number + 10, size, newest_ms, number == last)
        for number, (size, newest_ms) in enumerate(segments)
    ]
    return LogHistory(TopicPartition("t", 0), facts, 0, watermark, first_ms)


def test_each_reason_has_its_bytes_and_the_rest_is_left() -> None:
    history = log((100, 0), (100, 10), (100, 2 * HOUR_MS), (50, 3 * HOUR_MS))
    config = LogConfig(retention_ms=HOUR_MS, retention_bytes=270)
    forecast = forecast_retention(history, config, 2 * HOUR_MS)
    assert {RetentionReason.TIME: 200} == forecast.freed
    assert (200, 150, 2) == (forecast.freed_bytes, forecast.left_bytes, forecast.freed_segments)
    smaller = forecast_retention(history, config._replace(retention_bytes=250), 2 * HOUR_MS)
    assert {RetentionReason.SIZE: 100, RetentionReason.TIME: 100} == smaller.freed


def test_what_is_left_goes_once_it_is_old_and_all_before_it_has_gone() -> None:
    history = log((100, 50), (80, 20), (60, 90))
    forecast = forecast_retention(history, LogConfig(retention_ms=HOUR_MS), 0)
    assert (
        LaterDeletion(HOUR_MS + 51, 2, 180),
        LaterDeletion(HOUR_MS + 91, 1, 60),
    ) == forecast.later
    assert {} == forecast.freed


def test_nothing_goes_later_that_is_kept_for_good() -> None:
    history = log((100, 50), (80, 20))
    assert () == forecast_retention(history, LogConfig(retention_ms=-1), HOUR_MS).later
    compacted = LogConfig(is_deleting=False, is_compacted=True, retention_ms=1)
    forecast = forecast_retention(history, compacted, HOUR_MS)
    assert ((), 0, None) == (forecast.later, forecast.freed_bytes, forecast.steady_bytes)


def test_an_empty_segment_has_no_end() -> None:
    history = log((100, 50), (0, 0))
    later = forecast_retention(history, LogConfig(retention_ms=HOUR_MS), 0).later
    assert (LaterDeletion(HOUR_MS + 51, 1, 100),) == later


def test_growth_is_computed_from_oldest_and_newest_record() -> None:
    assert 100.0 == log((500, 1000), (500, 10_000)).bytes_per_s
    assert log((500, 1000), first_ms=None).bytes_per_s is None
    assert log((500, 999)).bytes_per_s is None
    assert 500.0 == log((500, 1000)).bytes_per_s
    empty = LogHistory(TopicPartition("t", 0), [], 0, 0, None)
    assert (0, None, None) == (empty.size_bytes, empty.last_timestamp_ms, empty.bytes_per_s)


def test_in_the_end_a_log_is_a_segment_larger_than_what_is_kept() -> None:
    by_size = LogConfig(retention_ms=-1, retention_bytes=1000, segment_bytes=300)
    assert 1300 == steady_bytes(None, by_size)
    by_time = LogConfig(retention_ms=10_000, segment_bytes=300)
    assert 2300 == steady_bytes(200.0, by_time)
    rolled = by_time._replace(segment_ms=1000)
    assert 2200 == steady_bytes(200.0, rolled)
    assert 1300 == steady_bytes(200.0, by_size._replace(retention_ms=10_000))
    assert steady_bytes(None, by_time) is None
    assert steady_bytes(200.0, LogConfig(retention_ms=-1)) is None


def test_a_bound_of_no_bytes_is_a_bound() -> None:
    assert 100 == steady_bytes(
        None, LogConfig(retention_bytes=0, retention_ms=-1, segment_bytes=100)
    )
    assert None is steady_bytes(None, LogConfig(retention_bytes=-1, retention_ms=-1))


def test_growth_is_computed_over_a_second_and_more() -> None:
    assert 180 == log((100, 500), (80, 1500), first_ms=500).bytes_per_s
    assert None is log((100, 500), (80, 1499), first_ms=500).bytes_per_s
    # Times far from zero are no span.
    assert None is log((100, 10**12), first_ms=10**12).bytes_per_s
    assert None is log((100, 5000), first_ms=None).bytes_per_s


def test_an_estimate_has_a_range_and_what_is_known_has_none() -> None:
    config = LogConfig(retention_ms=-1, retention_bytes=1_000, segment_bytes=300)
    key = TopicPartition("t", 0)
    parts = [SegmentFacts(n * 10, n * 10 + 10, 100, 50, n == 19) for n in range(20)]
    known = forecast_retention(LogHistory(key, parts, 0, 200, 1), config, 60)
    guess = forecast_retention(LogHistory(key, parts, 0, 200, 1, True), config, 60)
    assert (1_000, 1_000) == (known.freed_least_bytes, known.freed_most_bytes)
    assert (700, 1_100) == (guess.freed_least_bytes, guess.freed_most_bytes)


def test_a_record_of_the_future_is_reported() -> None:
    parts = [SegmentFacts(0, 10, 100, 9_000, True)]
    log = LogHistory(TopicPartition("t", 0), parts, 0, 10, 1)
    assert 9_000 == forecast_retention(log, LogConfig(), 60).future_ms
    assert forecast_retention(log, LogConfig(), 9_000).future_ms is None
