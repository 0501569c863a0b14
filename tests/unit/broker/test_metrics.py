"""The gauges of a broker: Kafka's names, and what they are of."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine.host.coroutine import drive
from engine.replication.partition_types import PartitionState
from tests.golden_cases import GOLDEN
from tests.unit.broker.memory_broker import MemoryBroker
from tests.unit.broker.test_broker import create_topic, produce
from tests.unit.broker.test_groups import SETTINGS, commit, coordinated

_KAFKA = "gauges-3.9.1.txt"


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
    return dict(found)


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


def test_groups_are_counted_by_state(stage: MemoryBroker) -> None:
    coordinated(stage)
    manager = "kafka.coordinator.group:type=GroupMetadataManager"
    assert {0} == set(of(stage, manager).values())
    assert 0 == commit(stage, 7)
    found = of(stage, manager)
    assert (1, 1, 1) == (found["NumGroups"], found["NumGroupsEmpty"], found["NumOffsets"])
    assert 3 == sum(found.values())
