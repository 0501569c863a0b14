"""Metrics of embedded brokers by the names of the JMX exporter."""

from __future__ import annotations

import pytest

from engine.exporter.broker_metrics import metric_families, parse_object_name
from engine.exporter.metric_family import COUNTER, SUMMARY
from engine.timing.histogram import HistogramReading, MetricValue, Moments, TimerReading
from engine.timing.meter import MeterReading


@pytest.mark.parametrize(
    ("object_name", "family", "labels"),
    [
        (
            "kafka.log:type=Log,name=Size,topic=a.b,partition=0",
            "kafka_log_log_size",
            (("topic", "a.b"), ("partition", "0")),
        ),
        (
            'kafka.log:type=LogCleanerManager,name=uncleanable-bytes,logDirectory="/a,b=c"',
            "kafka_log_logcleanermanager_uncleanable_bytes",
            (("logDirectory", "/a,b=c"),),
        ),
        (
            r'kafka.log:type=LogManager,name=LogDirectoryOffline,logDirectory="/a\"\*\\n,x=1\n"',
            "kafka_log_logmanager_logdirectoryoffline",
            (("logDirectory", '/a"*\\n,x=1\n'),),
        ),
        (
            "kafka.server:type=ReplicaManager,name=LeaderCount",
            "kafka_server_replicamanager_leadercount",
            (),
        ),
    ],
)
def test_an_object_name_becomes_a_name_with_labels(
    object_name: str, family: str, labels: tuple[tuple[str, str], ...]
) -> None:
    assert (family, labels) == parse_object_name(object_name)


def test_brokers_share_a_family() -> None:
    name = "kafka.server:type=ReplicaManager,name=LeaderCount"
    (family,) = metric_families({2: {name: 5}, 1: {name: 3}})
    assert ("broker_id",) == family.labels
    assert [(("1",), 3.0), (("2",), 5.0)] == list(family.rows)


def test_histograms_and_timers_become_summaries() -> None:
    reading = HistogramReading(4, 0.0, 9.0, 1.5, 3.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 6.0)
    name = "kafka.network:type=RequestMetrics,name=TotalTimeMs,request=Fetch"
    for value in (reading, TimerReading(MeterReading(4, 0.5, 0.4, 0.3, 0.2), reading)):
        (family,) = metric_families({1: {name: value}})
        assert ("kafka_network_requestmetrics_totaltimems", SUMMARY) == (family.name, family.kind)
        assert ("broker_id", "request", "quantile") == family.labels
        quantiles = ("0.5", "0.75", "0.95", "0.98", "0.99", "0.999")
        expected = [(("1", "Fetch", text), at) for at, text in enumerate(quantiles, 1)]
        assert expected == list(family.rows)
        assert [(("1", "Fetch"), 4, 6.0)] == list(family.totals)


def test_the_sum_of_a_summary_stays_as_values_of_0_come() -> None:
    """A sum that goes back by a rounding is a restart to Prometheus, which adds all of it again."""
    moments = Moments()
    moments.add_all([1])
    sums = set()
    for _ in range(200):
        moments.add_zeros(1)
        (family,) = metric_families({1: {"a:type=b,name=c": moments.read_distribution([], 1)}})
        sums.add(family.totals[0].value_sum)
    assert {1.0} == sums


def test_the_count_of_a_meter_becomes_a_counter() -> None:
    name = "kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec"
    reading = MeterReading(7, 0.5, 0.4, 0.3, 0.2)
    metrics: dict[str, MetricValue] = {name: reading, f"{name},topic=t": reading}
    (family,) = metric_families({1: metrics})
    assert ("kafka_server_brokertopicmetrics_bytesin", COUNTER) == (family.name, family.kind)
    assert ("broker_id", "topic") == family.labels
    # An empty label is none: the count of all topics.
    assert [(("1", ""), 7.0), (("1", "t"), 7.0)] == list(family.rows)
