"""Elections that an admin asks for, and what is told of reassignments."""

from __future__ import annotations

from typing import Any

from engine.controller.controller import Controller
from engine.controller.requested_election import PartitionElection
from engine.model import TopicPartition
from engine.wire.structs import message_class
from engine.znode.values import PartitionAssignment, TopicAssignment, encode_topic
from tests.unit.controller.cluster import Cluster, now

LIST = message_class("ListPartitionReassignmentsRequest")
FIRST = TopicPartition("t", 0)


def elect(
    cluster: Cluster,
    *partitions: TopicPartition,
    is_unclean: bool = False,
    controller: Controller | None = None,
) -> dict[TopicPartition, PartitionElection]:
    answers: list[dict[TopicPartition, PartitionElection]] = []
    requested = controller or cluster.controller
    requested.elect_leaders(partitions, is_unclean=is_unclean).then(answers.append)
    assert [] == answers
    cluster.settle()
    (answer,) = answers
    return answer


def led_by_the_second() -> Cluster:
    """Return a cluster whose t-0 has its preferred leader, broker 2, back in sync, and 3 leading.

    The controller is broker 1 and no replica.
    """
    cluster = Cluster(3)
    cluster.create_topic("t", (2, 3))
    cluster.kill(2)
    cluster.start(2)
    rejoin(cluster, [3, 2])
    return cluster


def rejoin(cluster: Cluster, isr: list[int]) -> None:
    alter = message_class("AlterPartitionRequest")
    state = cluster.state("t")
    partition = alter.PartitionData(
        partition_index=0,
        leader_epoch=state.leader_epoch,
        partition_epoch=cluster.controller.context.leaderships[FIRST].partition_epoch,
        new_isr_with_epochs=[alter.BrokerState(broker_id=each) for each in isr],
    )
    topic = alter.TopicData(
        topic_id=cluster.controller.context.topic_ids["t"], partitions=[partition]
    )
    epoch = cluster.controller.context.live_brokers[state.leader].epoch
    request = alter(broker_id=state.leader, broker_epoch=epoch, topics=[topic])
    cluster.controller.alter_partition(request, 3)
    cluster.settle()
    assert tuple(isr) == cluster.state("t").isr


def test_the_preferred_replica_leads_again() -> None:
    cluster = led_by_the_second()
    assert 3 == cluster.state("t").leader
    assert {FIRST: PartitionElection(0, None, 2)} == elect(cluster, FIRST)
    assert 2 == cluster.state("t").leader
    assert (3, 2) == cluster.state("t").isr


def test_no_election_is_held_where_the_preferred_replica_leads() -> None:
    cluster = Cluster(1)
    cluster.create_topic("t", (1,))
    message = "Leader election not needed for topic partition."
    before = cluster.state("t")
    for is_unclean in (False, True):
        outcome = elect(cluster, FIRST, is_unclean=is_unclean)
        assert {FIRST: PartitionElection(84, message)} == outcome
    assert before == cluster.state("t")


def test_a_preferred_replica_that_is_gone_cannot_lead() -> None:
    cluster = led_by_the_second()
    cluster.kill(2)
    (outcome,) = elect(cluster, FIRST).values()
    assert (80, -1) == (outcome.code, outcome.leader_id)
    assert outcome.message == (
        "Failed to elect leader for partition t-0 under strategy "
        "PreferredReplicaPartitionLeaderElectionStrategy"
    )
    assert 3 == cluster.state("t").leader


def test_a_replica_out_of_sync_leads_only_when_asked() -> None:
    cluster = Cluster(3)
    cluster.create_topic("t", (2, 3))
    cluster.kill(3)
    cluster.kill(2)
    cluster.start(3)
    assert -1 == cluster.state("t").leader
    (outcome,) = elect(cluster, FIRST).values()
    assert 80 == outcome.code
    assert {FIRST: PartitionElection(0, None, 3)} == elect(cluster, FIRST, is_unclean=True)
    assert (3, (3,)) == (cluster.state("t").leader, cluster.state("t").isr)


