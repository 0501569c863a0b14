"""A broker that leads followers elsewhere: they join its in-sync sets and fall out of them."""

from __future__ import annotations

from typing import Any

import pytest

from engine.host.coroutine import drive
from engine.model import TopicPartition
from engine.wire.structs import message_class
from engine.znode.embedded import EmbeddedZnodeClient
from engine.znode.paths import partition_state_path
from engine.znode.values import decode_partition_state
from tests.unit.broker.memory_broker import MemoryBroker
from tests.unit.log.writing import sent

T0 = TopicPartition("t", 0)
LAG_MS = 30_000


@pytest.fixture(params=["3.9-IV0", "2.6-IV0"])
def release(request: pytest.FixtureRequest) -> str:
    """Return inter.broker.protocol.version: the controller changes sets, or the leader itself."""
    text: str = request.param
    return text


class Stage:
    """Broker 1 of three; 2 and 3 are in the metadata store and fetch when the test wants it."""

    def __init__(self, release: str) -> None:
        self.memory = MemoryBroker(
            replica_lag_time_max_ms=str(LAG_MS), inter_broker_protocol_version=release
        ).start()
        for broker_id in (2, 3):
            self.memory.join(broker_id)
        self.client = self.memory.connect()
        create = message_class("CreateTopicsRequest")
        assignment = create.CreatableReplicaAssignment(partition_index=0, broker_ids=[1, 2, 3])
        topic = create.CreatableTopic(
            name="t", num_partitions=-1, replication_factor=-1, assignments=[assignment]
        )
        answer = self.client.ask("CreateTopics", 7, topics=[topic], timeout_ms=5000)
        assert [0] == [row.error_code for row in answer.topics]
        self.topic_id = answer.topics[0].topic_id

    @property
    def partition(self) -> Any:
        return self.memory.broker.storage.replica_manager.partitions[T0]

    def stored_isr(self) -> tuple[int, ...]:
        path = partition_state_path(T0)
        session = EmbeddedZnodeClient(self.memory.store, 1 << 30)
        drive(session.connect()).result()
        return decode_partition_state(drive(session.get(path)).result()[0], path).isr

    def sets(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the leader's committed set, and the one in the metadata store."""
        return self.partition.in_sync.committed, self.stored_isr()

    def produce(self, count: int = 1, acks: int = 1) -> Any:
        request = message_class("ProduceRequest")
        data = request.PartitionProduceData(index=0, records=sent(count))
        topic = request.TopicProduceData(name="t", partition_data=[data])
        answer = self.client.ask("Produce", 9, acks=acks, timeout_ms=60_000, topic_data=[topic])
        return answer and answer.responses[0].partition_responses[0].error_code

    def follow(self, broker_id: int, offset: int) -> None:
        """Let a follower fetch, as a broker of Kafka's does."""
        request = message_class("FetchRequest")
        partition = request.FetchPartition(
            partition=0,
            fetch_offset=offset,
            log_start_offset=0,
            current_leader_epoch=self.partition.leader_epoch,
            partition_max_bytes=1 << 20,
        )
        topic = request.FetchTopic(topic_id=self.topic_id, partitions=[partition])
        state = request.ReplicaState(replica_id=broker_id, replica_epoch=1)
        client = self.memory.connect()
        answer = client.ask(
            "Fetch",
            15,
            replica_state=state,
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=1 << 20,
            session_id=0,
            session_epoch=-1,
            topics=[topic],
        )
        assert 0 == answer.error_code
        assert 0 == answer.responses[0].partitions[0].error_code

    def pass_time(self, duration_ms: int) -> None:
        for _ in range(duration_ms // 500):
            self.memory.pass_time(500)


def shrunk(release: str) -> Stage:
    """Return a stage whose followers have fallen out of the set."""
    stage = Stage(release)
    assert ((1, 2, 3), (1, 2, 3)) == stage.sets()
    stage.produce(2)
    stage.pass_time(2 * LAG_MS)
    return stage


def test_followers_that_do_not_fetch_fall_out_and_the_watermark_goes_on(release: str) -> None:
    stage = shrunk(release)
    assert ((1,), (1,)) == stage.sets()
    assert 2 == stage.partition.high_watermark
    assert not stage.partition.in_sync.is_in_flight


def test_a_follower_at_the_end_of_the_log_joins_and_holds_the_watermark(release: str) -> None:
    stage = shrunk(release)
    stage.follow(2, 2)
    assert ((1, 2), (1, 2)) == stage.sets()
    stage.produce(3)
    assert 2 == stage.partition.high_watermark
    stage.follow(2, 5)
    assert 5 == stage.partition.high_watermark
    # A leader that writes itself has it told later.
    stage.pass_time(10_000)
    assert stage.partition.partition_epoch == stage_epoch(stage)


def stage_epoch(stage: Stage) -> int:
    """Return the partition epoch as the broker's metadata has it."""
    known = stage.memory.broker.metadata_cache.partition(T0)
    assert known is not None
    return known.partition_epoch


def test_acks_of_all_wait_for_those_who_joined(release: str) -> None:
    stage = shrunk(release)
    stage.follow(2, 2)
    assert stage.produce(1, acks=-1) is None
    stage.follow(2, 3)
    answer = stage.client.answer("Produce", 9)
    assert 0 == answer.responses[0].partition_responses[0].error_code


def test_a_follower_that_lags_goes_while_another_stays(release: str) -> None:
    stage = shrunk(release)
    for broker_id in (2, 3):
        stage.follow(broker_id, 2)
    assert ((1, 2, 3), (1, 2, 3)) == stage.sets()
    stage.produce()
    for _ in range(3):
        stage.follow(3, 3)
        stage.pass_time(LAG_MS // 2)
    stage.follow(3, 3)
    assert ((1, 3), (1, 3)) == stage.sets()
    assert 3 == stage.partition.high_watermark


def test_a_proposal_waits_while_there_is_no_controller() -> None:
    stage = shrunk("3.9-IV0")
    stage.memory.broker.controller.stop()
    stage.follow(2, 2)
    assert stage.partition.in_sync.is_in_flight
    assert (1,) == stage.stored_isr()
    assert 1 == stage.memory.broker.storage.isr_changes.waiting_count
