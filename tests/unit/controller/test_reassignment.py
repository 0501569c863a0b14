"""Whole reassignments: what is written in which order, and what brokers are told."""

from __future__ import annotations

import re
from typing import Any

import pytest

from engine.controller.states import Replica, ReplicaPhase
from engine.model import TopicPartition
from engine.wire.structs import message_class
from engine.znode.paths import ISR_CHANGE_PREFIX
from engine.znode.values import (
    PartitionAssignment,
    decode_topic,
    encode_partition_state,
    encode_partitions,
    encode_reassignment,
    encode_topic,
)
from tests.unit.controller.cluster import Cluster, now
from tests.unit.controller.replicas import STRAY, Replicas, listed, reassign

T0 = TopicPartition("t", 0)
T1 = TopicPartition("t", 1)
TOPIC = "/brokers/topics/t"
STATE = f"{TOPIC}/partitions/0/state"
GUARD = "check /controller_epoch"


def stored(cluster: Cluster, index: int = 0) -> PartitionAssignment:
    data, _ = now(cluster.admin.get(TOPIC))
    return decode_topic(data, TOPIC).partitions[index]


def started(
    *replicas: tuple[int, ...], brokers: int = 4, catch_up: bool = True
) -> tuple[Cluster, Replicas]:
    """Return a cluster with topic t, whose brokers answer."""
    cluster = Cluster(brokers)
    told = Replicas(cluster, catch_up=catch_up)
    cluster.create_topic("t", *replicas)
    told.settle()
    cluster.store.take()
    cluster.active.channel.take()
    return cluster, told


def test_a_move_writes_what_kafka_writes_in_its_order() -> None:
    cluster, told = started((1, 2))
    assert {T0: (0, None)} == reassign(cluster, {T0: (3, 2)})
    assert PartitionAssignment((3, 2, 1), (3,), (1,)) == stored(cluster)
    assert (1, (1, 2), 1) == cluster.leader_isr_epoch("t")
    assert {T0: ([3, 2, 1], [3], [1])} == listed(cluster)
    told.settle()
    assert PartitionAssignment((3, 2)) == stored(cluster)
    # Source: RSN-8.
    assert (3, (2, 3), 3) == cluster.leader_isr_epoch("t")
    assert {} == listed(cluster)
    assert [
        [GUARD, f"set {TOPIC}"],  # U1
        [GUARD, f"set {STATE}"],  # A1
        [GUARD, f"set {STATE}"],  # AlterPartition
        [GUARD, f"set {STATE}"],  # B3
        [GUARD, f"set {STATE}"],  # B4
        [GUARD, f"set {TOPIC}"],  # B6
    ] == cluster.store.take()
    assert [] == cluster.failures()


def orders(cluster: Cluster) -> list[tuple[int, str, Any]]:
    """Return broker, kind and state of each order about t-0 since the last call."""
    return [
        (broker_id, name.removesuffix("Request"), state)
        for broker_id, name, request in cluster.active.channel.take()
        for topic in request.topic_states
        for state in topic.partition_states
    ]


