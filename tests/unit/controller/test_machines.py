"""Changes of state that are refused, and those that no ordinary life shows."""

from __future__ import annotations

import pytest

from engine.controller.elections import ElectionReason
from engine.controller.states import PartitionPhase, Replica, ReplicaPhase
from engine.model import TopicPartition
from engine.wire.structs import message_class
from engine.znode.values import PartitionAssignment, PartitionStateNode, encode_partition_state
from tests.unit.controller.cluster import Cluster, now

T0 = TopicPartition("t", 0)
STATE = "/brokers/topics/t/partitions/0/state"


def with_topic(*replicas: int) -> Cluster:
    cluster = Cluster(3)
    cluster.create_topic("t", replicas)
    cluster.active.reporter.refusals.clear()
    return cluster


def test_phases_that_do_not_follow_are_refused_and_stay() -> None:
    cluster = with_topic(1)
    machines = cluster.controller._machines
    now(machines.partitions.change_phase([T0], PartitionPhase.NEW))
    now(machines.replicas.change_phase([Replica(T0, 1)], ReplicaPhase.NON_EXISTENT))
    assert [
        ("t-0", "new", "it is online"),
        ("t-0 on broker 1", "non-existent", "it is online"),
    ] == cluster.active.reporter.refusals
    assert PartitionPhase.ONLINE is cluster.controller.context.partition_phases[T0]


def test_of_what_is_not_there_nothing_is_noted() -> None:
    # As after a late response of a broker whose replica a cancelled move has removed.
    cluster = with_topic(1)
    machines, context = cluster.controller._machines, cluster.controller.context
    gone = TopicPartition("t", 7)
    now(machines.replicas.change_phase([Replica(T0, 3)], ReplicaPhase.OFFLINE))
    now(machines.partitions.change_phase([gone], PartitionPhase.ONLINE))
    assert ["it is non-existent"] * 2 == [each[2] for each in cluster.active.reporter.refusals]
    assert ({Replica(T0, 1)}, {T0}) == (set(context.replica_phases), set(context.partition_phases))


def test_a_state_that_a_newer_controller_wrote_is_left_alone() -> None:
    cluster = with_topic(1, 2)
    newer = PartitionStateNode(1, 3, (1, 2), 9)
    now(cluster.admin.set(STATE, encode_partition_state(newer)))
    machines = cluster.controller._machines
    outcomes = now(
        machines.partitions.change_phase([T0], PartitionPhase.ONLINE, ElectionReason.PREFERRED)
    )
    assert {T0: "a newer controller wrote its state"} == outcomes
    now(machines.replicas.change_phase([Replica(T0, 2)], ReplicaPhase.OFFLINE))
    assert newer == cluster.state("t")
    assert ReplicaPhase.ONLINE is cluster.controller.context.replica_phases[Replica(T0, 2)]
    assert 2 == len(cluster.active.reporter.refusals)


def test_a_partition_whose_state_is_gone_is_not_elected() -> None:
    cluster = with_topic(1)
    now(cluster.admin.delete(STATE))
    outcomes = now(
        cluster.controller._machines.partitions.change_phase([T0], PartitionPhase.ONLINE)
    )
    assert {T0: "it has no state yet"} == outcomes


def test_a_state_that_is_there_already_is_not_overwritten() -> None:
    cluster = Cluster(1)
    cluster.create_topic("t", (1,), settle=False)
    there = encode_partition_state(PartitionStateNode(1, 7, (1,), 1))
    for path in ("/brokers/topics/t/partitions", "/brokers/topics/t/partitions/0"):
        now(cluster.admin.create(path))
    now(cluster.admin.create(STATE, there))
    cluster.settle()
    assert there == now(cluster.admin.get(STATE))[0]
    assert [("t-0", "online")] == [each[:2] for each in cluster.active.reporter.refusals]


def test_reassigned_leaders_and_new_replicas() -> None:
    cluster = with_topic(1, 2)
    context, machines = cluster.controller.context, cluster.controller._machines
    context.assign(T0, PartitionAssignment((2, 3, 1), (3,), (1,)))
    cluster.active.channel.take()
    now(machines.replicas.change_phase([Replica(T0, 3)], ReplicaPhase.NEW))
    ((to, _, request), *_) = cluster.active.channel.take("LeaderAndIsrRequest")
    assert (3, True) == (to, request.topic_states[0].partition_states[0].is_new)
    now(machines.partitions.change_phase([T0], PartitionPhase.ONLINE, ElectionReason.REASSIGN))
    assert (2, (1, 2), 1) == cluster.leader_isr_epoch("t")
    told = [to for to, _, _ in cluster.active.channel.take("LeaderAndIsrRequest")]
    assert [2, 3] == told


def test_a_leader_is_no_new_replica() -> None:
    cluster = with_topic(1)
    context, machines = cluster.controller.context, cluster.controller._machines
    del context.replica_phases[Replica(T0, 1)]
    now(machines.replicas.change_phase([Replica(T0, 1)], ReplicaPhase.NEW))
    assert [("t-0 on broker 1", "new", "it is to become the leader")] == (
        cluster.active.reporter.refusals
    )


def test_a_replica_that_never_had_a_leader_goes_offline_without_a_write() -> None:
    cluster = Cluster(1)
    cluster.create_topic("t", (2,))
    cluster.store.take()
    machines = cluster.controller._machines
    now(machines.replicas.change_phase([Replica(T0, 2)], ReplicaPhase.OFFLINE))
    assert [] == cluster.store.take()
    assert ReplicaPhase.OFFLINE is cluster.controller.context.replica_phases[Replica(T0, 2)]


def test_a_topic_without_a_config_node_is_like_one_with_an_empty_one() -> None:
    cluster = with_topic(2, 3)
    now(cluster.admin.delete("/config/topics/t"))
    cluster.kill(3)
    cluster.kill(2)
    assert (-1, (2,)) == cluster.leader_isr_epoch("t")[:2]
    assert [] == cluster.failures()


@pytest.mark.parametrize("ends_shares", [False, True])
def test_work_of_many_turns_ends_as_that_of_one(ends_shares: bool) -> None:
    cluster = Cluster(3)
    cluster.ends_shares = ends_shares
    for name in ("a", "b", "c"):
        cluster.create_topic(name, (1, 2), (2, 3), settle=False)
    cluster.settle()
    stopping = cluster.controller.controlled_shutdown(
        message_class("ControlledShutdownRequest")(broker_id=2, broker_epoch=-1)
    )
    cluster.settle()
    assert [] == stopping.result().remaining_partitions
    assert [(1, (1,), 1), (3, (3,), 1)] == [cluster.leader_isr_epoch("a", i) for i in (0, 1)]
    for name in ("a", "b"):
        now(cluster.admin.create(f"/admin/delete_topics/{name}"))
    cluster.settle()
    assert {"a", "b"} == cluster.controller.context.to_delete
    cluster.kill(2)
    cluster.start(2)
    assert ["c"] == cluster.children("/brokers/topics")
    assert {"c"} == set(cluster.controller.context.topics)
    assert [] == cluster.failures()


def test_others_have_their_turns_while_topics_are_read() -> None:
    cluster = Cluster(1)
    cluster.ends_shares = True
    for number in range(5):
        cluster.create_topic(f"t{number}", (1,), settle=False)
    turns: list[int] = []

    def other() -> None:
        turns.append(len(cluster.controller.context.leaderships))
        if turns[-1] < 5:
            cluster.timers.call_soon(other)

    other()
    cluster.settle()
    assert 5 < len(turns)
    assert (0, 5) == (turns[5], turns[-1])
