"""Rates and percentiles of a window: without what is before it, and by intervals."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.measuring.measurement import Interval, Latencies, Measurement

S = 1_000_000_000


@given(st.lists(st.integers(0, 10**8), min_size=1, max_size=200), st.sampled_from([50, 95, 99.9]))
def test_a_percentile_is_never_less_than_exact_and_at_most_a_bucket_more(
    values: list[int], percentage: float
) -> None:
    latencies = Latencies()
    for value in values:
        latencies.add(value)
    ordered = sorted(values)
    exact = next(
        value for place, value in enumerate(ordered, 1) if place >= len(values) * percentage / 100
    )
    found = latencies.percentile_us(percentage)
    assert found is not None
    assert exact <= found <= exact + exact // 128 + 1
    assert max(values) == latencies.percentile_us(100) == latencies.max_us


def test_nothing_has_no_percentiles() -> None:
    assert {None} == set(Latencies().percentiles_ms().values())


def test_a_rate_is_from_the_begin_to_the_last_record() -> None:
    measurement = Measurement(5 * S, S)
    measurement.count(100, 1000, 5 * S + S // 2, {2000: 100})
    measurement.count(100, 1000, 7 * S, {4000: 100})
    measurement.finish()
    total = measurement.total
    assert (2.0, 200, 100.0, 1000) == (
        total.end_s,
        total.records,
        total.records_per_s,
        total.bytes_per_s,
    )
    assert 3.0 == total.latencies.percentiles_ms()["mean"]


def test_intervals_are_all_there_also_those_without_records() -> None:
    measurement = Measurement(0, S)
    measurement.count(1, 10, S // 4, {1: 1})
    measurement.count(3, 30, 3 * S + S // 2, {1: 3})
    measurement.finish()
    assert [(0.0, 1.0, 1), (1.0, 2.0, 0), (2.0, 3.0, 0), (3.0, 3.5, 3)] == [
        (one.start_s, one.end_s, one.records) for one in measurement.intervals
    ]
    assert [1.0, 0.0, 0.0, 6.0] == [one.records_per_s for one in measurement.intervals]


def test_intervals_without_records_are_over_before_the_next_record_comes() -> None:
    measurement = Measurement(S, S)
    measurement.count(4, 40, S + S // 4, {1: 4})
    assert [] == measurement.latest_intervals(2 * S - 1, 9)
    measurement.count(2, 20, 2 * S, {1: 2})
    for now_ns, count, records in (
        (2 * S, 9, [4]),
        (3 * S - 1, 9, [4]),
        (3 * S, 9, [4, 2]),
        (5 * S, 9, [4, 2, 0, 0]),
        (5 * S, 3, [2, 0, 0]),
        (60 * S, 2, [0, 0]),
    ):
        latest = measurement.latest_intervals(now_ns, count)
        assert records == [one.records for one in latest]
        assert {1.0} == {one.end_s - one.start_s for one in latest}
        assert now_ns // S - 1 == latest[-1].end_s
    # What is asked for counts nothing.
    measurement.finish()
    assert [(0.0, 1.0, 4), (1.0, 1.0, 2)] == [
        (one.start_s, one.end_s, one.records) for one in measurement.intervals
    ]


@pytest.mark.parametrize("records", [0, 5])
def test_a_window_of_no_time_has_no_rate(records: int) -> None:
    measurement = Measurement(S, S)
    if records:
        measurement.count(records, 1, S, {})
    measurement.finish()
    assert measurement.total.records_per_s is None
    assert measurement.total.bytes_per_s is None


def test_an_interval_has_the_latencies_of_its_own_time_and_figures_of_three_places() -> None:
    measurement = Measurement(0, S)
    measurement.count(1, 10, S // 3, {5: 1})
    measurement.count(2, 10, S + 1_234_567, {7: 2})
    measurement.finish()
    first, last = measurement.intervals
    assert [(1, 5), (2, 7)] == [
        (one.latencies.count, one.latencies.max_us) for one in (first, last)
    ]
    assert (0.0, 1.0, 1.0, 1.001) == (first.start_s, first.end_s, last.start_s, last.end_s)
    assert 3.0 == measurement.total.records_per_s
    assert 0.3 == Interval(0.0, 3.0, 1, 0, first.latencies).records_per_s
