"""Clusters that live through anything in any order keep what must always hold."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.controller.states import PartitionPhase, ReplicaPhase
from engine.model import TopicPartition
from engine.znode.values import NO_LEADER, decode_topic
from tests.unit.controller.cluster import Cluster, now
from tests.unit.controller.replicas import Replicas, reassign

BROKERS = (1, 2, 3)
TOPICS = ("a", "b")

steps = st.one_of(
    st.tuples(st.just("toggle"), st.sampled_from(BROKERS)),
    st.tuples(
        st.just("create"),
        st.sampled_from(TOPICS),
        st.lists(
            st.lists(st.sampled_from(BROKERS), min_size=1, unique=True).map(tuple),
            min_size=1,
            max_size=3,
        ),
    ),
    st.tuples(st.just("delete"), st.sampled_from(TOPICS)),
    st.tuples(st.just("depose")),
    st.tuples(st.just("mute"), st.sampled_from(BROKERS)),
    st.tuples(
        st.just("move"),
        st.sampled_from(TOPICS),
        st.none() | st.lists(st.sampled_from(BROKERS), min_size=1, unique=True).map(tuple),
    ),
    st.tuples(st.just("catch up"), st.booleans()),
)


def do(cluster: Cluster, told: Replicas, step: tuple[object, ...]) -> None:
    """Take a step that makes sense now, pass over others."""
    match step:
        case ("toggle", int() as broker_id):
            if broker_id not in cluster.nodes:
                told.listen(cluster.start(broker_id))
            elif len(cluster.nodes) > 1:
                cluster.kill(broker_id)
        case ("create", str() as topic, list() as replicas):
            if not cluster.exists(f"/brokers/topics/{topic}"):
                cluster.create_topic(topic, *replicas)
        case ("delete", str() as topic):
            if not cluster.exists(f"/admin/delete_topics/{topic}"):
                now(cluster.admin.create(f"/admin/delete_topics/{topic}"))
                cluster.settle()
        case ("mute", int() as broker_id):
            for node in cluster.nodes.values():
                node.channel.silent.add(broker_id)
        case ("move", str() as topic, target):
            assert target is None or isinstance(target, tuple)
            reassign(cluster, {TopicPartition(topic, 0): target})
        case ("catch up", bool() as catch_up):
            told.catch_up = catch_up
        case _:
            now(cluster.admin.delete("/controller"))
    told.settle()


def check(cluster: Cluster, epochs: dict[tuple[int, int], int]) -> None:
    """Assert what always holds of the stored states, and of the controller that knows them."""
    context = cluster.controller.context
    assert sorted(cluster.nodes) == context.live_ids()
    assert set(cluster.children("/brokers/topics")) == set(context.topics)
    for topic in cluster.children("/brokers/topics"):
        path = f"/brokers/topics/{topic}"
        data, topic_stat = now(cluster.admin.get(path))
        stored = decode_topic(data, path)
        for index, assignment in stored.partitions.items():
            partition = TopicPartition(topic, index)
            if not cluster.exists(f"{path}/partitions/{index}/state"):
                assert partition not in context.leaderships
                continue
            state = cluster.state(topic, index)
            known, partition_epoch = context.leaderships[partition]
            stat = now(cluster.admin.get(f"{path}/partitions/{index}/state"))[1]
            assert assignment == context.assignment(partition)
            assert (state.leader, state.isr, stat.version) == (
                known.leader,
                known.isr,
                partition_epoch,
            )
            assert state.isr
            assert set(state.isr) <= set(assignment.replicas)
            assert state.leader in (NO_LEADER, *state.isr)
            key = (topic_stat.czxid, index)
            assert epochs.get(key, 0) <= state.leader_epoch
            epochs[key] = state.leader_epoch
            if topic in context.to_delete:
                continue
            # A replica that is in sync and alive leads.
            alive = [each for each in state.isr if each in cluster.nodes]
            assert bool(alive) == (state.leader in cluster.nodes)
            expected = PartitionPhase.ONLINE if alive else PartitionPhase.OFFLINE
            assert expected is context.partition_phases[partition]
    for replica, phase in context.replica_phases.items():
        if replica.partition.topic not in context.to_delete:
            # A new topic's replica on a dead broker counts as online until that broker returns.
            is_moving = replica.partition in context.reassigning
            assert (
                phase is ReplicaPhase.ONLINE
                or replica.broker_id not in cluster.nodes
                or (phase is ReplicaPhase.NEW and is_moving)
            )
    assert context.reassigning == {
        TopicPartition(topic, index)
        for topic, assignments in context.topics.items()
        for index, assignment in assignments.items()
        if assignment.adding_replicas or assignment.removing_replicas
    }


@given(st.lists(steps, max_size=12))
@settings(max_examples=60)
def test_what_always_holds(life: list[tuple[object, ...]]) -> None:
    cluster = Cluster(3)
    told = Replicas(cluster)
    epochs: dict[tuple[int, int], int] = {}
    for step in life:
        do(cluster, told, step)
        check(cluster, epochs)
    # When all brokers are up and answer, all that was to be deleted is gone.
    for broker_id in BROKERS:
        if broker_id not in cluster.nodes:
            told.listen(cluster.start(broker_id))
    for node in cluster.nodes.values():
        node.channel.silent.clear()
    told.catch_up = True
    now(cluster.admin.delete("/controller"))
    told.settle()
    check(cluster, epochs)
    assert set() == cluster.controller.context.reassigning
    assert [] == cluster.children("/admin/delete_topics")
    assert 0 == cluster.controller.context.offline_partition_count()
    assert [] == cluster.failures()
