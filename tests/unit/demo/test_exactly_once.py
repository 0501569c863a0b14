"""The exactly-once demo on brokers in memory: one instance, and the check of its output."""

from __future__ import annotations

from collections import Counter

import pytest

from engine.client.blocking import KafkaClient
from engine.client.group_admin import MemberToRemove, remove_members
from engine.client.producing import OutgoingRecord, Producer
from engine.client.transaction_calls import GroupMembership
from engine.client.transactional_producer import TransactionalProducer
from engine.demo.copied_records import OutputFaults, input_value, transformed
from engine.demo.copying import CopyingInstance, CopyNames, split_into_transactions
from engine.demo.exactly_once import (
    BrokerTooOld,
    CopyPlan,
    TransactionStillOpen,
    check_brokers,
    check_output,
    committed_count,
    fill_input,
    recreate_topics,
)
from tests.unit.broker.memory_cluster import MemoryCluster
from tests.unit.client.fake_broker import FakeCluster
from tests.unit.reassign.memory_streams import MemoryStreams, client_of

PLAN = CopyPlan("demo", 2, 1, 1_200)


class Stage:
    """Three brokers with the topics of the demo, the input filled."""

    def __init__(self) -> None:
        self.cluster = MemoryCluster(
            is_one_process=True,
            offsets_topic_num_partitions="1",
            transaction_state_log_num_partitions="1",
            transaction_state_log_min_isr="1",
            group_initial_rebalance_delay_ms="0",
        )
        self.client = self.new_client()
        recreate_topics(self.client, PLAN)
        fill_input(self.client, PLAN, lambda _count: None)

    def new_client(self) -> KafkaClient:
        return client_of(self.cluster, MemoryStreams(self.cluster))

    def instance(self) -> CopyingInstance:
        names = CopyNames(
            PLAN.input_topic, PLAN.output_topic, PLAN.group_id, PLAN.transactional_id(0), 0
        )
        return CopyingInstance(self.new_client, names)

    def finish(self, instance: CopyingInstance) -> None:
        for _ in range(50):
            if committed_count(self.client, PLAN) == PLAN.record_count:
                return
            instance.step(200)
        raise AssertionError("the copy does not end")

    def faults(self) -> OutputFaults:
        found = check_output(self.client, PLAN, lambda _count: None)
        assert found.by_instance.keys() <= {0, -1}
        return found.faults


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_an_instance_copies_each_record_once_and_in_order(stage: Stage) -> None:
    instance = stage.instance()
    stage.finish(instance)
    checked = check_output(stage.client, PLAN, lambda _count: None)
    assert (Counter({0: 1_200}), OutputFaults()) == checked
    counts = instance.counts
    assert (1_200, 0, (0, 1)) == (counts.records, counts.aborted, counts.partitions)
    assert counts.committed >= 3


def test_what_was_copied_before_is_deleted_and_forgotten(stage: Stage) -> None:
    instance = stage.instance()
    stage.finish(instance)
    instance.close()
    recreate_topics(stage.client, PLAN)
    assert 0 == committed_count(stage.client, PLAN)
    assert 1_200 == stage.faults().missing


def test_a_successor_copies_what_an_instance_that_died_left_open(stage: Stage) -> None:
    # An instance has died with records in an open transaction.
    left = TransactionalProducer(stage.new_client(), PLAN.transactional_id(0))
    left.begin()
    left.add(OutgoingRecord(PLAN.output_topic, b"0", transformed(input_value(0)), partition=0))
    left.flush()
    stage.finish(stage.instance())
    assert stage.faults().is_clean


def test_an_instance_that_the_group_has_removed_copies_nothing_twice(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    instance = stage.instance()
    membership = instance._membership

    def removed_once() -> GroupMembership:
        found = membership()
        monkeypatch.undo()
        remove_members(stage.client, PLAN.group_id, [MemberToRemove(found.member_id)])
        return found

    monkeypatch.setattr(instance, "_membership", removed_once)
    stage.finish(instance)
    assert 1 == instance.counts.aborted
    assert stage.faults().is_clean


def test_a_producer_that_another_fences_is_replaced(stage: Stage) -> None:
    instance = stage.instance()
    TransactionalProducer(stage.new_client(), PLAN.transactional_id(0)).init()
    stage.finish(instance)
    assert 1 == instance.counts.aborted
    assert stage.faults().is_clean


def test_lost_and_doubled_records_are_counted(stage: Stage) -> None:
    producer = Producer(stage.client)
    for number in (0, 2, 2):
        value = transformed(input_value(number))
        producer.add(OutgoingRecord(PLAN.output_topic, b"%d" % number, value, partition=0))
    producer.flush()
    assert OutputFaults(1_198, 1, 0) == stage.faults()


def test_an_output_with_an_open_transaction_is_not_checked(stage: Stage) -> None:
    producer = TransactionalProducer(stage.new_client(), "other")
    producer.begin()
    producer.add(OutgoingRecord(PLAN.output_topic, b"0", b"", partition=0))
    producer.flush()
    with pytest.raises(TransactionStillOpen, match="still open in demo-output-0"):
        check_output(stage.client, PLAN, lambda _count: None)


def test_a_transaction_has_at_most_500_records(stage: Stage) -> None:
    instance = stage.instance()
    consumed = []
    for _ in range(10):
        consumed += instance._consumer.poll(200)
    transactions = list(split_into_transactions(consumed))
    sizes = [sum(part.run.record_count for part in parts) for parts in transactions]
    assert [500, 500, 200] == sizes
    assert transactions[0][-1].next_offset == transactions[0][-1].run.offsets[-1] + 1


@pytest.mark.parametrize("versions", [(0, 2), None])
def test_a_broker_before_2_5_is_refused_by_its_version(versions: tuple[int, int] | None) -> None:
    cluster = FakeCluster({} if versions is None else {"TxnOffsetCommit": versions})
    if versions is not None:
        cluster.handlers["TxnOffsetCommit"] = lambda *_: None
    with pytest.raises(BrokerTooOld, match="broker 1: TxnOffsetCommit version too low"):
        check_brokers(cluster.client())
