"""What the controller tells brokers is what they decode."""

from __future__ import annotations

from typing import Any

from engine.controller.context import ControllerContext, LiveBroker, PartitionLeadership
from engine.controller.request_batch import BatchSender, RequestBatch, ResponseTakers
from engine.errors import api_error
from engine.host.memory import ManualClock
from engine.host.memory_network import MemoryTimers
from engine.host.promise import Promise
from engine.kafka_errors import UNKNOWN_SERVER_ERROR
from engine.model import TopicPartition
from engine.replication.metadata_cache import BrokerNode, Endpoint
from engine.znode.values import PartitionAssignment, PartitionStateNode
from tests.unit.controller.admin import over_the_wire
from tests.unit.controller.cluster import Cluster, FakeChannel, now

VERSIONS = {"LeaderAndIsrRequest": 7, "UpdateMetadataRequest": 8, "StopReplicaRequest": 4}
T0 = TopicPartition("t", 0)


def test_every_request_of_a_life_survives_the_wire() -> None:
    cluster = Cluster(3)
    channel = cluster.active.channel
    cluster.create_topic("t", (1, 2, 3), (3, 1))
    cluster.create_topic("u", (2,))
    cluster.kill(3)
    cluster.start(3)
    now(cluster.admin.create("/admin/delete_topics/u"))
    cluster.settle()
    sent = channel.take()
    assert set(VERSIONS) == {name for _, name, _ in sent}
    for broker_id, name, request in sent:
        assert request == over_the_wire(request, VERSIONS[name]), (broker_id, name)


def bench() -> tuple[RequestBatch, FakeChannel, ControllerContext]:
    context = ControllerContext()
    channel = FakeChannel(MemoryTimers(ManualClock()))
    for broker_id in (1, 2):
        endpoint = Endpoint("EXTERNAL", "far", 1)
        inner = Endpoint("INTERNAL", "near", 2, 2)
        node = BrokerNode(broker_id, (endpoint, inner), "r")
        context.live_brokers[broker_id] = LiveBroker(node, 100 + broker_id)
        channel.open(node)
    context.topics = {"t": {0: PartitionAssignment((1, 2, 3), (3,), (2,))}}
    context.leaderships[T0] = PartitionLeadership(PartitionStateNode(1, 5, (1, 2), 4, 1), 9)
    handlers = ResponseTakers(lambda *_: None, lambda *_: None)
    return RequestBatch(BatchSender(8, "INTERNAL", context, channel, handlers)), channel, context


def test_leader_and_isr_has_everything_of_a_partition() -> None:
    batch, channel, context = bench()
    leadership, assignment = context.leaderships[T0], context.assignment(T0)
    batch.add_leader_and_isr((1, 3), T0, leadership, assignment, is_new=True)
    # Once new stays new in later changes of the same partition.
    batch.add_leader_and_isr((1,), T0, leadership, assignment, is_new=False)
    batch.send()
    (broker_id, _, request), *metadata = channel.take()
    assert (1, 8, 101) == (broker_id, request.controller_id, request.broker_epoch)
    (topic,) = request.topic_states
    (state,) = topic.partition_states
    assert ([1, 2, 3], [3], [2]) == (
        state.replicas,
        state.adding_replicas,
        state.removing_replicas,
    )
    assert (5, 9, 4, 1, True) == (
        state.leader_epoch,
        state.partition_epoch,
        state.controller_epoch,
        state.leader_recovery_state,
        state.is_new,
    )
    assert [("near", 2)] == [(each.host_name, each.port) for each in request.live_leaders]
    assert [1, 2] == [each[0] for each in metadata]
    assert metadata[0][2].topic_states is metadata[1][2].topic_states
    told = metadata[0][2].live_brokers[0]
    assert ("r", [("EXTERNAL", 0), ("INTERNAL", 2)]) == (
        told.rack,
        [(each.listener, each.security_protocol) for each in told.endpoints],
    )


def test_a_replica_that_is_deleted_once_is_deleted() -> None:
    batch, channel, context = bench()
    batch.add_stop_replica(1, T0, delete=True)
    batch.add_stop_replica(1, T0, delete=False)
    batch.add_stop_replica(3, T0, delete=False)
    batch.add_stop_replica(2, TopicPartition("t", 1), delete=False)
    batch.send()
    told = [
        (b, s.partition_index, s.leader_epoch, s.delete_partition)
        for b, _, request in channel.take()
        for topic in request.topic_states
        for s in topic.partition_states
    ]
    assert [(1, 0, 5, True), (2, 1, -1, False)] == told
    assert context.leaderships[T0].state.leader_epoch == 5


def test_an_empty_request_batch_sends_nothing() -> None:
    batch, channel, _ = bench()
    batch.send()
    assert [] == channel.take()


def test_a_broker_that_fails_to_serve_a_stop_has_deleted_nothing() -> None:
    batch, channel, context = bench()
    told: list[tuple[int, frozenset[TopicPartition], Any]] = []
    batch = RequestBatch(
        BatchSender(
            8,
            "INTERNAL",
            context,
            Failing(channel),
            ResponseTakers(lambda *_: None, lambda *given: told.append(given)),
        )
    )
    batch.add_stop_replica(1, T0, delete=True)
    batch.send()
    ((broker_id, deleted, response),) = told
    assert (1, {T0}, -1) == (broker_id, deleted, response.error_code)
    assert [("t", 0, -1)] == [
        (row.topic_name, row.partition_index, row.error_code) for row in response.partition_errors
    ]


class Failing:
    """A channel to brokers that fail to serve every request."""

    def __init__(self, channel: FakeChannel) -> None:
        self.open = channel.open
        self.close = channel.close

    def send(self, _broker_id: int, _name: str, _request: Any) -> Promise[Any]:
        return Promise.failed(api_error(UNKNOWN_SERVER_ERROR))
