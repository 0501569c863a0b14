"""Meters: the rates are those of Codahale's library for the same events."""

from __future__ import annotations

import pytest

from engine.timing.meter import TICK_MS, Meter, MeterReading

#: Events before each tick, and the rates after it, as EWMA of metrics-core 2.2.0 has them.
_CODAHALE = [
    [
        (3, 0.6, 0.6, 0.6),
        (0, 0.552026648777594, 0.5900828722929705, 0.5966759088029381),
        (0, 0.5078890349343685, 0.5803296602892035, 0.5933702335763534),
        (0, 0.467280469842843, 0.5707376547004283, 0.5900828722929705),
    ],
    [
        (0, 0.0, 0.0, 0.0),
        (7, 0.11193781951894739, 0.02313996464973551, 0.007756212793144578),
        (0, 0.10298776563419279, 0.02275749467545622, 0.007713242195364193),
        (0, 0.09475331854689284, 0.022381346373808647, 0.007670509661226831),
        (12, 0.2790706663862859, 0.061679926084852794, 0.020924378660071578),
        (1, 0.2727485249697209, 0.0639661558139566, 0.021916484820912338),
    ],
]
#: After a minute without an event.
_LATER = (0.22072766470286553, 0.49123845184678905, 0.5613041910189706)


def rates(reading: MeterReading) -> tuple[float, float, float]:
    return reading.one_minute_rate, reading.five_minute_rate, reading.fifteen_minute_rate


@pytest.mark.parametrize("rows", _CODAHALE)
def test_rates_are_codahales(rows: list[tuple[int, float, float, float]]) -> None:
    meter, count = Meter(0, 0), 0
    for number, (events, *expected) in enumerate(rows, 1):
        count += events
        meter.tick(number, count)
        reading = meter.read_rates(number, count, number * TICK_MS)
        assert count == reading.event_count
        assert pytest.approx(expected, rel=1e-12) == rates(reading)


@pytest.mark.parametrize("rows", _CODAHALE)
def test_ticks_without_events_may_be_left_out(
    rows: list[tuple[int, float, float, float]],
) -> None:
    meter, count = Meter(0, 0), 0
    for number, (events, *expected) in enumerate(rows, 1):
        count += events
        if events:
            meter.tick(number, count)
        assert pytest.approx(expected, rel=1e-12) == rates(meter.read_rates(number, count, 1))


def test_a_minute_is_made_up_for_in_one_step() -> None:
    meter = Meter(0, 40)
    meter.tick(41, 3)
    assert pytest.approx(_LATER, rel=1e-12) == rates(meter.read_rates(53, 3, 1))


def test_rates_stay_between_ticks_and_the_count_does_not() -> None:
    meter = Meter(1_000, 0)
    assert MeterReading(4, 0.0, 0.0, 0.0, 0.0) == meter.read_rates(0, 4, 1_000)
    assert MeterReading(4, 2.0, 0.0, 0.0, 0.0) == meter.read_rates(0, 4, 3_000)
    meter.tick(1, 4)
    assert MeterReading(9, 1.5, 0.8, 0.8, 0.8) == meter.read_rates(1, 9, 7_000)
    assert 4 == meter.counted
