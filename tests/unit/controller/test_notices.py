"""What brokers leave in nodes for the controller, growth on many brokers, failed directories."""

from __future__ import annotations

from engine.model import TopicPartition
from engine.znode.paths import ISR_CHANGE_PREFIX, LOG_DIR_EVENT_PREFIX
from engine.znode.values import (
    PartitionAssignment,
    decode_topic,
    encode_log_dir_event,
    encode_partitions,
    encode_topic,
)
from tests.unit.controller.cluster import Cluster, now

T0 = TopicPartition("t", 0)


def test_a_note_that_nobody_understands_does_not_stop_the_others() -> None:
    cluster = Cluster(2)
    cluster.create_topic("t", (1, 2))
    cluster.create_topic("u", (2, 1))
    cluster.active.channel.errors[1, T0] = 56
    for prefix, data in (
        (LOG_DIR_EVENT_PREFIX, encode_log_dir_event(1)),
        (ISR_CHANGE_PREFIX, encode_partitions([TopicPartition("u", 0)])),
    ):
        cluster.active.channel.take()
        for text in (b"no json", data):
            now(cluster.admin.create(prefix, text, sequential=True))
        cluster.settle()
        assert [] == cluster.children(prefix.rpartition("/")[0])
        assert [] != cluster.active.channel.take("UpdateMetadataRequest")
    assert (2, (2,), 1) == cluster.leader_isr_epoch("t")
    assert [f"{LOG_DIR_EVENT_PREFIX}0000000000", f"{ISR_CHANGE_PREFIX}0000000000"] == [
        name for name, _ in cluster.failures()
    ]


def test_growth_is_sent_to_each_of_many_brokers_in_one_request() -> None:
    cluster = Cluster(6)
    cluster.create_topic("t", (1, 2, 3))
    cluster.active.channel.take()
    cluster.store.take()
    path = "/brokers/topics/t"
    stored = decode_topic(now(cluster.admin.get(path))[0], path)
    added = {
        index: PartitionAssignment(tuple(1 + (index + shift) % 6 for shift in range(3)))
        for index in range(1, 25)
    }
    grown = stored._replace(partitions={**stored.partitions, **added})
    now(cluster.admin.set(path, encode_topic(grown)))
    cluster.settle()
    sent = cluster.active.channel.take()
    orders, updates = sent[:6], sent[6:]
    assert {(id_, "LeaderAndIsrRequest") for id_ in range(1, 7)} == {row[:2] for row in orders}
    assert [(id_, "UpdateMetadataRequest") for id_ in range(1, 7)] == [row[:2] for row in updates]
    for broker_id, _, request in orders:
        states = request.topic_states[0].partition_states
        assert {index for index, each in added.items() if broker_id in each.replicas} == {
            state.partition_index for state in states
        }
        assert all(state.is_new for state in states)
    for index, assignment in added.items():
        assert (assignment.replicas[0], assignment.replicas, 0) == cluster.leader_isr_epoch(
            "t", index
        )
    # One transaction for all of them, behind that of the admin.
    assert 2 == len(cluster.store.take())


def test_deletion_waits_for_a_replica_in_a_directory_that_failed() -> None:
    cluster = Cluster(2)
    cluster.create_topic("t", (1, 2))
    cluster.active.channel.errors[2, T0] = 56
    now(cluster.admin.create(LOG_DIR_EVENT_PREFIX, encode_log_dir_event(2), sequential=True))
    cluster.settle()
    now(cluster.admin.create("/admin/delete_topics/t"))
    cluster.settle()
    assert cluster.exists("/brokers/topics/t")
    # With another disk it comes back.
    cluster.kill(2)
    assert cluster.exists("/brokers/topics/t")
    cluster.active.channel.errors.clear()
    cluster.start(2)
    assert not cluster.exists("/brokers/topics/t")
    assert [] == cluster.children("/admin/delete_topics")