def test_replicas_get_orders_at_each_step() -> None:
    cluster, told = started((1, 2), brokers=3, catch_up=False)
    reassign(cluster, {T0: (3, 2)})
    sent = [(b, k, s) for b, k, s in orders(cluster) if k != "UpdateMetadata"]
    # A1 to the original and, as new, to the adding replicas; A2 to those once more.
    assert [
        (2, "LeaderAndIsr", False),
        (1, "LeaderAndIsr", False),
        (3, "LeaderAndIsr", True),
        (3, "LeaderAndIsr", True),
    ] == [(broker, kind, state.is_new) for broker, kind, state in sent]
    assert {((3, 2, 1), (3,), (1,))} == {
        (tuple(s.replicas), tuple(s.adding_replicas), tuple(s.removing_replicas))
        for _, _, s in sent
    }
    assert {1} == {state.leader_epoch for _, _, state in sent}
    told.propose(T0, (1, 2, 3))
    every = orders(cluster)
    sent = [(b, k, s) for b, k, s in every if k != "UpdateMetadata"]
    assert [
        (3, "LeaderAndIsr"),  # B3
        (2, "LeaderAndIsr"),
        (3, "LeaderAndIsr"),  # B4
        (2, "LeaderAndIsr"),
        (1, "StopReplica"),
        (1, "StopReplica"),  # B5
    ] == [(broker, kind) for broker, kind, _ in sent]
    assert [False, True] == [state.delete_partition for _, _, state in sent[-2:]]
    # B8
    assert {(broker_id, "UpdateMetadata") for broker_id in (1, 2, 3)} == {
        (broker, kind) for broker, kind, _ in every[-3:]
    }
    # The first StopReplica is collected before the in-sync set shrinks.
    assert [2, 2, 3, 3, 2, 3] == [state.leader_epoch for _, _, state in sent]
    context = cluster.controller.context
    assert {2: ReplicaPhase.ONLINE, 3: ReplicaPhase.ONLINE} == {
        replica.broker_id: phase for replica, phase in context.replica_phases.items()
    }
    assert [(3, 2)] * 3 == [told.metadata[id_, T0].replicas for id_ in (1, 2, 3)]


def test_a_leader_that_stays_leads_all_the_way() -> None:
    cluster, told = started((1, 2))
    reassign(cluster, {T0: (1, 3)})
    told.settle()
    assert (1, (1, 3), 3) == cluster.leader_isr_epoch("t")
    assert PartitionAssignment((1, 3)) == stored(cluster)
    assert STRAY == told.told[2, T0]


def test_a_new_order_costs_one_epoch_and_moves_no_leader() -> None:
    cluster, told = started((1, 2))
    reassign(cluster, {T0: (2, 1)})
    told.settle()
    assert (1, (1, 2), 1) == cluster.leader_isr_epoch("t")
    assert PartitionAssignment((2, 1)) == stored(cluster)
    assert [[GUARD, f"set {TOPIC}"], [GUARD, f"set {STATE}"], [GUARD, f"set {TOPIC}"]] == (
        cluster.store.take()
    )


def test_more_replicas_only_are_added() -> None:
    cluster, told = started((1,))
    reassign(cluster, {T0: (1, 2, 3)})
    told.settle()
    assert (1, (1, 2, 3), 2) == cluster.leader_isr_epoch("t")
    assert PartitionAssignment((1, 2, 3)) == stored(cluster)


def test_a_cancelled_move_ends_where_it_began() -> None:
    cluster, told = started((1, 2), catch_up=False)
    reassign(cluster, {T0: (3, 4)})
    told.propose(T0, (1, 2, 3))
    assert {T0: (0, None)} == reassign(cluster, {T0: None})
    assert PartitionAssignment((1, 2)) == stored(cluster)
    leader, isr, _ = cluster.leader_isr_epoch("t")
    assert (1, (1, 2)) == (leader, isr)
    assert STRAY == told.told[3, T0] == told.told[4, T0]
    assert {} == listed(cluster)
    assert {T0: (85, "No partition reassignment is in progress.")} == reassign(cluster, {T0: None})


def test_a_new_target_replaces_the_one_that_runs() -> None:
    cluster, told = started((1, 2), catch_up=False)
    reassign(cluster, {T0: (3, 2)})
    told.propose(T0, (1, 2))
    assert {T0: (0, None)} == reassign(cluster, {T0: (4, 1)})
    assert PartitionAssignment((4, 1, 2), (4,), (2,)) == stored(cluster)
    assert STRAY == told.told[3, T0]
    assert Replica(T0, 3) not in cluster.controller.context.replica_phases
    told.catch_up = True
    told.settle()
    assert PartitionAssignment((4, 1)) == stored(cluster)
    assert (1, (1, 4)) == cluster.leader_isr_epoch("t")[:2]


def test_a_new_target_that_does_not_want_the_leader_gets_another_leader() -> None:
    cluster, told = started((1, 2), catch_up=False)
    reassign(cluster, {T0: (3, 4)})
    told.propose(T0, (1, 2, 3))
    cluster.kill(1)
    assert 3 == cluster.state("t").leader
    assert {T0: (0, None)} == reassign(cluster, {T0: (2, 4)})
    leader, isr, _ = cluster.leader_isr_epoch("t")
    assert (2, (2,)) == (leader, isr)
    assert [] == cluster.failures()


