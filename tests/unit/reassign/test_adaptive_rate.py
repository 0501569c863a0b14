"""A throttle that rises while the cluster bears it, and falls when it does not."""

from __future__ import annotations

import pytest

from engine.reassign.adaptive_rate import PERIOD_MS, AdaptiveRate, RateObservation

FIRST = RateObservation(0, 0, 5, 0)
RATE = 20_000_000


@pytest.mark.parametrize(
    ("seen", "wanted"),
    [
        (RateObservation(5000, 1, 5, 0), 25_000_000),
        (RateObservation(5000, 1, 25, 0), 25_000_000),
        (RateObservation(5000, 1, 26, 0), 14_000_000),
        (RateObservation(5000, 0, 5, 0), RATE),
        (RateObservation(5000, 1, 5, 1), 10_000_000),
        (RateObservation(5000, 1, 500, 1), 10_000_000),
    ],
)
def test_the_rate_follows_what_is_seen(seen: RateObservation, wanted: int) -> None:
    assert wanted == AdaptiveRate.start(RATE, FIRST).after(seen).rate


def test_slow_brokers_may_be_twice_as_slow() -> None:
    slow = AdaptiveRate.start(RATE, RateObservation(0, 0, 100, 0))
    assert 25_000_000 == slow.after(RateObservation(5000, 1, 200, 0)).rate
    assert 14_000_000 == slow.after(RateObservation(5000, 1, 201, 0)).rate


def test_a_replica_that_left_once_counts_once() -> None:
    after = AdaptiveRate.start(RATE, FIRST).after(RateObservation(5000, 1, 5, 1))
    assert 12_500_000 == after.after(RateObservation(10_000, 2, 5, 1)).rate


def test_it_stays_within_bounds() -> None:
    low = AdaptiveRate.start(1_100_000, FIRST)
    assert 1_000_000 == low.after(RateObservation(5000, 1, 5, 1)).rate
    assert 1_000_000 == low.after(RateObservation(5000, 1, 99, 0)).rate
    high = AdaptiveRate.start(1_900_000_000, FIRST)
    assert 2_000_000_000 == high.after(RateObservation(5000, 1, 5, 0)).rate


def test_it_is_checked_from_time_to_time() -> None:
    rate = AdaptiveRate.start(RATE, FIRST)
    assert not rate.is_due(PERIOD_MS - 1)
    assert rate.is_due(PERIOD_MS)
    assert not rate.after(RateObservation(PERIOD_MS, 1, 5, 0)).is_due(2 * PERIOD_MS - 1)
