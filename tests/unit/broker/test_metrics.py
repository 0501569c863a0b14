"""The gauges of a broker: Kafka's names, and what they are of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.broker.broker import Broker
from engine.broker.fetcher_metrics import fetcher_metrics, purgatory_metrics
from engine.broker.metric_text import BrokerMetric, decode_metrics, encode_metrics
from engine.broker.metrics import cleaner_metrics, controller_metrics, directory_metrics
from engine.controller.context import ControllerContext, PartitionLeadership
from engine.groups.delayed import GroupDelays
from engine.host.coroutine import drive
from engine.host.memory import ManualClock, MemoryFiles
from engine.log.cleaner.compaction_state import CleaningResult, CompactionPhase, LogCompaction
from engine.log.directory.log_directory import LogDirectory
from engine.model import TopicPartition
from engine.replication.partition_types import PartitionState
from engine.timing.histogram import HistogramReading, MetricValue, TimerReading
from engine.timing.meter import MeterReading
from engine.znode.values import PartitionAssignment, PartitionStateNode
from tests.broker_meters import fetch
from tests.unit.broker.kafka_beans import families_of, kafkas_families
from tests.unit.broker.memory_broker import MemoryBroker, request_frame
from tests.unit.broker.memory_cluster import MemoryCluster
from tests.unit.broker.test_broker import create_topic, produce
from tests.unit.broker.test_groups import SETTINGS, commit, coordinated

ROOT = Path(__file__).parents[3]
_METER = MeterReading(3, 0.1, 1 / 3, 1e-9, 0.0)
_HISTOGRAM = HistogramReading(4, 0.0, 9.0, 1.5, 1e-9, 1.0, 2.5, 9.0, 9.0, 9.0, 9.0, 6.0)
#: Meters of topics that have counted nothing here.
_WITH_TRAFFIC = (
    "BytesOutPerSec",
    "BytesRejectedPerSec",
    "DeprecatedRequestsPerSec",
    "FailedFetchRequestsPerSec",
    "FailedProduceRequestsPerSec",
    "FetchMessageConversionsPerSec",
    "ProduceMessageConversionsPerSec",
)
_OF_REPLICAS = ("UnderReplicated", "ReplicasCount")


@pytest.fixture
def stage() -> Iterator[MemoryBroker]:
    stage = MemoryBroker(**SETTINGS)
    stage.start()
    create_topic(stage.connect(), "t")
    yield stage
    stage.stop()
    assert not stage.faults


def gauges(stage: MemoryBroker) -> dict[str, int]:
    """Return the broker's gauges by name."""
    asked = drive(stage.broker.metrics())
    stage.pass_time(1)
    found = asked.result()
    names = [metric.name for metric in found]
    assert len(names) == len(set(names))
    return {name: value for name, value in found if isinstance(value, int)}


def of(stage: MemoryBroker, kind: str) -> dict[str, int]:
    """Return the gauges of a type, by what follows the type in their names."""
    start = f"{kind},name="
    return {
        name.removeprefix(start): value
        for name, value in gauges(stage).items()
        if name.startswith(start)
    }


def metrics_of(broker: Broker, pass_time: Callable[[int], object]) -> list[BrokerMetric]:
    """Return all metrics of a broker."""
    asked = drive(broker.metrics())
    pass_time(100)
    return asked.result()


def all_families() -> set[str]:
    """Return the families of brokers that follow each other and have served records."""
    cluster = MemoryCluster(is_one_process=False)
    cluster.create_topic(replicas=[(1, 2, 3), (2, 3, 1)])
    cluster.produce(1)
    cluster.pass_time(6_000)
    found = set()
    for broker in cluster.brokers.values():
        found |= families_of(metrics_of(broker, cluster.pass_time))
    return found


def test_each_metric_has_the_name_and_the_kind_of_one_of_kafkas(stage: MemoryBroker) -> None:
    coordinated(stage)
    found = families_of(metrics_of(stage.broker, stage.pass_time)) | all_families()
    assert set() == found - kafkas_families()