def test_partitions_of_one_request_have_each_their_result() -> None:
    cluster, _ = started((1, 2), (2, 1), catch_up=False)
    assert {
        T0: (0, None),
        T1: (39, "Empty replica list specified in partition reassignment."),
        TopicPartition("t", 7): (3, "The partition does not exist."),
        TopicPartition("u", 0): (85, "No partition reassignment is in progress."),
    } == reassign(
        cluster,
        {T0: (3,), T1: (), TopicPartition("t", 7): (1,), TopicPartition("u", 0): None},
    )


def test_partitions_of_one_request_begin_and_are_listed_in_the_order_of_kafkas_hash_map() -> None:
    # A real broker listed t2-2 before t2-1.
    cluster, _ = started(*[(1, 2)] * 3, catch_up=False)
    asked = {TopicPartition("t", index): (3, 2) for index in (0, 2, 1)}
    order = [2, 1, 0]
    assert order == [key.partition for key in reassign(cluster, asked)]
    written = [re.search(r"partitions/([0-9]+)/state", str(one)) for one in cluster.store.take()]
    assert order == [int(found[1]) for found in written if found]


def test_of_a_partition_named_twice_the_last_row_counts() -> None:
    cluster, _ = started((1, 2), catch_up=False)
    request_class = message_class("AlterPartitionReassignmentsRequest")
    rows = [
        request_class.ReassignablePartition(partition_index=0, replicas=[id_]) for id_ in (9, 3)
    ]
    topic = request_class.ReassignableTopic(name="t", partitions=rows)
    responses: list[Any] = []
    cluster.controller.alter_reassignments(request_class(topics=[topic])).then(responses.append)
    cluster.settle()
    assert [0] == [row.error_code for row in responses[0].responses[0].partitions]
    assert PartitionAssignment((3, 1, 2), (3,), (1, 2)) == stored(cluster)


def test_a_request_for_many_is_one_event_of_several_turns() -> None:
    cluster, _ = started((1, 2), catch_up=False)
    cluster.ends_shares = True
    controller, answered = cluster.controller, list[str]()
    request_class = message_class("AlterPartitionReassignmentsRequest")
    row = request_class.ReassignablePartition(partition_index=0, replicas=None)
    topics = [request_class.ReassignableTopic(name=f"t{n}", partitions=[row]) for n in range(5)]
    requested = controller.alter_reassignments(request_class(topics=topics))
    requested.then(lambda _: answered.append("first"))
    listing = message_class("ListPartitionReassignmentsRequest")(topics=None)
    controller.list_reassignments(listing).then(lambda _: answered.append("second"))
    turns: list[bool] = []

    def look() -> None:
        turns.append(requested.is_kept)
        if not requested.is_kept:
            cluster.timers.call_soon(look)

    look()
    cluster.settle()
    assert len(turns) > len(topics)
    assert ["first", "second"] == answered
    assert [f"t{n}" for n in range(5)] == [each.name for each in requested.result().responses]


def test_a_request_that_a_fault_ends_is_answered() -> None:
    cluster, _ = started((1, 2))
    request = message_class("AlterPartitionReassignmentsRequest")(topics=[None])
    requested = cluster.controller.alter_reassignments(request)
    with pytest.raises(AttributeError):
        cluster.settle()
    assert -1 == requested.result().error_code
    assert cluster.controller.is_idle


def test_a_broker_that_shuts_down_cannot_be_a_target() -> None:
    cluster, _ = started((1, 2))
    cluster.controller.context.shutting_down.add(3)
    code, message = reassign(cluster, {T0: (3, 2)})[T0]
    assert 39 == code
    assert message is not None
    assert message.endswith("live broker list: Set(1, 2, 4)")


