"""Rates over windows, and the delays that bring them back to a bound."""

from __future__ import annotations

import math

import pytest

from engine.timing.sampled_rate import SampledRate


def _delays(events: list[int], bound_per_s: int) -> list[int]:
    rate = SampledRate(11, 1000)
    delays = []
    for now_ms in events:
        rate.record(now_ms)
        delays.append(rate.delay_ms(bound_per_s, now_ms))
    return delays


def test_a_burst_of_ten_windows_passes_and_the_next_event_is_throttled() -> None:
    delays = _delays([0] * 21, 2)
    assert [0] * 20 == delays[:20]
    # 21 in 10 s are 2.1 a second: 5 % too many for 10 s.
    assert 500 == delays[20]


def test_a_delay_is_one_window_at_most() -> None:
    assert 1000 == max(_delays([0] * 100, 1))


def test_a_bound_of_nothing_holds_everybody_back_for_a_window() -> None:
    assert [1000] == _delays([0], 0)


@pytest.mark.parametrize(("quiet_ms", "delay_ms"), [(1000, 1000), (11_999, 0)])
def test_what_is_older_than_all_windows_does_not_count(quiet_ms: int, delay_ms: int) -> None:
    assert delay_ms == _delays([0] * 40 + [quiet_ms], 2)[-1]


def test_the_window_before_the_last_ones_counts_by_its_later_events() -> None:
    rate = SampledRate(2, 1000)
    for now_ms, count in ((0, 1), (1_000, 2), (1_500, 4), (2_000, 8), (3_000, 16)):
        rate.record(now_ms, count)
    assert 15.0 == rate.rate_per_s(3_000)


def test_a_window_that_has_just_begun_is_of_one_millisecond() -> None:
    rate = SampledRate(1, 1000)
    rate.record(0, 5)
    assert 5_000.0 == rate.rate_per_s(0)


def test_steady_events_below_the_bound_are_never_throttled() -> None:
    # At its edges a span of ten windows has one event more than its share.
    assert [0] * 600 == _delays(list(range(0, 60_000, 100)), 11)


def test_steady_events_above_the_bound_are_throttled_from_the_tenth_second_on() -> None:
    delays = _delays(list(range(0, 30_000, 50)), 10)
    assert 0 == max(delays[:100])
    assert min(delays[250:]) > 0


@pytest.mark.parametrize(
    ("bound_per_s", "over_ms"),
    [(math.nan, 0), (-math.inf, 0), (math.inf, 0), (1e-320, math.inf), (-0.0, math.inf)],
)
def test_any_number_is_a_bound(bound_per_s: float, over_ms: float) -> None:
    rate = SampledRate(11, 1000)
    rate.record(0, 1e9)
    assert over_ms == rate.throttle_ms(bound_per_s, 0)
    assert min(over_ms, 1000) == rate.delay_ms(bound_per_s, 0)
