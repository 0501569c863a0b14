"""Produces that wait for the in-sync replicas."""

from __future__ import annotations

from engine.model import TopicPartition
from engine.replication.delayed_produce import DelayedProduce, ProduceResult
from engine.replication.errors import UnknownTopicOrPartition
from engine.replication.partition import Partition
from tests.unit.log.writing import PARTITION, sent
from tests.unit.replication.replicas import (
    committed,
    fetched,
    leader_of,
    state,
)

OTHER = TopicPartition("other", 0)


def waiting_on(
    partition: Partition, required: dict[TopicPartition, int], *failed: TopicPartition
) -> DelayedProduce:
    def find(topic_partition: TopicPartition) -> Partition:
        if topic_partition == PARTITION:
            return partition
        raise UnknownTopicOrPartition(topic_partition)

    results = {key: ProduceResult(None, 0) for key in required}
    results.update((key, ProduceResult(UnknownTopicOrPartition(key))) for key in failed)
    return DelayedProduce(100, results, required, find)


def codes_of(operation: DelayedProduce) -> dict[TopicPartition, int]:
    assert operation.force_complete()
    return {
        key: 0 if result.error is None else result.error.code
        for key, result in operation.collect_results().items()
    }


def test_it_completes_when_the_watermark_is_there() -> None:
    partition = leader_of((1, 2))
    partition.append(sent(2), -1)
    operation = waiting_on(partition, {PARTITION: 2})
    assert not operation.can_complete()
    fetched(partition, 1)
    assert not operation.can_complete()
    fetched(partition, 2)
    assert operation.can_complete()
    assert {PARTITION: 0} == codes_of(operation)


def test_a_partition_that_is_gone_is_an_error_of_its_own() -> None:
    partition = leader_of()
    partition.append(sent(), -1)
    operation = waiting_on(partition, {PARTITION: 1, OTHER: 1})
    assert operation.can_complete()
    assert {PARTITION: 0, OTHER: 3} == codes_of(operation)


def test_what_is_done_is_not_undone() -> None:
    partition = leader_of()
    partition.append(sent(), -1)
    operation = waiting_on(partition, {PARTITION: 1})
    assert operation.can_complete()
    partition.become_follower(state((2, 1), leader=2, epoch=1))
    assert operation.can_complete()
    assert {PARTITION: 0} == codes_of(operation)


def test_lost_leadership_completes_it_with_an_error() -> None:
    partition = leader_of((1, 2))
    partition.append(sent(), -1)
    operation = waiting_on(partition, {PARTITION: 1})
    partition.become_follower(state((2, 1), leader=2, epoch=1))
    assert operation.can_complete()
    assert {PARTITION: 6} == codes_of(operation)


def test_a_set_that_became_too_small_is_reported_after_the_append() -> None:
    partition = leader_of((1, 2), min_isr=2)
    partition.append(sent(), -1)
    fetched(partition, 1)
    committed(partition, (1,), 0, 1)
    operation = waiting_on(partition, {PARTITION: 1})
    assert operation.can_complete()
    assert {PARTITION: 20} == codes_of(operation)


def test_only_what_still_waits_at_the_deadline_timed_out() -> None:
    partition = leader_of((1, 2))
    partition.append(sent(), -1)
    failed = TopicPartition("failed", 0)
    operation = waiting_on(partition, {PARTITION: 1, OTHER: 1}, failed)
    assert not operation.can_complete()
    assert {PARTITION: 7, OTHER: 3, failed: 3} == codes_of(operation)
