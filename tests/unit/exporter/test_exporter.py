"""Metrics of brokers in memory: what is asked, how often, and what a lost broker costs."""

from __future__ import annotations

from typing import Any

import pytest

from engine.client.connection import Call
from engine.client.group_admin import set_offsets
from engine.client.groups import GroupListing, MemberView
from engine.client.metadata import ClusterView
from engine.client.producing import OutgoingRecord, Producer
from engine.client.settings import Address
from engine.errors import EngineError
from engine.exporter.cluster_metrics import cluster_metrics
from engine.exporter.exporter import ExpiryOf, Exporter, ExporterOptions
from engine.exporter.gathering import group_calls
from engine.exporter.group_metrics import group_metrics
from engine.exporter.lag_times import EndHistory
from engine.exporter.metric_family import MetricFamily
from engine.exporter.snapshots import take_snapshot
from engine.host.certificate_expiry import NoCertificate
from engine.model import TopicPartition
from tests.unit.broker.memory_cluster import MemoryCluster
from tests.unit.reassign.memory_streams import client_of
from tests.unit.watching.samples import group, row, sample, view

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Stage:
    """Three brokers with topic t of two partitions, three records, and a group at the second."""

    def __init__(self, *, is_one_process: bool = True) -> None:
        self.cluster = MemoryCluster(
            is_one_process=is_one_process, offsets_topic_num_partitions="1"
        )
        self.cluster.create_topic("t", ((1, 2), (2, 1)))
        self.cluster.pass_time(1_000)
        self.client = client_of(self.cluster)
        self.produce(3)
        set_offsets(self.client, "g", {T0: 1, T1: 0})

    def produce(self, count: int) -> None:
        producer = Producer(self.client)
        for _ in range(count):
            producer.add(OutgoingRecord("t", None, b"v", partition=0))
        producer.flush()
        self.cluster.pass_time(1_000)

    def exporter(self, *, expiry_of: ExpiryOf | None = None, **options: int) -> Exporter:
        fields = {"min_interval_ms": 0, "timeout_ms": 4_000, **options}
        return Exporter(self.client, ExporterOptions("9", **fields), expiry_of)

    def values(self, exporter: Exporter) -> dict[str, float]:
        return values_of(exporter.families())


def values_of(families: list[MetricFamily]) -> dict[str, float]:
    """Return each value by the metric's name and the values of its labels."""
    return {
        " ".join((family.name, *labels)): value
        for family in families
        for labels, value in family.rows
    }


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_metrics_of_embedded_brokers_come_along(stage: Stage) -> None:
    options = ExporterOptions("9", 0, 4_000)
    name = "kafka.server:type=ReplicaManager,name=LeaderCount"
    values = stage.values(Exporter(stage.client, options, metrics_of=lambda: {1: {name: 3}}))
    assert 3 == values["kafka_server_replicamanager_leadercount 1"]


def test_gauges_that_are_not_answered_leave_the_others(stage: Stage) -> None:
    def busy() -> dict[int, dict[str, int]]:
        raise EngineError("another command has the turn")

    values = stage.values(Exporter(stage.client, ExporterOptions("9", 0, 4_000), metrics_of=busy))
    assert 0 == values["kminion_exporter_up 9"]
    assert 1 == values["kctl_exporter_failed_requests -1 metrics EngineError"]
    assert 2 == values["kminion_kafka_consumer_group_topic_partition_lag g t 0"]
    assert not [name for name in values if name.startswith("kafka_")]


def test_a_scrape_has_what_kminions_dashboards_ask_for(stage: Stage) -> None:
    values = stage.values(stage.exporter())
    expected = {
        "kminion_exporter_up 9": 1,
        "kminion_kafka_topic_info t 2 2 delete": 1,
        "kminion_kafka_topic_partition_low_water_mark t 0": 0,
        "kminion_kafka_topic_partition_high_water_mark t 0": 3,
        "kminion_kafka_topic_high_water_mark_sum t": 3,
        "kminion_kafka_consumer_group_topic_partition_lag g t 0": 2,
        "kminion_kafka_consumer_group_topic_partition_lag g t 1": 0,
        "kminion_kafka_consumer_group_topic_lag g t": 2,
        "kminion_kafka_consumer_group_topic_offset_sum g t": 1,
        "kminion_kafka_consumer_group_members g": 0,
        "kctl_kafka_topic_partition_leader t 1": 2,
        "kctl_kafka_topic_partition_replicas t 1": 2,
        "kctl_kafka_topic_partition_in_sync_replicas t 1": 2,
        "kctl_kafka_under_replicated_partitions": 0,
        "kctl_kafka_offline_partitions": 0,
        "kctl_kafka_reassigning_partitions": 0,
        "kctl_kafka_broker_up 3": 1,
    }
    assert expected == {name: values[name] for name in expected}
    sizes = [
        values[f"kminion_kafka_broker_log_dir_size_total_bytes {b} here {p} "]
        for b, p in (
            (id_, broker.ports["PLAINTEXT"]) for id_, broker in stage.cluster.brokers.items()
        )
    ]
    assert sum(sizes) == sum(
        value for name, value in values.items() if "topic_log_dir_size_total" in name
    )
    (info,) = [name for name in values if name.startswith("kminion_kafka_consumer_group_info")]
    assert "kminion_kafka_consumer_group_info g   Empty" == info.rpartition(" ")[0]


