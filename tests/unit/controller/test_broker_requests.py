"""What brokers ask of the controller: other ISRs, a quiet stop, producer ids."""

from __future__ import annotations

from typing import Any

import pytest

from engine.controller.broker_requests import ProducerIdsExhausted
from engine.model import TopicPartition
from engine.wire.structs import message_class
from engine.znode.values import ProducerIdBlockNode, encode_producer_id_block
from tests.unit.controller.cluster import Cluster, now

ALTER = message_class("AlterPartitionRequest")


def epoch_of(cluster: Cluster, broker_id: int) -> int:
    return cluster.controller.context.live_brokers[broker_id].epoch


def alter(cluster: Cluster, isr: list[int], *, version: int = 3, **changes: Any) -> Any:
    """Let broker 1 ask for an ISR of t-0 and return the reply's only partition."""
    topic_id = cluster.controller.context.topic_ids["t"]
    fields = {"leader_epoch": 0, "partition_epoch": 0, "leader_recovery_state": 0, **changes}
    partition = ALTER.PartitionData(
        partition_index=fields.pop("partition_index", 0),
        new_isr=isr if version < 3 else [],
        new_isr_with_epochs=[ALTER.BrokerState(broker_id=each) for each in isr],
        **fields,
    )
    topic = ALTER.TopicData(topic_id=topic_id, topic_name="t", partitions=[partition])
    reply = send_alter(cluster, version, topics=[topic])
    (answer,) = reply.topics
    assert (topic_id if version >= 2 else bytes(16)) == answer.topic_id
    assert ("" if version >= 2 else "t") == answer.topic_name
    return answer.partitions[0]


def send_alter(cluster: Cluster, version: int, **fields: Any) -> Any:
    request = ALTER(**{"broker_id": 1, "broker_epoch": epoch_of(cluster, 1), **fields})
    replies: list[Any] = []
    cluster.controller.alter_partition(request, version).then(replies.append)
    assert [] == replies
    cluster.settle()
    return replies[0]


def three_in_sync() -> Cluster:
    cluster = Cluster(3)
    cluster.create_topic("t", (1, 2, 3))
    return cluster


def two_in_sync() -> Cluster:
    cluster = three_in_sync()
    assert 0 == alter(cluster, [1, 2]).error_code
    return cluster


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_an_isr_is_written_announced_and_answered(version: int) -> None:
    cluster = three_in_sync()
    cluster.active.channel.take()
    cluster.store.take()
    answer = alter(cluster, [1, 3], version=version)
    assert (0, 1, 0, [1, 3], 1) == (
        answer.error_code,
        answer.leader_id,
        answer.leader_epoch,
        answer.isr,
        answer.partition_epoch,
    )
    # The leader epoch stays: who follows need not be told.
    assert (1, (1, 3), 0) == cluster.leader_isr_epoch("t")
    state = "set /brokers/topics/t/partitions/0/state"
    assert [["check /controller_epoch", state]] == cluster.store.take()
    assert {"UpdateMetadataRequest"} == {name for _, name, _ in cluster.active.channel.take()}


def test_asking_for_what_is_already_is_answered_without_a_write() -> None:
    cluster = two_in_sync()
    cluster.store.take()
    answer = alter(cluster, [1, 2])
    assert (0, [1, 2], 1) == (answer.error_code, answer.isr, answer.partition_epoch)
    assert [] == cluster.store.take()


@pytest.mark.parametrize(
    ("isr", "changes", "code"),
    [
        ([1], {"partition_epoch": 2}, 41),
        ([1], {"partition_epoch": 1, "leader_epoch": 1}, 41),
        ([1], {"partition_epoch": 1, "leader_epoch": -1}, 74),
        ([1], {"partition_epoch": 0}, 95),
        ([1, 2, 3], {"partition_epoch": 1, "leader_recovery_state": 1}, 42),
        ([1], {"partition_epoch": 1, "leader_recovery_state": 1}, 42),
        ([1, 2, 9], {"partition_epoch": 1}, 107),
        ([1, 2, 9], {"partition_epoch": 1, "version": 2}, 107),
        ([1, 2, 9], {"partition_epoch": 1, "version": 1}, 55),
        ([1], {"partition_index": 7}, 3),
    ],
)
def test_isrs_that_are_refused(isr: list[int], changes: dict[str, int], code: int) -> None:
    cluster = two_in_sync()
    assert code == alter(cluster, isr, **changes).error_code
    assert (1, (1, 2), 0) == cluster.leader_isr_epoch("t")


