"""The parts of a report, each made of plain values."""

from __future__ import annotations

import pytest

from engine.client.config_admin import ConfigEntry, ConfigSource
from engine.client.metadata import NO_BROKER
from engine.client.rates import PartitionRate
from engine.client.reassignments import OngoingReassignment
from engine.errors import EngineError
from engine.forecast.retention_forecast import LaterDeletion, RetentionForecast
from engine.log.retention import RetentionReason
from engine.model import TopicPartition
from engine.report.imbalance import imbalances, is_uneven
from engine.report.retention_outlook import (
    Deletion,
    RetentionBounds,
    deletions,
    topic_retentions,
)
from engine.report.setting_differences import BrokerValue, setting_differences
from engine.report.topic_risks import topic_risks
from engine.watching.broker_shares import broker_shares
from tests.unit.watching.samples import T0, T1, row, sample, view

HOUR_MS = 3_600_000

# -- imbalance

RATES = {T0: PartitionRate(300, 3.0), T1: PartitionRate(100, 1.5)}


def test_a_broker_has_the_writes_of_what_it_leads_and_the_bytes_of_all_it_holds() -> None:
    timed = sample(0, sizes={1: {T0: 10, T1: 20}, 2: {T0: 10, T1: 20}})
    first, second = broker_shares(timed.sample, RATES)
    assert (1, 2, 30, 300, 3.0) == (
        first.leader_count,
        first.replica_count,
        first.size_bytes,
        first.bytes_per_s,
        first.records_per_s,
    )
    assert (100, True, False) == (second.bytes_per_s, first.is_controller, second.is_controller)


def test_a_broker_that_says_nothing_has_no_figures() -> None:
    timed = sample(0, sizes={1: {T0: 10}}, silent=frozenset({2}))
    first, second = broker_shares(timed.sample, RATES)
    assert (10, 300) == (first.size_bytes, first.bytes_per_s)
    assert (None, None) == (second.size_bytes, second.bytes_per_s)


def test_the_skew_is_the_largest_share_by_the_mean() -> None:
    timed = sample(0, sizes={1: {T0: 10}, 2: {T0: 10}})
    found = {one.measure: one for one in imbalances(broker_shares(timed.sample, RATES))}
    assert (1.0, 1.0, 1.5) == (found["leaders"].skew, found["bytes"].skew, found["rate"].skew)
    assert (1, 300, 2, 100) == (
        found["rate"].most_broker,
        found["rate"].most,
        found["rate"].least_broker,
        found["rate"].least,
    )
    large = found["rate"]._replace(most=2 << 20)
    assert [False, False, False, True] == [is_uneven(one) for one in (*found.values(), large)]


def test_one_broker_or_nothing_at_all_is_not_uneven() -> None:
    alone = sample(0, cluster=view(racks={1: None}), sizes={1: {T0: 10}})
    assert [] == imbalances(broker_shares(alone.sample, RATES))
    empty = sample(0, sizes={1: {}, 2: {}})
    assert ["leaders"] == [one.measure for one in imbalances(broker_shares(empty.sample, {}))]


def test_a_mean_has_one_place() -> None:
    rows = (row(0, (1, 2)), row(1, (2, 1)), row(2, (1, 2)), row(3, (1, 2)))
    cluster = view(*rows, racks={1: None, 2: None, 3: None})
    (leaders,) = imbalances(broker_shares(sample(0, cluster=cluster).sample, {}))
    assert (1.3, 0, 3, 3, 1) == leaders[2:7]


def test_one_leader_more_among_few_is_not_uneven() -> None:
    rows = (row(0, (1, 2)), row(1, (2, 1)), row(2, (1, 2)))
    shares = broker_shares(sample(0, cluster=view(*rows)).sample, {})
    (leaders,) = imbalances(shares)
    assert (1.33, False) == (leaders.skew, is_uneven(leaders))
    assert is_uneven(leaders._replace(most=20))


# -- settings


def entry(name: str, value: str | None, *, is_sensitive: bool = False) -> ConfigEntry:
    source = ConfigSource.STATIC_BROKER_CONFIG
    return ConfigEntry(name, value, source, is_sensitive, False, None, None, ())


def test_a_setting_with_several_values_differs() -> None:
    configs = {
        1: [entry("num.io.threads", "8"), entry("broker.id", "1"), entry("a", "x")],
        2: [entry("num.io.threads", "4"), entry("broker.id", "2"), entry("a", "x")],
    }
    # One ensemble, whichever of its addresses a broker is given.
    configs[1].append(entry("zookeeper.connect", "zk1:2181"))
    configs[2].append(entry("zookeeper.connect", "zk2:2181"))
    (found,) = setting_differences(configs)
    assert ("num.io.threads", (BrokerValue(1, "8"), BrokerValue(2, "4"))) == found