def test_what_kafka_measures_and_we_do_not_is_in_compatibility(stage: MemoryBroker) -> None:
    coordinated(stage)
    produce(stage.connect(), "t")
    found = families_of(metrics_of(stage.broker, stage.pass_time)) | all_families()
    page = (ROOT / "docs/compatibility.md").read_text()
    lacking = {family.split("name=")[1].split(",")[0] for family in kafkas_families() - found}
    # Meters of topics are there once they have counted something.
    lacking = {name for name in lacking if name not in _WITH_TRAFFIC}
    assert [] == [name for name in sorted(lacking) if f"`{name}`" not in page]


def test_followed_partitions_have_a_lag() -> None:
    cluster = MemoryCluster(is_one_process=False)
    cluster.create_topic(replicas=[(1, 2)])
    cluster.pass_time(2_000)
    found = dict(metrics_of(cluster.brokers[2], cluster.pass_time))
    lag = "kafka.server:type=FetcherLagMetrics,name=ConsumerLag"
    assert 0 == found[f"{lag},clientId=ReplicaFetcherThread-0-1,topic=t,partition=0"]
    assert 0 == found["kafka.server:type=ReplicaFetcherManager,name=MaxLag,clientId=Replica"]
    fetcher = cluster.brokers[2].storage.fetchers.fetchers[1, 0]
    states = {key: state._replace(lag=7) for key, state in fetcher.followed.states.items()}
    lags = [value for _, value in fetcher_metrics({(1, 0): states})]
    assert [7, 7] == lags
    sessions = dict(metrics_of(cluster.brokers[1], cluster.pass_time))
    cache = "kafka.server:type=FetchSessionCache,name=NumIncrementalFetch"
    assert (1, 1) == (sessions[f"{cache}Sessions"], sessions[f"{cache}PartitionsCached"])


def test_members_of_groups_wait_in_the_purgatories_that_kafka_has_for_them() -> None:
    delays = GroupDelays(ManualClock(), lambda _deadline_ms: None)
    for key in (("member", "g", "m"), ("member", "g", "n"), ("sync", "g")):
        delays.wait(key, 1_000, lambda: False, lambda _is_expired: None)
    counts = delays.purgatory_counts()
    assert {"Heartbeat": (2, 2), "Rebalance": (1, 1)} == counts
    names = dict(purgatory_metrics(counts))
    purgatory = "kafka.server:type=DelayedOperationPurgatory,name="
    assert 2 == names[f"{purgatory}PurgatorySize,delayedOperation=Heartbeat"]
    assert 1 == names[f"{purgatory}NumDelayedOperations,delayedOperation=Rebalance"]


def test_the_last_cleaning_and_the_dirtiest_log_are_shown() -> None:
    log = LogCompaction(
        "t", 0, CompactionPhase.IDLE, 0, 0, 0, 0, 0, 0.256, False, None, None, None, None
    )
    first = CleaningResult(0, 9, 1_000, 100, 9, 1, 1_000, 9_999, 50)
    last = CleaningResult(0, 9, 1_000, 750, 9, 1, 1_000, 2_999, 60)
    states = [log._replace(last=first), log._replace(dirty_ratio=0.1, last=last)]
    states.append(log._replace(phase=CompactionPhase.UNCLEANABLE, dirty_ratio=1.0))
    assert [25, 2, 75] == [value for _, value in cleaner_metrics(states)]
    assert [0, 0, 0] == [value for _, value in cleaner_metrics([])]


def test_syncs_of_segments_are_timed(stage: MemoryBroker) -> None:
    produce(stage.connect(), "t")
    log = stage.broker.storage.logs.logs[TopicPartition("t", 0)]
    log.flush(0)
    found = dict(metrics_of(stage.broker, stage.pass_time))
    reading = found["kafka.log:type=LogFlushStats,name=LogFlushRateAndTimeMs"]
    assert isinstance(reading, TimerReading)
    assert reading.meter.event_count == reading.times.event_count >= 1


