"""Transactions over three whole brokers: what readers see (T1), and what failures leave."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from engine.model import TopicPartition
from engine.naming import coordinator_partition
from engine.wire.structs import message_class
from tests.unit.broker.memory_cluster import MemoryCluster, Requested
from tests.unit.broker.test_local_messages import EncodedCluster
from tests.unit.log.writing import sent

COUNT = 5
ALL = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
T0, T1, T2 = (TopicPartition("t", index) for index in range(3))
STATE = TopicPartition("__transaction_state", coordinator_partition("x", COUNT))


@pytest.fixture(params=["values", "messages", "network"])
def cluster(request: pytest.FixtureRequest) -> Iterator[MemoryCluster]:
    kind = EncodedCluster if request.param == "messages" else MemoryCluster
    cluster = kind(
        is_one_process=request.param != "network",
        transaction_state_log_num_partitions=str(COUNT),
        offsets_topic_num_partitions=str(COUNT),
        offsets_topic_replication_factor="3",
    )
    cluster.create_topic("t", ALL, min_insync_replicas="1")
    coordinator(cluster)
    yield cluster
    assert not cluster.fatal


def leader(cluster: MemoryCluster, key: TopicPartition) -> int:
    return cluster.stored(key).leader


def coordinator(cluster: MemoryCluster) -> int:
    """Return the coordinator of id x, having the topics of coordinators created."""
    for _ in range(20):
        found = [
            cluster.ask(next(iter(cluster.brokers)), "FindCoordinator", 3, key="x", key_type=kind)
            for kind in (0, 1)
        ]
        if all(one.answer().error_code == 0 for one in found):
            return int(found[1].answer().node_id)
        cluster.pass_time(500)
    raise AssertionError("no coordinator")


def ask(cluster: MemoryCluster, name: str, version: int, **fields: Any) -> Any:
    """Ask the coordinator, again while it is not ready."""
    for _ in range(40):
        requested = cluster.ask(coordinator(cluster), name, version, **fields)
        for _ in range(20):
            if requested.answer() is not None:
                break
            cluster.pass_time(100)
        answer = requested.answer()
        code = getattr(answer, "error_code", 0)
        if answer is not None and code not in (14, 15, 16, 51):
            return answer
        cluster.pass_time(200)
    raise AssertionError(f"{name} is not answered")


class Producer:
    """A transactional producer that says each of its requests itself."""

    def __init__(self, cluster: MemoryCluster, transactional_id: str = "x") -> None:
        self.cluster = cluster
        self.id = transactional_id
        begun = ask(
            cluster,
            "InitProducerId",
            4,
            transactional_id=transactional_id,
            transaction_timeout_ms=60_000,
        )
        assert 0 == begun.error_code
        self.producer_id, self.epoch = begun.producer_id, begun.producer_epoch
        self.sequences: dict[TopicPartition, int] = {}

    def begin(self, *keys: TopicPartition) -> None:
        """Add partitions to the transaction."""
        request = message_class("AddPartitionsToTxnRequest")
        topics: dict[str, list[int]] = {}
        for key in keys:
            topics.setdefault(key.topic, []).append(key.partition)
        while True:
            answer = ask(
                self.cluster,
                "AddPartitionsToTxn",
                3,
                v3_and_below_transactional_id=self.id,
                v3_and_below_producer_id=self.producer_id,
                v3_and_below_producer_epoch=self.epoch,
                v3_and_below_topics=[
                    request.AddPartitionsToTxnTopic(name=name, partitions=indexes)
                    for name, indexes in topics.items()
                ],
            )
            codes = {
                row.partition_error_code
                for topic in answer.results_by_topic_v3_and_below
                for row in topic.results_by_partition
            }
            if codes & {14, 15, 16, 51}:
                self.cluster.pass_time(100)
                continue
            assert {0} == codes
            return

    def send(self, key: TopicPartition, count: int = 1) -> Requested:
        """Send records to the leader of a partition."""
        first = self.sequences.get(key, 0)
        self.sequences[key] = first + count
        batch = sent(
            count,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=first,
            is_transactional=True,
        )
        request = message_class("ProduceRequest")
        data = request.PartitionProduceData(index=key.partition, records=batch)
        return self.cluster.ask(
            leader(self.cluster, key),
            "Produce",
            9,
            acks=-1,
            timeout_ms=60_000,
            transactional_id=self.id,
            topic_data=[request.TopicProduceData(name=key.topic, partition_data=[data])],
        )

    def sent(self, key: TopicPartition, count: int = 1) -> None:
        """Send records, and have them acknowledged."""
        requested = self.send(key, count)
        for _ in range(50):
            if requested.code() is not None:
                break
            self.cluster.pass_time(100)
        assert 0 == requested.code()

    def end(self, *, is_commit: bool = True) -> int:
        """Commit or abort; returns the error code."""
        answer = ask(
            self.cluster,
            "EndTxn",
            3,
            transactional_id=self.id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=is_commit,
        )
        return int(answer.error_code)


def state(cluster: MemoryCluster, transactional_id: str = "x") -> str:
    found = ask(cluster, "DescribeTransactions", 0, transactional_ids=[transactional_id])
    return str(found.transaction_states[0].transaction_state)


def stable(cluster: MemoryCluster, key: TopicPartition) -> tuple[int, int]:
    """Return the last stable offset and the watermark of a partition's leader."""
    partition = cluster.partition(leader(cluster, key), key)
    return partition.last_stable_offset, partition.high_watermark