def test_who_is_not_the_controller_says_so() -> None:
    cluster, _ = started((1, 2))
    responses: list[Any] = []
    request = message_class("AlterPartitionReassignmentsRequest")(topics=[])
    cluster.nodes[2].controller.alter_reassignments(request).then(responses.append)
    cluster.settle()
    assert [(41, "This is not the correct controller for this cluster.")] == [
        (each.error_code, each.error_message) for each in responses
    ]


# -- beside other changes ----------------------------------------------------------------------


def test_a_deletion_waits_until_the_last_partition_of_the_topic_has_moved() -> None:
    cluster, told = started((1, 2), (1, 2), catch_up=False)
    reassign(cluster, {T0: (3, 2), T1: (3, 2)})
    now(cluster.admin.create("/admin/delete_topics/t"))
    cluster.settle()
    assert cluster.exists(STATE)
    assert {T0: (3, "The partition does not exist.")} == reassign(cluster, {T0: (1, 2)})
    told.propose(T0, (1, 2, 3))
    assert cluster.exists(STATE)
    assert {T1} == cluster.controller.context.reassigning
    told.propose(T1, (1, 2, 3))
    assert not cluster.exists(TOPIC)
    assert not cluster.exists("/admin/delete_topics/t")
    assert [] == cluster.failures()


def test_brokers_know_a_topic_whose_deletion_waits_for_a_move() -> None:
    # Replicas are fetched by topic ids: where nobody knows the topic the move would never end.
    cluster, told = started((1, 2), catch_up=False)
    reassign(cluster, {T0: (3, 2)})
    now(cluster.admin.create("/admin/delete_topics/t"))
    told.settle()
    cluster.active.channel.take()
    cluster.start(5)
    states = [
        state
        for _, _, request in cluster.active.channel.take("UpdateMetadataRequest")
        for topic in request.topic_states
        for state in topic.partition_states
    ]
    assert {1} == {state.leader for state in states}


def test_a_broker_that_comes_back_does_not_let_a_deletion_overtake_a_move() -> None:
    cluster, told = started((1, 2), catch_up=False)
    reassign(cluster, {T0: (3, 2)})
    now(cluster.admin.create("/admin/delete_topics/t"))
    cluster.kill(2)
    told.listen(cluster.start(2))
    assert cluster.exists(STATE)
    assert {T0} == cluster.controller.context.reassigning


def test_a_partition_whose_move_a_deletion_waits_for_gets_another_leader() -> None:
    cluster, told = started((2, 3), catch_up=False)
    reassign(cluster, {T0: (4, 3)})
    now(cluster.admin.create("/admin/delete_topics/t"))
    cluster.kill(2)
    assert (3, (3,)) == cluster.leader_isr_epoch("t")[:2]
    # Its replicas are told, or they would go on in the epoch of before.
    assert cluster.state("t").leader_epoch == told.told[3, T0].leader_epoch
    told.propose(T0, (3, 4))
    assert not cluster.exists(TOPIC)


def test_a_move_that_a_deletion_waits_for_outlives_a_failover_without_its_leader() -> None:
    cluster, told = started((2,), catch_up=False)
    reassign(cluster, {T0: (4,)})
    now(cluster.admin.create("/admin/delete_topics/t"))
    cluster.kill(2)
    now(cluster.admin.delete("/controller"))
    cluster.settle()
    assert (-1, (2,)) == cluster.leader_isr_epoch("t")[:2]
    told.listen(cluster.start(2))
    assert (2, (2,)) == cluster.leader_isr_epoch("t")[:2]
    told.propose(T0, (2, 4))
    assert not cluster.exists(TOPIC)
    assert [] == cluster.failures()


def test_a_late_response_about_a_removed_replica_does_not_touch_a_deletion() -> None:
    cluster, told = started((1, 2), brokers=3)
    reassign(cluster, {T0: (3, 2)})
    told.settle()
    cluster.active.channel.silent.add(2)
    now(cluster.admin.create("/admin/delete_topics/t"))
    cluster.settle()
    context = cluster.controller.context
    assert {"t"} == context.deletion_started
    # Only now broker 1 says that it could not delete what it had.
    response = message_class("StopReplicaResponse")
    error = response.StopReplicaPartitionError(topic_name="t", partition_index=0, error_code=56)
    cluster.controller._on_stop_replica_response(
        1, frozenset((T0,)), response(partition_errors=[error])
    )
    cluster.settle()
    assert set() == context.ineligible_for_deletion
    assert {2, 3} == {replica.broker_id for replica in context.replica_phases}