def test_events_of_the_controller_are_timed(stage: MemoryBroker) -> None:
    found = dict(metrics_of(stage.broker, stage.pass_time))
    stats = "kafka.controller:type=ControllerStats,name="
    counts = {
        name.removeprefix(stats): value.meter.event_count
        for name, value in found.items()
        if isinstance(value, TimerReading)
    }
    # It has become the controller, and seen a topic.
    assert counts["ControllerChangeRateAndTimeMs"] >= 1
    assert counts["TopicChangeRateAndTimeMs"] >= 1
    waits = found["kafka.controller:type=ControllerEventManager,name=EventQueueTimeMs"]
    assert isinstance(waits, HistogramReading)
    assert waits.event_count >= 2


def test_a_request_that_waits_has_remote_time(stage: MemoryBroker) -> None:
    produce(stage.connect(), "t")
    client = stage.connect()
    end = stage.broker.storage.logs.logs[TopicPartition("t", 0)].log_end_offset
    request = fetch(("t", 0, end), max_wait_ms=300)
    client.send(request_frame(request.name, request.version, request.message))
    for _ in range(10):
        stage.pass_time(50)
    found = dict(metrics_of(stage.broker, stage.pass_time))
    metrics = "kafka.network:type=RequestMetrics,name="
    times = [
        found[f"{metrics}{name},request=FetchConsumer"]
        for name in ("TotalTimeMs", "RemoteTimeMs", "LocalTimeMs")
    ]
    assert [(1, 300), (1, 300), (1, 0)] == [(each[0], each[2]) for each in times]


def test_a_log_is_measured_as_it_is(stage: MemoryBroker) -> None:
    assert 0 == of(stage, "kafka.log:type=Log")["LogEndOffset,topic=t,partition=0"]
    produce(stage.connect(), "t")
    log = stage.broker.storage.logs.logs
    (size,) = {each.size_bytes for key, each in log.items() if key == ("t", 0)}
    found = of(stage, "kafka.log:type=Log")
    kinds = ("LogEndOffset", "LogStartOffset", "NumLogSegments", "Size")
    end = next(each.log_end_offset for key, each in log.items() if key == ("t", 0))
    assert end > 0 < size
    assert [end, 0, 1, size] == [found[f"{kind},topic=t,partition=0"] for kind in kinds]


def test_a_broker_counts_what_it_leads_and_controls(stage: MemoryBroker) -> None:
    replicas = of(stage, "kafka.server:type=ReplicaManager")
    assert (1, 1, 0) == (
        replicas["PartitionCount"],
        replicas["LeaderCount"],
        replicas["UnderReplicatedPartitions"],
    )
    controller = of(stage, "kafka.controller:type=KafkaController")
    assert (1, 1, 1, 0) == (
        controller["ActiveControllerCount"],
        controller["GlobalTopicCount"],
        controller["GlobalPartitionCount"],
        controller["OfflinePartitionsCount"],
    )
    coordinated(stage)
    assert 2 == of(stage, "kafka.controller:type=KafkaController")["GlobalTopicCount"]


def test_a_partition_whose_follower_is_away_is_under_replicated(stage: MemoryBroker) -> None:
    partition = next(
        each
        for key, each in stage.broker.storage.replica_manager.partitions.items()
        if key[0] == "t"
    )
    partition.become_leader(PartitionState(1, partition.leader_epoch + 1, (1,), 1, (1, 2)))
    found = of(stage, "kafka.cluster:type=Partition")
    names = ("UnderReplicated", "InSyncReplicasCount", "ReplicasCount", "AtMinIsr", "UnderMinIsr")
    assert [1, 1, 2, 1, 0] == [found[f"{name},topic=t,partition=0"] for name in names]
    assert 1 == of(stage, "kafka.server:type=ReplicaManager")["UnderReplicatedPartitions"]


def test_replicas_that_a_reassignment_adds_do_not_count_yet(stage: MemoryBroker) -> None:
    partition = stage.broker.storage.replica_manager.find(TopicPartition("t", 0))
    partition.become_leader(PartitionState(1, partition.leader_epoch + 1, (1,), 1, (2, 1), (2,)))
    found = of(stage, "kafka.cluster:type=Partition")
    assert [0, 1] == [found[f"{name},topic=t,partition=0"] for name in _OF_REPLICAS]
    replicas = of(stage, "kafka.server:type=ReplicaManager")
    counts = ("UnderReplicatedPartitions", "ReassigningPartitions")
    assert [0, 1] == [replicas[name] for name in counts]
    partition.become_leader(
        PartitionState(1, partition.leader_epoch + 1, (1,), 2, (2, 1, 3), (3,), (2,))
    )
    found = of(stage, "kafka.cluster:type=Partition")
    assert [1, 2] == [found[f"{name},topic=t,partition=0"] for name in _OF_REPLICAS]