def test_readers_of_committed_records_wait_for_the_end(cluster: MemoryCluster) -> None:
    producer = Producer(cluster)
    producer.begin(T0, T1)
    producer.sent(T0, 3)
    producer.sent(T1, 2)
    cluster.pass_time(1_000)
    assert [(0, 3), (0, 2)] == [stable(cluster, key) for key in (T0, T1)]
    assert 0 == producer.end()
    cluster.pass_time(1_000)
    assert [(4, 4), (3, 3)] == [stable(cluster, key) for key in (T0, T1)]
    assert "CompleteCommit" == state(cluster)
    # All replicas have the same bytes, the markers among them.
    assert 1 == len({cluster.content(broker_id, T0) for broker_id in cluster.brokers})


def test_one_transaction_after_the_other(cluster: MemoryCluster) -> None:
    producer = Producer(cluster)
    for number in range(6):
        producer.begin(T0)
        producer.sent(T0, 2)
        assert 0 == producer.end(is_commit=number % 2 == 0)
    cluster.pass_time(1_000)
    assert (18, 18) == stable(cluster, T0)
    aborted = cluster.partition(leader(cluster, T0)).log.producers
    assert not aborted.has_open_transaction(producer.producer_id, 0)


def test_a_partition_that_was_not_added_takes_no_records(cluster: MemoryCluster) -> None:
    producer = Producer(cluster)
    producer.begin(T0)
    requested = producer.send(T1)
    cluster.pass_time(1_000)
    assert 48 == requested.code()
    assert (0, 0) == stable(cluster, T1)


def test_records_behind_the_end_begin_nothing(cluster: MemoryCluster) -> None:
    producer = Producer(cluster)
    producer.begin(T0)
    producer.sent(T0)
    assert 0 == producer.end(is_commit=False)
    cluster.pass_time(1_000)
    requested = producer.send(T0)
    cluster.pass_time(1_000)
    assert 48 == requested.code()
    assert (2, 2) == stable(cluster, T0)


def test_a_second_producer_fences_the_first(cluster: MemoryCluster) -> None:
    first = Producer(cluster)
    first.begin(T0)
    first.sent(T0)
    second = Producer(cluster)
    assert second.epoch > first.epoch
    cluster.pass_time(1_000)
    assert (2, 2) == stable(cluster, T0)
    assert 90 == first.end()
    late = first.send(T0)
    cluster.pass_time(1_000)
    assert 47 == late.code()
    second.begin(T0)
    second.sent(T0)
    assert 0 == second.end()


def test_a_transaction_that_nobody_ends_is_aborted(cluster: MemoryCluster) -> None:
    producer = Producer(cluster)
    producer.begin(T0)
    producer.sent(T0)
    cluster.pass_time(59_000)
    assert "Ongoing" == state(cluster)
    cluster.pass_time(12_000, step_ms=500)
    assert "CompleteAbort" == state(cluster)
    assert (2, 2) == stable(cluster, T0)
    assert 90 == producer.end()


@pytest.mark.parametrize("is_commit", [True, False])
def test_the_next_coordinator_takes_an_open_transaction_over(
    cluster: MemoryCluster, is_commit: bool
) -> None:
    producer = Producer(cluster)
    producer.begin(T0, T1, T2)
    before = coordinator(cluster)
    cluster.cut_power(before)
    cluster.pass_time(3_000)
    assert before != coordinator(cluster)
    producer.sent(T0)
    assert 0 == producer.end(is_commit=is_commit)
    cluster.pass_time(2_000)
    assert ("CompleteCommit" if is_commit else "CompleteAbort") == state(cluster)
    assert (2, 2) == stable(cluster, T0)