def test_passwords_and_files_of_keys_are_not_compared() -> None:
    name = "listener.name.tls.ssl.keystore.location"
    configs = {
        1: [entry("p", "x", is_sensitive=True), entry(name, "/1")],
        2: [entry("p", "y", is_sensitive=True), entry(name, "/2")],
    }
    assert [] == setting_differences(configs)


def test_a_broker_that_does_not_show_its_settings_is_left_out() -> None:
    configs = {1: [entry("a", "x")], 2: EngineError("silent")}
    assert [] == setting_differences(configs)
    known = {1: [entry("a", "x")], 2: []}
    assert [BrokerValue(1, "x"), BrokerValue(2, None)] == [*setting_differences(known)[0].values]


# -- topics at risk


def test_the_replicas_that_a_move_brings_are_no_risk() -> None:
    lacking = view(row(0, (1, 2, 3), (1, 2)))
    moves = {T0: OngoingReassignment((1, 2, 3), (3,), ())}
    assert [] == topic_risks(sample(0, cluster=lacking, moves=moves).sample)
    unknown = sample(0, cluster=lacking).sample._replace(moves=None)
    assert ["under-replicated"] == [risk.risk for risk in topic_risks(unknown)]


def test_risks_come_with_the_worst_first() -> None:
    rows = (
        row(0, (1, 2), leader=NO_BROKER),
        row(1, (1,)),
        row(2, (1, 2), (1,)),
        row(3, (2, 1), (2,)),
    )
    found = topic_risks(sample(0, cluster=view(*rows), min_isr={"t": 2}).sample)
    assert [("offline", 1, 0), ("under-min-isr", 2, 2), ("one-replica", 1, 1)] == [
        (risk.risk, risk.partition_count, risk.first_partition) for risk in found
    ]


@pytest.mark.parametrize(
    ("racks", "replicas", "is_at_risk"),
    [
        ({1: "a", 2: "b", 3: "b"}, (1, 2), False),
        ({1: "a", 2: "b", 3: "b"}, (2, 3), True),
        ({1: "a", 2: "b", 3: "b"}, (1, 2, 3), False),
        ({1: "a", 2: "a", 3: "a"}, (1, 2), False),
        ({1: None, 2: None, 3: None}, (1, 2), False),
    ],
)
def test_replicas_in_one_rack_are_a_risk_where_another_has_none(
    racks: dict[int, str | None], replicas: tuple[int, ...], is_at_risk: bool
) -> None:
    found = topic_risks(sample(0, cluster=view(row(0, replicas), racks=racks)).sample)
    assert is_at_risk == ("racks" in [risk.risk for risk in found])


# -- retention


def forecast(
    key: TopicPartition, freed: int, later: tuple[LaterDeletion, ...], steady: int | None = 5
) -> RetentionForecast:
    reasons = {RetentionReason.TIME: freed} if freed else {}
    return RetentionForecast(key, 100, 3, reasons, 1, later, 2.0, steady, True)


FORECASTS = {
    T0: forecast(T0, 40, (LaterDeletion(3 * HOUR_MS + 5, 1, 60),)),
    T1: forecast(T1, 0, (LaterDeletion(3 * HOUR_MS + 9, 1, 30), LaterDeletion(9 * HOUR_MS, 1, 1))),
}


def test_a_topic_has_the_sums_of_its_partitions_and_the_first_deletion() -> None:
    (found,) = topic_retentions(FORECASTS, {"t": RetentionBounds(7, -1)})
    assert (7, -1, 200, 40) == found[1:5]
    assert (3 * HOUR_MS + 5, 60, round(4.0 * 86_400), 10) == found[5:]


def test_the_end_of_a_topic_is_known_if_that_of_all_its_partitions_is() -> None:
    forecasts = {**FORECASTS, T1: forecast(T1, 0, (), None)}
    assert topic_retentions(forecasts, {"t": RetentionBounds(7, -1)})[0].steady_bytes is None


def test_deletions_are_summed_by_the_hour_and_what_is_due_goes_now() -> None:
    now_ms = 2 * HOUR_MS + 1
    assert [
        Deletion(2 * HOUR_MS, "t", 40),
        Deletion(3 * HOUR_MS, "t", 90),
        Deletion(9 * HOUR_MS, "t", 1),
    ] == deletions(FORECASTS.values(), now_ms)
