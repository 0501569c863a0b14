"""A deletion that waits: which partitions it still waits for, and what it answers."""

from __future__ import annotations

from engine.log.log_config import LogConfig
from engine.model import TopicPartition
from engine.replication.delayed_delete_records import DelayedDeleteRecords, DeleteRecordsResult
from engine.replication.errors import UnknownTopicOrPartition
from engine.replication.partition import Partition
from tests.unit.log.writing import PARTITION, sent
from tests.unit.replication.replicas import fetched, leader_of, state

OTHER = TopicPartition("other", 0)


def waiting(partition: Partition, *, for_other: bool = False) -> DelayedDeleteRecords:
    def find(topic_partition: TopicPartition) -> Partition:
        if topic_partition != PARTITION:
            raise UnknownTopicOrPartition(topic_partition)
        return partition

    required = {PARTITION: 2, **({OTHER: 1} if for_other else {})}
    results = {key: DeleteRecordsResult(None, 0) for key in required}
    return DelayedDeleteRecords(100, results, required, find)


def cut_leader() -> Partition:
    partition = leader_of((1, 2), log_config=LogConfig())
    partition.append(memoryview(bytearray(sent(3))), 1)
    fetched(partition, 3)
    partition.delete_records_before(2)
    return partition


def codes(operation: DelayedDeleteRecords) -> dict[TopicPartition, tuple[int, int]]:
    operation.force_complete()
    return {
        key: (0 if result.error is None else result.error.code, result.low_watermark)
        for key, result in operation.collect_results().items()
    }


def test_it_waits_for_the_slowest_live_replica() -> None:
    partition = cut_leader()
    operation = waiting(partition)
    assert not operation.can_complete()
    partition.followers = {
        number: known._replace(log_start_offset=2) for number, known in partition.followers.items()
    }
    assert operation.can_complete()
    assert {PARTITION: (0, 2)} == codes(operation)


def test_a_missing_partition_is_answered_and_not_waited_for() -> None:
    operation = waiting(cut_leader(), for_other=True)
    assert not operation.can_complete()
    assert {PARTITION: (7, 0), OTHER: (3, -1)} == codes(operation)


def test_a_partition_that_is_led_elsewhere_is_not_waited_for() -> None:
    partition = cut_leader()
    operation = waiting(partition)
    partition.become_follower(state((2,), leader=2, epoch=1, partition_epoch=1))
    assert operation.can_complete()
    assert {PARTITION: (6, -1)} == codes(operation)