def test_lag_in_seconds_is_counted_from_the_scrape_that_saw_the_record(stage: Stage) -> None:
    exporter = stage.exporter()
    set_offsets(stage.client, "g", {T0: 3})
    name = "kctl_kafka_consumer_group_topic_partition_lag_seconds g t 0"
    assert 0 == stage.values(exporter)[name]
    stage.produce(5)
    stage.values(exporter)
    stage.cluster.pass_time(60_000)
    values = stage.values(exporter)
    assert 60 <= values[name] < 63
    assert 0 <= values["kctl_exporter_scrape_seconds"] < 3


@pytest.mark.parametrize("jump_ms", [-3_600_000, 3_600_000])
def test_lag_in_seconds_does_not_follow_a_clock_that_is_set(stage: Stage, jump_ms: int) -> None:
    exporter = stage.exporter()
    name = "kctl_kafka_consumer_group_topic_partition_lag_seconds g t 0"
    before = stage.values(exporter)[name]
    stage.cluster.clock.jump_wall(jump_ms)
    assert before <= stage.values(exporter)[name] < before + 3


def test_a_scrape_within_the_interval_asks_nothing(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    exporter = stage.exporter(min_interval_ms=10_000)
    first = exporter.families()
    with monkeypatch.context() as patch:
        patch.setattr(stage.client, "view", None)
        patch.setattr(stage.client, "exchange", None)
        stage.cluster.pass_time(9_000)
        assert exporter.families() is first
    stage.cluster.pass_time(1_000)
    assert exporter.families() is not first


def test_each_broker_is_asked_few_requests_however_many_groups_there_are(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        set_offsets(stage.client, f"g{number}", {T0: number})
    asked: list[str] = []
    submit = stage.client.connections.submit

    def counted(address: Address, call: Call, *rest: Any, **options: Any) -> None:
        asked.append(call.api_name)
        submit(address, call, *rest, **options)

    monkeypatch.setattr(stage.client.connections, "submit", counted)
    values = stage.values(stage.exporter())
    assert 0 == values["kminion_kafka_consumer_group_topic_lag g19 t"]
    # Three brokers; two lead t, and one of them or the third the offsets topic.
    assert len(asked) <= 1 + 3 * 2 + 3 * 2 + 2 + 2
    assert (1, 1) == (asked.count("OffsetFetch"), asked.count("DescribeGroups"))


def test_changes_between_scrapes_are_counted(stage: Stage) -> None:
    exporter = stage.exporter()
    assert 0 == stage.values(exporter)["kctl_kafka_changes topic-created"]
    stage.cluster.create_topic("u", ((1, 2),))
    stage.cluster.pass_time(1_000)
    assert 1 == stage.values(exporter)["kctl_kafka_changes topic-created"]


def test_a_broker_that_is_silent_is_down_and_all_others_count(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    exporter = stage.exporter()
    stage.values(exporter)
    gone = Address("here", stage.cluster.brokers[2].ports["PLAINTEXT"])
    submit = stage.client.connections.submit

    def lost(address: Address, call: Call, *rest: Any, **options: Any) -> None:
        is_lost = address == gone and call.api_name != "Metadata"
        submit(Address("nowhere", 1) if is_lost else address, call, *rest, **options)

    monkeypatch.setattr(stage.client.connections, "submit", lost)
    values = stage.values(exporter)
    assert (1, 0) == (values["kctl_kafka_broker_up 1"], values["kctl_kafka_broker_up 2"])
    assert 0 == values["kminion_exporter_up 9"]
    assert "kminion_kafka_topic_partition_high_water_mark t 0" in values
    assert "kminion_kafka_topic_partition_high_water_mark t 1" not in values
    assert 2 == values["kctl_exporter_failed_requests 2 ListOffsets ConnectionLost"]


def test_a_broker_that_is_registered_no_more_is_down_while_it_has_replicas() -> None:
    """An alert for a minute of 0 would see a lost broker for the length of its session alone."""
    rows = (row(0, (1, 2), isr=(1,)), row(1, (3, 1), isr=(1,), leader=1))
    lost = sample(cluster=view(*rows, racks={1: None, 3: None}), silent=frozenset([3])).sample
    values = values_of(list(cluster_metrics(lost, {})))
    up = {name: value for name, value in values.items() if "broker_up" in name}
    name = "kctl_kafka_broker_up"
    assert {f"{name} 1": 1, f"{name} 2": 0, f"{name} 3": 0} == up
    assert "1" == next(key for key in values if "cluster_info" in key).split()[-1]


def test_a_cluster_that_cannot_be_reached_is_a_metric(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    exporter = stage.exporter()

    def unreachable(*_: object, **__: object) -> None:
        raise EngineError("gone")

    monkeypatch.setattr(stage.client, "view", unreachable)
    values = stage.values(exporter)
    assert not exporter.is_up
    assert (0, 0) == (values["kctl_exporter_cluster_up"], values["kminion_exporter_up 9"])
    assert 1 == values["kctl_exporter_failed_requests -1 Metadata EngineError"]


def test_groups_may_be_left_out(stage: Stage) -> None:
    values = stage.values(stage.exporter(has_groups=False))
    assert not [name for name in values if "consumer_group" in name]


def test_members_are_counted_with_the_partitions_that_they_have() -> None:
    owned: list[tuple[TopicPartition, ...] | None] = [(T0, T1), (T0,), (), None]
    found = sample(groups=(group("g", {}, ()),)).sample
    (only,) = found.groups
    assert only.description is not None
    members = only.description._replace(
        members=tuple(MemberView("m", None, "c", "/h", keys) for keys in owned)
    )
    found = found._replace(groups=(only._replace(description=members),))
    values = values_of(list(group_metrics(found, EndHistory(), 0)))
    prefix = "kminion_kafka_consumer_group"
    expected = {
        f"{prefix}_members g": 4,
        f"{prefix}_empty_members g": 2,
        f"{prefix}_topic_members g t": 2,
        f"{prefix}_topic_assigned_partitions g t": 3,
    }
    assert expected == {name: values[name] for name in expected}


def test_each_step_has_half_of_the_time_that_is_left(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    exporter, client = stage.exporter(timeout_ms=8_000), stage.client
    exchange = client.exchange
    lefts, waits = list[int](), list[int]()

    def noted(calls: Any, deadline_ms: int) -> Any:
        lefts.append(deadline_ms - client.clock.monotonic_ms())
        for _, call in calls.values():
            if call.api_name == "ListPartitionReassignments":
                waits.append(call.message.timeout_ms)
        return exchange(calls, deadline_ms)

    monkeypatch.setattr(client, "exchange", noted)
    stage.cluster.pass_time(60_000)
    exporter.families()
    assert 3_000 < lefts[0] <= 4_000
    assert lefts == sorted(lefts, reverse=True)
    assert 0 < waits[0] <= 8_000


def test_certificates_are_checked_once_in_an_hour(stage: Stage) -> None:
    looks: list[str] = []
    expired: list[bool] = []

    def expiry_of(host: str, port: int, _timeout_s: float) -> int:
        looks.append(host)
        if expired or port == stage.cluster.brokers[3].ports["PLAINTEXT"]:
            raise NoCertificate(host, port, "none")
        return 5_000

    exporter = stage.exporter(expiry_of=expiry_of)
    name = "kctl_kafka_certificate_expiry_timestamp_seconds"
    for _ in range(2):
        values = stage.values(exporter)
        assert [5, 5] == [value for key, value in values.items() if name in key]
    assert 3 == len(looks)
    expired.append(True)
    stage.cluster.pass_time(3_600_000, step_ms=60_000)
    values = stage.values(exporter)
    assert 6 == len(looks)
    # A client that trusts no expired certificate does not see its time.
    assert [5, 5] == [value for key, value in values.items() if name in key]


def test_with_kraft_no_broker_passes_for_the_controller(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = stage.client.view

    def of_kraft(topics: None, *, deadline_ms: int) -> ClusterView:
        return view(topics, deadline_ms=deadline_ms)._replace(is_controller_known=False)

    monkeypatch.setattr(stage.client, "view", of_kraft)
    values = stage.values(stage.exporter())
    assert -1 == values["kctl_kafka_controller_id"]
    assert not [name for name in values if "broker_info" in name and name.endswith("true")]


def test_a_snapshot_has_the_moves_that_the_controller_says(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert frozenset() == take_snapshot(stage.client, 4_000).moving
    view = stage.client.view

    def without_controller(topics: None, *, deadline_ms: int) -> ClusterView:
        return view(topics, deadline_ms=deadline_ms)._replace(controller_id=-1)

    monkeypatch.setattr(stage.client, "view", without_controller)
    assert take_snapshot(stage.client, 4_000).moving is None


def test_free_bytes_of_log_directories_are_shown(stage: Stage) -> None:
    free = [name for name in stage.values(stage.exporter()) if "log_dir_usable_bytes" in name]
    assert ["1", "2", "3"] == sorted(name.split()[1] for name in free)


def test_groups_that_share_are_neither_described_nor_asked_for_commits() -> None:
    """Their state is that of the list: DescribeGroups says Dead of a group of another type."""
    types = {"a": None, "b": "classic", "c": "consumer", "d": "share", "e": "streams"}
    listings = [
        GroupListing(name, "share" if kind == "share" else "consumer", "Stable", kind, 1)
        for name, kind in types.items()
    ]
    calls = {call.api_name: repr(call.message) for _, call in group_calls(listings)}
    names = {api: [name for name in types if f"'{name}'" in text] for api, text in calls.items()}
    assert names == {
        "OffsetFetch": ["a", "b", "c", "e"],
        "DescribeGroups": ["a", "b"],
        "ConsumerGroupDescribe": ["c"],
    }