def test_the_last_replica_in_sync_is_not_deleted_by_a_cancellation() -> None:
    cluster, told = started((1,), catch_up=False)
    reassign(cluster, {T0: (3, 4)})
    told.propose(T0, (1, 3))
    cluster.kill(1)
    assert (3, (3,)) == cluster.leader_isr_epoch("t")[:2]
    refused = (39, "No replica would be left of those that are in sync: 3.")
    assert {T0: refused} == reassign(cluster, {T0: None})
    assert {T0: refused} == reassign(cluster, {T0: (4,)})
    assert (3, (3,)) == cluster.leader_isr_epoch("t")[:2]
    told.catch_up = True
    told.settle()
    assert PartitionAssignment((3, 4)) == stored(cluster)


def test_a_topic_that_other_hands_remove_fails_its_own_move_alone() -> None:
    cluster, told = started((1, 2))
    cluster.create_topic("u", (1, 2))
    told.settle()
    request_class = message_class("AlterPartitionReassignmentsRequest")
    row = request_class.ReassignablePartition(partition_index=0, replicas=[3])
    topics = [request_class.ReassignableTopic(name=name, partitions=[row]) for name in "tu"]
    responses: list[Any] = []
    requested = request_class(topics=topics)
    cluster.controller.alter_reassignments(requested).then(responses.append)
    for path in (STATE, f"{TOPIC}/partitions/0", f"{TOPIC}/partitions", TOPIC):
        now(cluster.admin.delete(path))
    told.settle()
    assert [("t", -1), ("u", 0)] == [
        (topic.name, topic.partitions[0].error_code) for topic in responses[0].responses
    ]
    assert ["PartitionReassignment"] == [name for name, _ in cluster.failures()]
    assert (3, (3,)) == cluster.leader_isr_epoch("u")[:2]


def test_partitions_added_a_moment_ago_are_kept() -> None:
    cluster, told = started((1, 2))
    data, stat = now(cluster.admin.get(TOPIC))
    topic = decode_topic(data, TOPIC)
    grown = topic._replace(partitions={**topic.partitions, 1: PartitionAssignment((2, 1))})
    # The event of the request runs before that of the watch.
    request_class = message_class("AlterPartitionReassignmentsRequest")
    row = request_class.ReassignablePartition(partition_index=0, replicas=[3])
    requested = request_class(topics=[request_class.ReassignableTopic(name="t", partitions=[row])])
    cluster.controller.alter_reassignments(requested)
    now(cluster.admin.set(TOPIC, encode_topic(grown), stat.version))
    told.settle()
    assert PartitionAssignment((3,)) == stored(cluster)
    assert PartitionAssignment((2, 1)) == stored(cluster, 1)
    assert (2, (2, 1), 0) == cluster.leader_isr_epoch("t", 1)


def test_a_target_that_dies_is_waited_for() -> None:
    cluster, told = started((1, 2), catch_up=False)
    reassign(cluster, {T0: (3, 2)})
    cluster.kill(3)
    told.settle()
    assert {T0} == cluster.controller.context.reassigning
    assert (1, (1, 2)) == cluster.leader_isr_epoch("t")[:2]
    told.listen(cluster.start(3))
    told.catch_up = True
    told.settle()
    assert PartitionAssignment((3, 2)) == stored(cluster)
    assert (3, (2, 3)) == cluster.leader_isr_epoch("t")[:2]


def test_a_target_that_is_in_sync_and_dies_is_waited_for_too() -> None:
    cluster, told = started((1, 2), catch_up=False)
    reassign(cluster, {T0: (3, 4)})
    told.propose(T0, (1, 2, 3))
    cluster.kill(3)
    told.propose(T0, (1, 2, 4))
    assert {T0} == cluster.controller.context.reassigning
    told.listen(cluster.start(3))
    told.catch_up = True
    told.settle()
    assert (3, (3, 4)) == (cluster.state("t").leader, tuple(sorted(cluster.state("t").isr)))


