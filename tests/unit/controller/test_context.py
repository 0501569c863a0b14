"""What the controller forgets with a topic."""

from __future__ import annotations

from engine.controller.context import ControllerContext, PartitionLeadership
from engine.controller.states import PartitionPhase, Replica, ReplicaPhase
from engine.model import TopicPartition
from engine.znode.values import PartitionAssignment, PartitionStateNode


def _note(context: ControllerContext, topic: str) -> None:
    """Note all that can be noted of a topic."""
    partition = TopicPartition(topic, 0)
    context.name_topic(topic, topic.encode() * 16)
    context.assign(partition, PartitionAssignment((1, 2)))
    state = PartitionStateNode(1, 0, (1, 2), 1)
    context.leaderships[partition] = PartitionLeadership(state, 0)
    context.partition_phases[partition] = PartitionPhase.ONLINE
    for broker_id in (1, 2):
        context.replica_phases[Replica(partition, broker_id)] = ReplicaPhase.ONLINE
    context.reassigning.add(partition)
    context.offline_replicas.setdefault(2, set()).add(partition)
    for noted in (context.to_delete, context.deletion_started, context.ineligible_for_deletion):
        noted.add(topic)


def test_of_a_topic_that_is_gone_nothing_is_left_and_of_others_all() -> None:
    context, other = ControllerContext(), ControllerContext()
    _note(other, "b")
    for topic in ("a", "b"):
        _note(context, topic)
    context.remove_topic("a")
    assert vars(other) == vars(context)
    context.remove_topic("a")
    assert vars(other) == vars(context)
