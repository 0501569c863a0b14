"""Histograms: the figures of metrics-core 2.2.0 for the same values, and what a sample is of."""

from __future__ import annotations

import pytest

from engine.timing.decaying_sample import SAMPLE_SIZE, DecayingSample
from engine.timing.histogram import Histogram, HistogramReading, Moments

_MANY = [(index * 7919) % 1009 for index in range(1000)]
#: Values, and what Java's classes made of them: count, ends, mean, deviation, six quantiles.
_YAMMER: list[tuple[list[int], tuple[float, ...]]] = [
    ([7], (1, 7.0, 7.0, 7.0, 0.0, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0)),
    ([3, 9], (2, 3.0, 9.0, 6.0, 4.242640687119285, 6.0, 9.0, 9.0, 9.0, 9.0, 9.0)),
    ([0, 0, 0, 5], (4, 0.0, 5.0, 1.25, 2.5, 0.0, 3.75, 5.0, 5.0, 5.0, 5.0)),
    (
        list(range(1, 11)),
        (10, 1.0, 10.0, 5.5, 3.0276503540974917, 5.5, 8.25, 10.0, 10.0, 10.0, 10.0),
    ),
    (
        [1000000007, 1, 1, 2],
        (4, 1.0, 1.000000007e9, 2.5000000275e8, 5.000000028333334e8, 1.5, 7.5000000575e8)
        + (1.000000007e9,) * 4,
    ),
    (
        _MANY,
        (
            *(1000, 0.0, 1008.0, 504.678, 291.5048599927612),
            *(505.5, 756.75, 958.9499999999999, 988.98, 998.99, 1007.999),
        ),
    ),
]


@pytest.mark.parametrize(("values", "expected"), _YAMMER)
def test_figures_are_yammers(values: list[int], expected: tuple[float, ...]) -> None:
    histogram = Histogram(0)
    for value in values:
        histogram.note(value, 0)
    reading = histogram.reading()
    assert pytest.approx(expected, rel=1e-12) == reading[:-1]
    assert sum(values) == reading.total


def test_values_that_are_noted_together_are_those_that_are_noted_one_by_one() -> None:
    one_by_one, together = Histogram(0), Histogram(0)
    for value in _MANY:
        one_by_one.note(value, 7)
    together.note_all([], 7)
    together.note_all(_MANY, 7)
    assert one_by_one.reading() == together.reading()


def test_a_timer_counts_in_a_smaller_unit_than_it_shows() -> None:
    histogram = Histogram(0)
    for value in (1500, 2500):
        histogram.note(value, 0)
    reading = histogram.reading(1000)
    assert (2, 1.5, 2.5, 2.0, 2.0) == (*reading[:4], reading.median)
    assert pytest.approx(0.5**0.5) == reading.deviation
    assert 4.0 == reading.total


def test_nothing_noted_is_all_zeros() -> None:
    assert HistogramReading(0, *(0.0,) * 11) == Moments().read_distribution([])


def test_zeros_are_counted_without_being_listed() -> None:
    moments = Moments()
    moments.add_all([4, 6])
    moments.add_zeros(2)
    moments.add_zeros(0)
    reading = moments.read_distribution([0, 0, 4, 6])
    assert (4, 0.0, 6.0, 2.5, 2.0) == (*reading[:4], reading.median)


def test_a_sample_has_all_values_until_it_is_full() -> None:
    sample: DecayingSample[int] = DecayingSample(0)
    sample.offer_all(range(SAMPLE_SIZE), 0)
    assert list(range(SAMPLE_SIZE)) == sorted(sample.values)
    sample.offer_all([-1] * 5, 0)
    assert SAMPLE_SIZE == len(sample.values)


@pytest.mark.parametrize("portion", [1, 7, 1_000, 50_000])
def test_values_of_one_time_have_the_same_chance(portion: int) -> None:
    """Of 100 values that come equally often each has its share, offered alone or together."""
    sample: DecayingSample[int] = DecayingSample(0)
    for start in range(0, 50_000, portion):
        sample.offer(portion, lambda index, start=start: (start + index) * 37 % 100, 3)
    found = [sample.values.count(value) for value in range(100)]
    # The variance of each count is about 10, and their mean is 10.28.
    spread = sum((count - SAMPLE_SIZE / 100) ** 2 for count in found) / 100
    assert 5 < spread < 16


def test_older_values_make_room_for_newer_ones() -> None:
    """With as many events in each second, half of a sample is of the last 46 seconds."""
    sample: DecayingSample[int] = DecayingSample(0)
    for second in range(600):
        sample.offer(500, lambda _, second=second: second, second)
    of_last = sum(value >= 600 - 46 for value in sample.values) / SAMPLE_SIZE
    assert 0.45 < of_last < 0.55


def test_a_rescaled_sample_stays_and_goes_on() -> None:
    sample: DecayingSample[int] = DecayingSample(0)
    sample.offer_all([1] * 2_000, 3_599)
    sample.offer_all([2] * 2_000, 3_600)
    share = sample.values.count(2) / SAMPLE_SIZE
    assert 0.44 < share < 0.57
    sample.offer_all([3] * 2_000, 40_000)
    assert {3} == set(sample.values)


def test_a_sample_of_a_broker_that_runs_for_years_takes_values() -> None:
    """Weights that were never counted again would be beyond all numbers after half a day."""
    sample: DecayingSample[int] = DecayingSample(0)
    for second in range(0, 100_000, 10_000):
        sample.offer_all([second] * 2_000, second)
    assert {90_000} == set(sample.values)


@pytest.mark.parametrize("idle_s", [49_000, 60_000, 10_000_000])
def test_a_full_sample_takes_values_after_any_time_without_them(idle_s: int) -> None:
    """A broker's quiet night: the weights of the values before it are 0 then."""
    sample: DecayingSample[int] = DecayingSample(0)
    sample.offer_all([1] * SAMPLE_SIZE, 0)
    sample.offer_all([2] * 28, idle_s)
    assert (28, SAMPLE_SIZE) == (sample.values.count(2), len(sample.values))
    sample.offer_all([3] * 2_000, idle_s + 10_000)
    assert {3} == set(sample.values)