def test_an_old_leader_that_dies_midway_is_replaced_by_one_in_sync() -> None:
    cluster, told = started((2, 1), catch_up=False)
    reassign(cluster, {T0: (3, 4)})
    cluster.kill(2)
    assert (1, (1,)) == cluster.leader_isr_epoch("t")[:2]
    told.catch_up = True
    told.settle()
    assert (3, {3, 4}) == (cluster.state("t").leader, set(cluster.state("t").isr))


def test_a_partition_that_never_had_a_leader_begins_among_its_new_replicas() -> None:
    cluster = Cluster(3)
    told = Replicas(cluster)
    cluster.create_topic("t", (9,))
    assert {T0: (0, None)} == reassign(cluster, {T0: (2, 3)})
    told.settle()
    assert PartitionAssignment((2, 3)) == stored(cluster)
    assert (2, (2, 3)) == cluster.leader_isr_epoch("t")[:2]
    assert [] == cluster.failures()


def test_a_partition_that_never_had_a_leader_waits_for_a_target_that_died() -> None:
    cluster = Cluster(3)
    told = Replicas(cluster)
    cluster.create_topic("t", (9,))
    cluster.create_topic("u", (1,))
    told.catch_up = False
    now(cluster.admin.create(NODE, encode_reassignment({T0: (4,)})))
    cluster.settle()
    assert {T0} == cluster.controller.context.reassigning
    assert not cluster.exists(STATE)
    told.listen(cluster.start(4))
    assert PartitionAssignment((4,)) == stored(cluster)
    assert (4, (4,)) == cluster.leader_isr_epoch("t")[:2]
    assert not cluster.exists(NODE)


def test_an_isr_that_a_broker_wrote_itself_lets_a_move_go_on() -> None:
    cluster, _ = started((1, 2), catch_up=False)
    reassign(cluster, {T0: (3, 2)})
    state = cluster.state("t")
    now(cluster.admin.set(STATE, encode_partition_state(state._replace(isr=(1, 2, 3)))))
    now(cluster.admin.create(ISR_CHANGE_PREFIX, encode_partitions([T0]), sequential=True))
    cluster.settle()
    assert PartitionAssignment((3, 2)) == stored(cluster)
    assert (3, (2, 3)) == cluster.leader_isr_epoch("t")[:2]


# -- the old door ------------------------------------------------------------------------------

NODE = "/admin/reassign_partitions"


def write_node(cluster: Cluster, targets: dict[TopicPartition, tuple[int, ...]]) -> None:
    now(cluster.admin.create(NODE, encode_reassignment(targets)))
    cluster.settle()


def test_the_old_node_is_obeyed_and_removed_with_its_last_partition() -> None:
    cluster, told = started((1, 2), (2, 1), catch_up=False)
    write_node(cluster, {T0: (3, 2), T1: (3, 2), TopicPartition("x", 0): (1,)})
    assert encode_reassignment({T0: (3, 2), T1: (3, 2)}) == now(cluster.admin.get(NODE))[0]
    told.propose(T0, (1, 2, 3))
    assert encode_reassignment({T1: (3, 2)}) == now(cluster.admin.get(NODE))[0]
    told.propose(T1, (2, 1, 3))
    assert not cluster.exists(NODE)
    assert PartitionAssignment((3, 2)) == stored(cluster)
    assert PartitionAssignment((3, 2)) == stored(cluster, 1)
    # Another one is seen as well.
    write_node(cluster, {T0: (1, 2)})
    told.propose(T0, (2, 3, 1))
    assert not cluster.exists(NODE)
    assert PartitionAssignment((1, 2)) == stored(cluster)
    assert [] == cluster.failures()


@pytest.mark.parametrize("target", [(), (1, 1), (1, -1)])
def test_the_old_node_cannot_leave_a_partition_without_replicas(target: tuple[int, ...]) -> None:
    cluster, _ = started((1, 2))
    write_node(cluster, {T0: target})
    assert not cluster.exists(NODE)
    assert PartitionAssignment((1, 2)) == stored(cluster)
    assert (1, (1, 2), 0) == cluster.leader_isr_epoch("t")


