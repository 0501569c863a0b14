"""The gauges of a broker: Kafka's names, and what they are of."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine.broker.metric_text import BrokerMetric, decode_metrics, encode_metrics
from engine.broker.metrics import controller_metrics, directory_metrics
from engine.controller.context import ControllerContext, PartitionLeadership
from engine.host.coroutine import drive
from engine.host.memory import MemoryFiles
from engine.log.cleaner.compaction_state import CompactionPhase, LogCompaction
from engine.log.directory.log_directory import LogDirectory
from engine.model import TopicPartition
from engine.replication.partition_types import PartitionState
from engine.timing.meter import MeterReading, MetricValue
from engine.znode.values import PartitionAssignment, PartitionStateNode
from tests.golden_cases import GOLDEN
from tests.unit.broker.memory_broker import MemoryBroker
from tests.unit.broker.test_broker import create_topic, produce
from tests.unit.broker.test_groups import SETTINGS, commit, coordinated

_KAFKA = "gauges-3.9.1.txt"
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
    return {name: value for name, value in found if not isinstance(value, MeterReading)}


def of(stage: MemoryBroker, kind: str) -> dict[str, int]:
    """Return the gauges of a type, by what follows the type in their names."""
    start = f"{kind},name="
    return {
        name.removeprefix(start): value
        for name, value in gauges(stage).items()
        if name.startswith(start)
    }


def test_names_are_those_of_kafkas_brokers(stage: MemoryBroker) -> None:
    named = set((GOLDEN / "brokers" / _KAFKA).read_text().splitlines())
    assert set(gauges(stage)) <= named


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
        "kafka.server:type=ReplicaManager,name=IsrShrinksPerSec": MeterReading(
            3, 0.1, 1 / 3, 1e-9, 0.0
        ),
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
