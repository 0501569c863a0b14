"""Which attributes of metrics `kctl brokers metrics` shows."""

from __future__ import annotations

import json

import pytest

from engine.timing.histogram import HistogramReading, MetricValue, TimerReading
from engine.timing.meter import MeterReading
from kctl import exits
from kctl.commands.brokers import metrics
from kctl.commands.brokers.metrics import (
    MetricsRequest,
    NoRequestForMetrics,
    matching_attributes,
    show_metrics,
)
from kctl.connect import ClusterOptions
from tests.unit.client.fake_broker import FakeCluster

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


@pytest.mark.parametrize(
    ("ids", "match", "exit_code", "values", "notices"),
    [
        ([], "LeaderCount", exits.OK, [3, 3], []),
        ([2], "LeaderCount", exits.OK, [3], []),
        ([], "nothing", exits.OK, [], ["no metric matches nothing"]),
        ([9], "LeaderCount", exits.FAILED, [], ["error: broker 9 does not run"]),
        ([2, 9], "LeaderCount", exits.FAILED, [3], ["error: broker 9 does not run"]),
    ],
)
def test_brokers_and_patterns_choose_what_is_shown(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    ids: list[int],
    match: str,
    exit_code: int,
    values: list[int],
    notices: list[str],
) -> None:
    cluster = FakeCluster()
    monkeypatch.setattr(metrics, "connect", lambda _options: cluster.client())
    monkeypatch.setattr(metrics, "find_embedded_cluster", lambda _client: "/data")
    monkeypatch.setattr(metrics, "embedded_metrics", lambda *_: {2: _METRICS, 1: _METRICS})
    assert exit_code == show_metrics(ClusterOptions(), MetricsRequest(ids, match, "json"))
    printed = capsys.readouterr()
    assert values == [row["value"] for row in json.loads(printed.out or "[]")]
    assert notices == [line for line in printed.err.splitlines() if not line.startswith("hint")]


def test_a_cluster_of_kafka_has_no_request_for_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = FakeCluster()
    monkeypatch.setattr(metrics, "connect", lambda _options: cluster.client())
    monkeypatch.setattr(metrics, "find_embedded_cluster", lambda _client: None)
    with pytest.raises(NoRequestForMetrics, match="no request"):
        show_metrics(ClusterOptions(), MetricsRequest([], None, "json"))


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
