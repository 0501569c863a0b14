"""The coordinator of groups in a broker: leadership, restarts, deleted topics, expiry."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from typing import Any

import pytest

from engine.model import TopicPartition
from engine.replication.partition_types import PartitionState
from engine.wire.structs import message_class
from tests.unit.broker.memory_broker import MemoryBroker
from tests.unit.broker.test_broker import create_topic, fail_directory_of

OFFSETS = TopicPartition("__consumer_offsets", 0)
SETTINGS = {"offsets_topic_num_partitions": "1", "offsets_topic_replication_factor": "1"}


@pytest.fixture
def stage() -> Iterator[MemoryBroker]:
    stage = MemoryBroker(**SETTINGS)
    stage.start()
    create_topic(stage.connect(), "t")
    coordinated(stage)
    yield stage
    stage.stop()
    assert not stage.faults


def two_directories() -> MemoryBroker:
    """Return a broker that lives on after one of its directories has failed."""
    return MemoryBroker(**SETTINGS, log_dirs="/a,/b").start()


def coordinated(stage: MemoryBroker) -> None:
    """Have the topic created, and see the broker coordinate the group."""
    client = stage.connect()
    client.ask("FindCoordinator", 4, coordinator_keys=["g"])
    stage.pass_time(1_000)
    (found,) = client.ask("FindCoordinator", 4, coordinator_keys=["g"]).coordinators
    assert (0, 1) == (found.error_code, found.node_id)


def commit(stage: MemoryBroker, offset: int) -> int:
    of = message_class("OffsetCommitRequest")
    row = of.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topic = of.OffsetCommitRequestTopic(name="t", partitions=[row])
    response = stage.connect().ask("OffsetCommit", 8, group_id="g", topics=[topic])
    code: int = response.topics[0].partitions[0].error_code
    return code


def committed(stage: MemoryBroker) -> dict[str, int]:
    """Return the offset of partition 0 of each topic for which the group has committed."""
    response = stage.connect().ask("OffsetFetch", 7, group_id="g", topics=None)
    assert 0 == response.error_code
    return {topic.name: topic.partitions[0].committed_offset for topic in response.topics}


def joining(stage: MemoryBroker) -> Any:
    """Return a client whose JoinGroup is parked."""
    protocol = message_class("JoinGroupRequest").JoinGroupRequestProtocol(name="range")
    client = stage.connect()
    fields = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 10_000}
    assert (
        client.ask(
            "JoinGroup", 3, group_id="g", protocol_type="consumer", protocols=[protocol], **fields
        )
        is None
    )
    return client


def lead_in(stage: MemoryBroker, leader_id: int, leader_epoch: int) -> None:
    """Have the broker hear of another epoch of the partition that has the group."""
    state = PartitionState(leader_id, leader_epoch, (1,), 9, (1,))
    stage.broker.storage.leadership.apply_states({OFFSETS: state})
    stage.pass_time(0)


def test_what_was_committed_is_there_after_a_restart(stage: MemoryBroker) -> None:
    assert 0 == commit(stage, 7)
    assert {"t": 7} == committed(stage)
    stage.stop()
    stage.start()
    stage.pass_time(1_000)
    assert {"t": 7} == committed(stage)


@pytest.mark.parametrize("is_restarted", [True, False])
def test_commits_count_though_their_topic_grows(stage: MemoryBroker, *, is_restarted: bool) -> None:
    if is_restarted:
        stage.stop()
        stage.start()
        stage.pass_time(1_000)
    for offset in range(3):
        assert 0 == commit(stage, offset)
    of = message_class("CreatePartitionsRequest")
    rows = [of.CreatePartitionsTopic(name=OFFSETS.topic, count=4, assignments=None)]
    stage.connect().ask("CreatePartitions", 3, topics=rows, timeout_ms=1_000)
    stage.pass_time(1_000)
    assert 4 == len(stage.broker.metadata_cache.topics[OFFSETS.topic])
    assert (0, {"t": 2}) == (commit(stage, 2), committed(stage))
    assert (0, {"t": 3}) == (commit(stage, 3), committed(stage))


def test_a_parked_join_is_answered_after_the_initial_delay(stage: MemoryBroker) -> None:
    client = joining(stage)
    stage.pass_time(3_000)
    assert 0 == client.answer("JoinGroup", 3).error_code


def test_who_waits_for_a_group_is_answered_as_another_broker_leads(stage: MemoryBroker) -> None:
    client = joining(stage)
    lead_in(stage, 2, 8)
    assert 16 == client.answer("JoinGroup", 3).error_code
    assert 16 == commit(stage, 7)


def test_who_waits_for_a_group_is_answered_as_its_directory_fails() -> None:
    stage = two_directories()
    create_topic(stage.connect(), "t")
    coordinated(stage)
    client = joining(stage)
    fail_directory_of(stage, OFFSETS.topic)
    assert 16 == client.answer("JoinGroup", 3).error_code
    assert 16 == commit(stage, 7)
    assert not stage.fatal


def test_groups_whose_directory_fails_as_they_are_read_are_loading_no_more() -> None:
    stage = two_directories()
    create_topic(stage.connect(), "t")
    coordinated(stage)
    assert 0 == commit(stage, 7)
    lead_in(stage, 2, 8)
    log = stage.broker.storage.logs.get(OFFSETS)
    assert log is not None
    stage.files.fail("read", errno.EIO, path_start=log.directory)
    lead_in(stage, 1, 9)
    assert 14 == commit(stage, 7)
    fail_directory_of(stage, OFFSETS.topic)
    assert 16 == commit(stage, 7)
    assert 0 == stage.connect().ask("ListGroups", 4, states_filter=[]).error_code
    assert not stage.fatal


def test_a_broker_that_leads_on_in_a_new_epoch_keeps_who_waits(stage: MemoryBroker) -> None:
    client = joining(stage)
    lead_in(stage, 1, 8)
    stage.pass_time(3_000)
    assert 0 == client.answer("JoinGroup", 3).error_code


def test_what_was_committed_for_a_deleted_topic_is_forgotten(stage: MemoryBroker) -> None:
    commit(stage, 7)
    stage.connect().ask("DeleteTopics", 5, topic_names=["t"], timeout_ms=1_000)
    stage.pass_time(1_000)
    assert {} == committed(stage)


def test_offsets_expire_after_their_retention() -> None:
    stage = MemoryBroker(
        **SETTINGS, offsets_retention_minutes="1", offsets_retention_check_interval_ms="30000"
    )
    stage.start()
    create_topic(stage.connect(), "t")
    coordinated(stage)
    commit(stage, 7)
    stage.pass_time(50_000)
    assert {"t": 7} == committed(stage)
    stage.pass_time(45_000)
    assert {} == committed(stage)
    stage.stop()
    assert not stage.faults


def test_a_retention_beyond_all_time_wraps_as_in_java(stage: MemoryBroker) -> None:
    of = message_class("OffsetCommitRequest")
    row = of.OffsetCommitRequestPartition(partition_index=0, committed_offset=3)
    topic = of.OffsetCommitRequestTopic(name="t", partitions=[row])
    fields = {"group_id": "g", "topics": [topic], "retention_time_ms": (1 << 63) - 1}
    response = stage.connect().ask("OffsetCommit", 2, **fields)
    assert 0 == response.topics[0].partitions[0].error_code
    stage.stop()
    stage.start()
    stage.pass_time(1_000)
    assert {"t": 3} == committed(stage)


@pytest.mark.parametrize(("producer_id", "epoch"), [(-1, 0), (5, -1)])
def test_a_commit_of_a_producer_that_is_none_is_not_pending(producer_id: int, epoch: int) -> None:
    stage = MemoryBroker(**SETTINGS, transaction_partition_verification_enable="false")
    stage.start()
    client = stage.connect()
    create_topic(client, "t")
    coordinated(stage)
    of = message_class("TxnOffsetCommitRequest")
    row = of.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=3)
    topic = of.TxnOffsetCommitRequestTopic(name="t", partitions=[row])
    fields = {"producer_id": producer_id, "producer_epoch": epoch, "topics": [topic]}
    response = client.ask("TxnOffsetCommit", 3, transactional_id="x", group_id="g", **fields)
    assert -1 == response.topics[0].partitions[0].error_code
    assert {} == committed(stage)
    assert set() == stage.broker.groups.commits.unstable_partitions("g", [TopicPartition("t", 0)])
    stage.stop()
    assert not stage.faults