def test_a_node_that_lets_all_replicas_go_deletes_none() -> None:
    cluster, told = started((1, 2))
    data, _ = now(cluster.admin.get(TOPIC))
    topic = decode_topic(data, TOPIC)
    moved = topic._replace(partitions={0: PartitionAssignment((1, 2), (), (1, 2))})
    now(cluster.admin.set(TOPIC, encode_topic(moved)))
    now(cluster.admin.delete("/controller"))
    told.settle()
    assert (1, (1, 2)) == cluster.leader_isr_epoch("t")[:2]
    assert STRAY not in told.told.values()
    assert {T0: (0, None)} == reassign(cluster, {T0: None})
    assert PartitionAssignment((1, 2)) == stored(cluster)


def test_the_api_takes_a_partition_out_of_the_old_node() -> None:
    cluster, _ = started((1, 2), catch_up=False)
    write_node(cluster, {T0: (3, 2)})
    reassign(cluster, {T0: None})
    assert not cluster.exists(NODE)
    # The order of the original is lost where the target shares replicas with it.
    assert PartitionAssignment((2, 1)) == stored(cluster)


def test_the_old_node_is_written_again_by_each_request_and_end_of_a_move() -> None:
    cluster, told = started((1, 2), (1, 2), (1, 2), catch_up=False)
    write_node(cluster, {T0: (3, 2)})
    reassign(cluster, {T1: (3, 2)})
    data, stat = now(cluster.admin.get(NODE))
    assert (encode_reassignment({T0: (3, 2)}), 1) == (data, stat.version)
    told.propose(T1, (1, 2, 3))
    data, stat = now(cluster.admin.get(NODE))
    assert (encode_reassignment({T0: (3, 2)}), 2) == (data, stat.version)


def test_an_old_node_that_names_no_partition_goes_with_the_next_request() -> None:
    cluster, _ = started((1, 2), catch_up=False)
    write_node(cluster, {})
    assert cluster.exists(NODE)
    reassign(cluster, {T0: (3, 2)})
    assert not cluster.exists(NODE)


def test_the_old_node_is_read_after_a_failover_and_replaces_what_runs() -> None:
    cluster, told = started((1, 2), (1, 2), catch_up=False)
    reassign(cluster, {T0: (3, 2), T1: (3, 2)})
    now(cluster.admin.delete("/controller"))
    now(cluster.admin.create(NODE, encode_reassignment({T0: (4, 1)})))
    told.settle()
    assert {T0: ([4, 1, 2], [4], [2]), T1: ([3, 2, 1], [3], [1])} == listed(cluster)
    told.catch_up = True
    told.settle()
    assert PartitionAssignment((4, 1)) == stored(cluster)
    assert PartitionAssignment((3, 2)) == stored(cluster, 1)
    assert not cluster.exists(NODE)


def test_an_old_node_that_nobody_understands_stays_and_harms_nobody() -> None:
    cluster, told = started((1, 2))
    now(cluster.admin.create(NODE, b"no json"))
    cluster.settle()
    now(cluster.admin.delete("/controller"))
    cluster.settle()
    assert b"no json" == now(cluster.admin.get(NODE))[0]
    assert {T0: (0, None)} == reassign(cluster, {T0: (3,)})
    told.settle()
    assert PartitionAssignment((3,)) == stored(cluster)
    assert {"ZkPartitionReassignment"} == {name for name, _ in cluster.failures()}


@pytest.mark.parametrize("is_removed", [True, False])
def test_a_node_that_is_changed_by_hand_is_read_again(is_removed: bool) -> None:
    cluster, told = started((1, 2), catch_up=False)
    write_node(cluster, {T0: (3, 2)})
    if is_removed:
        now(cluster.admin.delete(NODE))
        cluster.settle()
        write_node(cluster, {T0: (4, 2)})
    else:
        now(cluster.admin.set(NODE, encode_reassignment({T0: (4, 2)})))
    told.settle()
    assert {T0: ([4, 2, 1], [4], [1])} == listed(cluster)