def test_an_end_that_was_decided_reaches_a_leader_that_comes_back(cluster: MemoryCluster) -> None:
    producer = Producer(cluster)
    producer.begin(T0, T1, T2)
    for key in (T0, T1, T2):
        producer.sent(key)
    gone = next(broker_id for broker_id in (1, 2, 3) if broker_id != coordinator(cluster))
    cluster.cut_power(gone)
    assert 0 == producer.end()
    cluster.pass_time(3_000)
    assert "CompleteCommit" == state(cluster)
    assert {(2, 2)} == {stable(cluster, key) for key in (T0, T1, T2)}
    cluster.start(gone)
    cluster.pass_time(5_000)
    assert {(2, 2)} == {cluster.ends(key)[gone] for key in (T0, T1, T2)}


def test_a_decided_end_outlives_its_coordinator(cluster: MemoryCluster) -> None:
    producer = Producer(cluster)
    producer.begin(T0)
    producer.sent(T0)
    requested = cluster.ask(
        coordinator(cluster),
        "EndTxn",
        3,
        transactional_id="x",
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        committed=True,
    )
    for _ in range(50):
        if requested.answer() is not None:
            break
        cluster.pass_time(10, step_ms=10)
    assert 0 == requested.answer().error_code
    cluster.cut_power(coordinator(cluster))
    cluster.pass_time(4_000)
    assert "CompleteCommit" == state(cluster)
    assert (2, 2) == stable(cluster, T0)
    assert 0 == producer.end()


def offsets(cluster: MemoryCluster, *, is_stable: bool) -> tuple[int, int]:
    request = message_class("OffsetFetchRequest")
    topic = request.OffsetFetchRequestTopic(name="t", partition_indexes=[0])
    key = TopicPartition("__consumer_offsets", coordinator_partition("x", COUNT))
    answer = cluster.ask(
        leader(cluster, key),
        "OffsetFetch",
        7,
        group_id="x",
        topics=[topic],
        require_stable=is_stable,
    ).answer()
    assert 0 == answer.error_code
    row = answer.topics[0].partitions[0]
    return row.error_code, row.committed_offset


def commit_offset(cluster: MemoryCluster, producer: Producer, offset: int) -> int:
    request = message_class("TxnOffsetCommitRequest")
    row = request.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    key = TopicPartition("__consumer_offsets", coordinator_partition("x", COUNT))
    requested = cluster.ask(
        leader(cluster, key),
        "TxnOffsetCommit",
        3,
        transactional_id="x",
        group_id="x",
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        topics=[request.TxnOffsetCommitRequestTopic(name="t", partitions=[row])],
    )
    cluster.pass_time(1_000)
    return int(requested.answer().topics[0].partitions[0].error_code)


@pytest.mark.parametrize("is_commit", [True, False])
def test_offsets_of_a_transaction_count_with_it(cluster: MemoryCluster, is_commit: bool) -> None:
    producer = Producer(cluster)
    assert 48 == commit_offset(cluster, producer, 5)
    added = ask(
        cluster,
        "AddOffsetsToTxn",
        3,
        transactional_id="x",
        group_id="x",
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
    )
    assert 0 == added.error_code
    assert 0 == commit_offset(cluster, producer, 5)
    assert [(88, -1), (0, -1)] == [offsets(cluster, is_stable=way) for way in (True, False)]
    assert 0 == producer.end(is_commit=is_commit)
    cluster.pass_time(1_000)
    assert {(0, 5 if is_commit else -1)} == {
        offsets(cluster, is_stable=way) for way in (True, False)
    }


def test_offsets_that_are_not_decided_are_pending_for_the_next_coordinator(
    cluster: MemoryCluster,
) -> None:
    producer = Producer(cluster)
    ask(
        cluster,
        "AddOffsetsToTxn",
        3,
        transactional_id="x",
        group_id="x",
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
    )
    assert 0 == commit_offset(cluster, producer, 5)
    key = TopicPartition("__consumer_offsets", coordinator_partition("x", COUNT))
    cluster.cut_power(leader(cluster, key))
    cluster.pass_time(3_000)
    assert (88, -1) == offsets(cluster, is_stable=True)
    assert 0 == producer.end()
    cluster.pass_time(3_000)
    assert (0, 5) == offsets(cluster, is_stable=True)


def test_a_topic_that_is_deleted_keeps_no_transaction_open(cluster: MemoryCluster) -> None:
    producer = Producer(cluster)
    producer.begin(T0)
    producer.sent(T0)
    controller = next(i for i, broker in cluster.brokers.items() if broker.controller.is_active)
    cluster.ask(controller, "DeleteTopics", 5, topic_names=["t"], timeout_ms=5_000)
    cluster.pass_time(3_000)
    assert 0 == producer.end()
    cluster.pass_time(2_000)
    assert "CompleteCommit" == state(cluster)
