"""Brokers beside a controller that do as they are told, as far as the controller can see it.

A leader that hears of assigned replicas that are alive and out of sync asks for them to be in sync:
as if they had caught up at once, or as soon as the test lets them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from engine.host.promise import Promise
from engine.model import TopicPartition
from engine.wire.structs import message_class
from tests.unit.controller.cluster import Cluster, Node

STRAY = "deleted"
# Each round asks for all that is late: more of them are a fault.
_ROUNDS_MAX = 20


class Told(NamedTuple):
    """What a replica was told last."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    partition_epoch: int


class Replicas:
    """What brokers of a cluster were told, and what leaders make of it."""

    def __init__(self, cluster: Cluster, *, catch_up: bool = True) -> None:
        self.cluster = cluster
        #: Whether followers are in sync as soon as they follow.
        self.catch_up = catch_up
        #: By broker and partition: what LeaderAndIsr said, or that it was deleted.
        self.told: dict[tuple[int, TopicPartition], Told | str] = {}
        #: By broker and partition: what UpdateMetadata said.
        self.metadata: dict[tuple[int, TopicPartition], Told] = {}
        for node in cluster.nodes.values():
            self.listen(node)

    def listen(self, node: Node) -> None:
        """Hear what a node sends once it is the controller."""
        send = node.channel.send

        def send_and_note(broker_id: int, name: str, request: Any) -> Promise[Any]:
            if broker_id in node.channel.open_ids and broker_id not in node.channel.silent:
                self._note(broker_id, name, request)
            return send(broker_id, name, request)

        node.channel.send = send_and_note  # type: ignore[method-assign]

    def settle(self) -> None:
        """Let leaders ask for what is in sync until nothing changes."""
        self.cluster.settle()
        rounds = 0
        while self.catch_up and self._ask():
            self.cluster.settle()
            rounds += 1
            assert rounds < _ROUNDS_MAX, "the controller grants nobody anything"

    def _note(self, broker_id: int, name: str, request: Any) -> None:
        topics = getattr(request, "topic_states", ())
        for topic in topics:
            for state in topic.partition_states:
                partition = TopicPartition(topic.topic_name, state.partition_index)
                key = (broker_id, partition)
                if name == "StopReplicaRequest":
                    if state.delete_partition:
                        self.told[key] = STRAY
                    continue
                is_order = name == "LeaderAndIsrRequest"
                epoch = state.partition_epoch if is_order else state.zk_version
                told = Told(
                    state.leader,
                    state.leader_epoch,
                    tuple(state.isr),
                    tuple(state.replicas),
                    epoch,
                )
                (self.told if is_order else self.metadata)[key] = told

    def _ask(self) -> bool:
        """Let each leader ask for its live replicas to be in sync; return whether one did."""
        active = [n for n in self.cluster.nodes.values() if n.controller.is_active]
        if not active:
            return False
        (node,) = active
        context = node.controller.context
        requested = False
        for (broker_id, partition), told in sorted(self.told.items()):
            is_leader = not isinstance(told, str) and told.leader == broker_id
            if not is_leader or not context.is_online(broker_id, partition):
                continue
            assert not isinstance(told, str)
            current = context.leaderships.get(partition)
            if current is None or current.state.leader_epoch != told.leader_epoch:
                continue
            isr = current.state.isr
            late = [r for r in told.replicas if context.is_online(r, partition) and r not in isr]
            if late:
                self.propose(partition, (*isr, *late))
                requested = True
                if not node.controller.is_active:
                    break
        return requested

    def propose(self, partition: TopicPartition, isr: tuple[int, ...]) -> int:
        """Let the leader of a partition ask for in-sync replicas; returns the error code."""
        controller = self.cluster.controller
        current = controller.context.leaderships[partition]
        leader = current.state.leader
        request_class = message_class("AlterPartitionRequest")
        row = request_class.PartitionData(
            partition_index=partition.partition,
            leader_epoch=current.state.leader_epoch,
            new_isr_with_epochs=[request_class.BrokerState(broker_id=id_) for id_ in isr],
            partition_epoch=current.partition_epoch,
        )
        topic_id = controller.context.topic_ids[partition.topic]
        request = request_class(
            broker_id=leader,
            broker_epoch=controller.context.live_brokers[leader].epoch,
            topics=[request_class.TopicData(topic_id=topic_id, partitions=[row])],
        )
        responses: list[Any] = []
        controller.alter_partition(request, 3).then(responses.append)
        self.cluster.settle()
        (response,) = responses
        if response.error_code:
            return int(response.error_code)
        return int(response.topics[0].partitions[0].error_code)


def reassign(
    cluster: Cluster, targets: dict[TopicPartition, tuple[int, ...] | None]
) -> dict[TopicPartition, tuple[int, str | None]]:
    """Ask the controller for new replicas; returns code and message of each partition."""
    request_class = message_class("AlterPartitionReassignmentsRequest")
    request = request_class(
        topics=[
            request_class.ReassignableTopic(
                name=partition.topic,
                partitions=[
                    request_class.ReassignablePartition(
                        partition_index=partition.partition,
                        replicas=None if target is None else list(target),
                    )
                ],
            )
            for partition, target in targets.items()
        ]
    )
    responses: list[Any] = []
    cluster.controller.alter_reassignments(request).then(responses.append)
    cluster.settle()
    (response,) = responses
    assert 0 == response.error_code
    return {
        TopicPartition(topic.name, row.partition_index): (row.error_code, row.error_message)
        for topic in response.responses
        for row in topic.partitions
    }


def listed(cluster: Cluster) -> dict[TopicPartition, tuple[list[int], list[int], list[int]]]:
    """Return the reassignments that the controller lists."""
    request = message_class("ListPartitionReassignmentsRequest")(topics=None)
    responses: list[Any] = []
    cluster.controller.list_reassignments(request).then(responses.append)
    cluster.settle()
    (response,) = responses
    return {
        TopicPartition(topic.name, row.partition_index): (
            row.replicas,
            row.adding_replicas,
            row.removing_replicas,
        )
        for topic in response.topics
        for row in topic.partitions
    }