def test_an_unclean_election_needs_a_live_replica() -> None:
    cluster = Cluster(2)
    cluster.create_topic("t", (2,))
    cluster.kill(2)
    (outcome,) = elect(cluster, FIRST, is_unclean=True).values()
    assert 83 == outcome.code
    assert str(outcome.message).endswith("OfflinePartitionLeaderElectionStrategy(true)")


def test_what_is_not_there_or_on_its_way_out_is_refused_in_the_order_asked() -> None:
    cluster = Cluster(1)
    cluster.create_topic("t", (1,))
    cluster.create_topic("going", (1,))
    cluster.controller.context.to_delete.add("going")
    unknown, going = TopicPartition("gone", 0), TopicPartition("going", 0)
    outcomes = elect(cluster, unknown, going, FIRST, TopicPartition("t", 1))
    assert [
        (unknown, 3, "The partition does not exist."),
        (going, 17, "The topic is being deleted"),
        (FIRST, 84, "Leader election not needed for topic partition."),
        (TopicPartition("t", 1), 3, "The partition does not exist."),
    ] == [(partition, each.code, each.message) for partition, each in outcomes.items()]


def test_a_partition_that_never_had_a_leader_is_answered() -> None:
    cluster = Cluster(1)
    cluster.create_topic("t", (9,))
    assert [80] == [each.code for each in elect(cluster, FIRST).values()]
    assert [83] == [each.code for each in elect(cluster, FIRST, is_unclean=True).values()]


def test_another_broker_is_not_the_controller() -> None:
    cluster = led_by_the_second()
    other = cluster.nodes[3].controller
    assert {FIRST: PartitionElection(41)} == elect(cluster, FIRST, controller=other)
    assert 3 == cluster.state("t").leader


def listed(cluster: Cluster, topics: Any = None, controller: Controller | None = None) -> Any:
    answers: list[Any] = []
    requested = controller or cluster.controller
    requested.list_reassignments(LIST(topics=topics)).then(answers.append)
    cluster.settle()
    (answer,) = answers
    return answer


def rows(reply: Any) -> list[tuple[str, int, list[int], list[int], list[int]]]:
    return [
        (
            topic.name,
            each.partition_index,
            each.replicas,
            each.adding_replicas,
            each.removing_replicas,
        )
        for topic in reply.topics
        for each in topic.partitions
    ]


def with_reassignment() -> Cluster:
    """Return a cluster in which t-1 moves from broker 1 to 2, as another controller began it."""
    cluster = Cluster(2)
    text = encode_topic(
        TopicAssignment(
            None, {0: PartitionAssignment((1,)), 1: PartitionAssignment((2, 1), (2,), (1,))}
        )
    )
    now(cluster.admin.create("/brokers/topics/t", text))
    cluster.settle()
    return cluster


def test_no_reassignment_is_listed_where_none_is() -> None:
    cluster = Cluster(1)
    cluster.create_topic("t", (1,))
    requested = [LIST.ListPartitionReassignmentsTopics(name="t", partition_indexes=[0, 7])]
    for topics in (None, [], requested):
        reply = listed(cluster, topics)
        assert (0, []) == (reply.error_code, rows(reply))


def test_reassignments_are_listed_all_or_those_requested() -> None:
    cluster = with_reassignment()
    moving = [("t", 1, [2, 1], [2], [1])]
    topic = LIST.ListPartitionReassignmentsTopics
    assert moving == rows(listed(cluster))
    assert moving == rows(listed(cluster, [topic(name="t", partition_indexes=[0, 1, 1])]))
    assert [] == rows(listed(cluster, [topic(name="t", partition_indexes=[0])]))
    assert [] == rows(listed(cluster, []))


def test_only_the_controller_lists_reassignments() -> None:
    cluster = with_reassignment()
    reply = listed(cluster, controller=cluster.nodes[2].controller)
    assert (41, []) == (reply.error_code, rows(reply))
    assert reply.error_message == "This is not the correct controller for this cluster."
