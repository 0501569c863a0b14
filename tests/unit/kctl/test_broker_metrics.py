"""Which attributes of metrics `kctl brokers metrics` shows."""

from __future__ import annotations

import pytest

from engine.timing.histogram import HistogramReading, MetricValue, TimerReading
from engine.timing.meter import MeterReading
from kctl.commands.brokers.metrics import matching_attributes

_LEADERS = "kafka.server:type=ReplicaManager,name=LeaderCount"
_SHRINKS = "kafka.server:type=ReplicaManager,name=IsrShrinksPerSec"
_METRICS: dict[str, MetricValue] = {
    _LEADERS: 3,
    _SHRINKS: MeterReading(7, 0.5, 0.4, 0.3, 0.2),
}
_RATES = ["Count", "MeanRate", "OneMinuteRate", "FiveMinuteRate", "FifteenMinuteRate"]


@pytest.mark.parametrize(
    ("match", "leaders", "shrinks"),
    [
        (None, ["Value"], _RATES),
        ("ReplicaManager", ["Value"], _RATES),
        ("LeaderCount", ["Value"], []),
        ("*PerSec", [], _RATES),
        ("*:Count", [], ["Count"]),
        ("MinuteRate", [], _RATES[2:]),
        ("*:Value", ["Value"], []),
        ("nothing", [], []),
    ],
)
def test_a_pattern_is_of_objects_or_of_their_attributes(
    match: str | None, leaders: list[str], shrinks: list[str]
) -> None:
    found = list(matching_attributes(_METRICS, match))
    assert leaders == [attribute for name, attribute, _ in found if name == _LEADERS]
    assert shrinks == [attribute for name, attribute, _ in found if name == _SHRINKS]


def test_histograms_and_timers_have_the_attributes_of_java() -> None:
    spread = ["Count", "Min", "Max", "Mean", "StdDev"]
    spread += [f"{share}thPercentile" for share in (50, 75, 95, 98, 99, 999)]
    histogram = HistogramReading(4, 0.0, 9.0, 1.5, 3.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 6.0)
    timer = TimerReading(MeterReading(4, 0.5, 0.4, 0.3, 0.2), histogram)
    for value, expected in ((histogram, spread), (timer, [*_RATES, *spread[1:]])):
        found = list(matching_attributes({"a": value}, None))
        assert expected == [attribute for _, attribute, _ in found]
        assert 6.0 == found[-1][2]


def test_attributes_have_their_values() -> None:
    assert [
        (_LEADERS, "Value", 3),
        (_SHRINKS, "Count", 7),
        (_SHRINKS, "MeanRate", 0.5),
        (_SHRINKS, "OneMinuteRate", 0.4),
        (_SHRINKS, "FiveMinuteRate", 0.3),
        (_SHRINKS, "FifteenMinuteRate", 0.2),
    ] == list(matching_attributes(_METRICS, None))