@pytest.mark.parametrize(
    ("isr", "leader_recovery_state", "code"),
    [([1], 1, 0), ([1, 2], 1, 42), ([1, 2], 0, 0)],
)
def test_a_leader_that_recovers_is_alone_in_its_isr(
    isr: list[int], leader_recovery_state: int, code: int
) -> None:
    cluster = three_in_sync()
    leaderships, key = cluster.controller.context.leaderships, TopicPartition("t", 0)
    recovering = leaderships[key].state._replace(leader_recovery_state=1)
    leaderships[key] = leaderships[key]._replace(state=recovering)
    answer = alter(cluster, isr, leader_recovery_state=leader_recovery_state)
    assert code == answer.error_code


@pytest.mark.parametrize(("version", "code"), [(3, 107), (1, 55)])
def test_who_is_not_assigned_does_not_join(version: int, code: int) -> None:
    cluster = Cluster(3)
    cluster.create_topic("t", (1, 2))
    assert code == alter(cluster, [1, 2, 3], version=version).error_code
    assert (1, (1, 2), 0) == cluster.leader_isr_epoch("t")


def test_a_stale_broker_and_an_unknown_topic_are_refused() -> None:
    cluster = three_in_sync()
    assert 77 == send_alter(cluster, 3, broker_epoch=1).error_code
    assert 77 == send_alter(cluster, 3, broker_id=9).error_code
    topic = ALTER.TopicData(
        topic_id=bytes(15) + b"x", partitions=[ALTER.PartitionData(partition_index=4)]
    )
    (answer,) = send_alter(cluster, 3, topics=[topic]).topics
    assert (bytes(15) + b"x", 4, 100) == (
        answer.topic_id,
        answer.partitions[0].partition_index,
        answer.partitions[0].error_code,
    )


def test_a_write_that_came_between_is_an_old_version() -> None:
    cluster = three_in_sync()
    path = "/brokers/topics/t/partitions/0/state"
    data, _ = now(cluster.admin.get(path))
    now(cluster.admin.set(path, data))
    assert 95 == alter(cluster, [1, 2]).error_code


def test_only_the_controller_answers() -> None:
    cluster = Cluster(2)
    other = cluster.nodes[2].controller
    replies: list[Any] = []
    other.alter_partition(ALTER(), 3).then(replies.append)
    other.controlled_shutdown(message_class("ControlledShutdownRequest")()).then(replies.append)
    other.allocate_producer_ids(message_class("AllocateProducerIdsRequest")()).then(replies.append)
    cluster.settle()
    assert [41, 11, 41] == [reply.error_code for reply in replies]


def test_a_failing_store_is_an_unknown_error_and_is_reported() -> None:
    cluster = three_in_sync()
    cluster.active.reporter.failures.clear()
    node = cluster.active
    replies: list[Any] = []
    node.controller.allocate_producer_ids(
        message_class("AllocateProducerIdsRequest")(broker_id=1, broker_epoch=epoch_of(cluster, 1))
    ).then(replies.append)
    now(node.client.close())
    cluster.settle()
    assert [-1] == [reply.error_code for reply in replies]
    assert "AllocateProducerIds" in [name for name, _ in node.reporter.failures]


# -- controlled shutdown -----------------------------------------------------------------------


def shut_down(cluster: Cluster, broker_id: int, broker_epoch: int | None = None) -> Any:
    request = message_class("ControlledShutdownRequest")(
        broker_id=broker_id,
        broker_epoch=epoch_of(cluster, broker_id) if broker_epoch is None else broker_epoch,
    )
    replies: list[Any] = []
    cluster.controller.controlled_shutdown(request).then(replies.append)
    cluster.settle()
    return replies[0]