def test_a_preferred_leader_that_a_reassignment_adds_is_missed_once_it_is_in_sync() -> None:
    context, partition = ControllerContext(), TopicPartition("t", 0)
    context.assign(partition, PartitionAssignment((2, 1), (2,)))
    name = "kafka.controller:type=KafkaController,name=PreferredReplicaImbalanceCount"
    counts = []
    for isr in ((1,), (1, 2)):
        context.leaderships[partition] = PartitionLeadership(PartitionStateNode(1, 5, isr, 1), 0)
        counts.append(dict(controller_metrics(context, is_active=True))[name])
    assert [0, 1] == counts


def test_uncleanable_bytes_are_those_that_would_be_cleaned(stage: MemoryBroker) -> None:
    directories = stage.broker.storage.logs.directories
    path = directories[0].path
    logs = [
        LogCompaction("t", 0, phase, 1000, 5, 9, 12, 300, 0.3, False, None, None, None, None)
        for phase in (CompactionPhase.IDLE, CompactionPhase.UNCLEANABLE)
    ]
    found = dict(directory_metrics(directories, [(path, log) for log in logs]))
    manager = "kafka.log:type=LogCleanerManager,name="
    kinds = ("uncleanable-partitions-count", "uncleanable-bytes")
    assert [1, 300] == [found[f'{manager}{kind},logDirectory="{path}"'] for kind in kinds]


@pytest.mark.parametrize(
    ("path", "quoted"),
    [("/data 1", '"/data 1"'), ('/a"*?', r'"/a\"\*\?"'), ("/a\\n\n", r'"/a\\n\n"')],
)
def test_the_path_of_a_directory_is_quoted_as_java_does(path: str, quoted: str) -> None:
    directory = LogDirectory(MemoryFiles(), path, lambda _path: lambda: None)
    names = dict(directory_metrics([directory], []))
    start = "kafka.log:type=LogManager,name=LogDirectoryOffline,logDirectory="
    assert f"{start}{quoted}" in names


def test_metrics_are_sent_as_text() -> None:
    gauges: dict[str, MetricValue] = {
        "kafka.server:type=ReplicaManager,name=LeaderCount": -1,
        'a,logDirectory="/x y\u2028"': 7,
        "kafka.server:type=ReplicaManager,name=IsrShrinksPerSec": _METER,
        "kafka.network:type=RequestMetrics,name=RequestBytes,request=Fetch": _HISTOGRAM,
        'kafka.log:type=LogFlushStats,name=a b,x="y z"': TimerReading(_METER, _HISTOGRAM),
        "a": 0.25,
    }
    metrics = [BrokerMetric(name, value) for name, value in gauges.items()]
    assert gauges == decode_metrics(encode_metrics(metrics))
    assert {} == decode_metrics(encode_metrics([]))


def test_replicas_of_a_failed_directory_are_counted(stage: MemoryBroker) -> None:
    stage.broker.storage.replica_manager.mark_offline(TopicPartition("t", 0))
    found = of(stage, "kafka.server:type=ReplicaManager")
    names = ("PartitionCount", "LeaderCount", "OfflineReplicaCount")
    assert [1, 0, 1] == [found[name] for name in names]


def test_groups_are_counted_by_state(stage: MemoryBroker) -> None:
    coordinated(stage)
    manager = "kafka.coordinator.group:type=GroupMetadataManager"
    assert {0} == set(of(stage, manager).values())
    assert 0 == commit(stage, 7)
    found = of(stage, manager)
    assert (1, 1, 1) == (found["NumGroups"], found["NumGroupsEmpty"], found["NumOffsets"])
    assert 3 == sum(found.values())