def test_a_broker_that_stops_leads_and_follows_nothing_any_more() -> None:
    cluster = Cluster(3)
    cluster.create_topic("led", (3, 2, 1))
    cluster.create_topic("followed", (2, 3))
    cluster.create_topic("alone", (3,))
    cluster.active.channel.take()
    reply = shut_down(cluster, 3)
    assert (0, []) == (reply.error_code, reply.remaining_partitions)
    assert (2, (2, 1), 1) == cluster.leader_isr_epoch("led")
    assert (2, (2,), 1) == cluster.leader_isr_epoch("followed")
    assert (3, (3,), 0) == cluster.leader_isr_epoch("alone")
    stops = cluster.active.channel.take("StopReplicaRequest")
    assert {3} == {broker_id for broker_id, _, _ in stops}
    # Told at once, and again with the smaller set. Source: KafkaController.doControlledShutdown.
    told = [topic.topic_name for _, _, request in stops for topic in request.topic_states]
    assert ["followed", "followed"] == told
    cluster.kill(3)
    assert (-1, (3,), 1) == cluster.leader_isr_epoch("alone")
    assert [] == cluster.failures()


def test_a_broker_that_died_after_its_stop_is_a_stopping_one_no_more() -> None:
    cluster = Cluster(2)
    assert 0 == shut_down(cluster, 2).error_code
    assert {2} == cluster.controller.context.shutting_down
    cluster.kill(2)
    assert set() == cluster.controller.context.shutting_down


def test_what_nobody_else_can_lead_remains() -> None:
    cluster = Cluster(2)
    cluster.create_topic("t", (2, 1))
    cluster.kill(1)
    reply = shut_down(cluster, 2)
    remaining = [(each.topic_name, each.partition_index) for each in reply.remaining_partitions]
    assert (0, [("t", 0)]) == (reply.error_code, remaining)


def test_a_stop_of_a_former_life_or_a_stranger_is_refused() -> None:
    cluster = Cluster(2)
    assert 77 == shut_down(cluster, 2, epoch_of(cluster, 2) - 1).error_code
    assert 8 == shut_down(cluster, 9, -1).error_code
    assert -1 == shut_down(cluster, 9, 0).error_code
    assert set() == cluster.controller.context.shutting_down
    assert 0 == shut_down(cluster, 2, -1).error_code


# -- producer ids ------------------------------------------------------------------------------


def allocate(cluster: Cluster, broker_id: int = 1, broker_epoch: int | None = None) -> Any:
    request = message_class("AllocateProducerIdsRequest")(
        broker_id=broker_id,
        broker_epoch=epoch_of(cluster, 1) if broker_epoch is None else broker_epoch,
    )
    replies: list[Any] = []
    cluster.controller.allocate_producer_ids(request).then(replies.append)
    cluster.settle()
    return replies[0]


def test_producer_ids_come_in_blocks_of_a_thousand() -> None:
    cluster = Cluster(1)
    blocks = [allocate(cluster) for _ in range(3)]
    assert [(0, 1000), (1000, 1000), (2000, 1000)] == [
        (block.producer_id_start, block.producer_id_len) for block in blocks
    ]
    data, stat = now(cluster.admin.get("/latest_producer_id_block"))
    assert b'{"version":1,"broker":1,"block_start":"2000","block_end":"2999"}' == data
    assert 3 == stat.version


def test_producer_ids_are_for_brokers_that_are_registered() -> None:
    cluster = Cluster(1)
    assert 102 == allocate(cluster, 9).error_code
    assert 77 == allocate(cluster, 1, 0).error_code


def test_no_producer_id_is_given_twice_when_all_are_used() -> None:
    cluster = Cluster(1)
    last = (1 << 63) - 900
    block = encode_producer_id_block(ProducerIdBlockNode(1, last - 999, last))
    now(cluster.admin.set("/latest_producer_id_block", block))
    assert -1 == allocate(cluster).error_code
    (failure,) = cluster.failures()
    assert isinstance(failure[1], ProducerIdsExhausted)
    assert last == failure[1].last_producer_id


def test_replicas_that_failed_come_back_by_leader_and_isr_alone() -> None:
    cluster = Cluster(2)
    cluster.create_topic("t", (1, 2))
    partition = TopicPartition("t", 0)
    cluster.controller.context.offline_replicas[2] = {partition}
    now(cluster.nodes[2].client.close())
    cluster.nodes[2].register()
    cluster.settle()
    assert set() == cluster.controller.context.offline_replicas[2]
