"""The requests of one change: collected while it goes on, sent when it is done.

Per broker at most one of each, in this order:

| request | to | tells |
|---|---|---|
| LeaderAndIsr | replicas of the partitions that changed | who leads, who follows |
| UpdateMetadata | all live brokers | what clients may be told |
| StopReplica | brokers whose replicas end, for a while or for good | stop, delete |

Source: CTL-4, CTL-5; Kafka's AbstractControllerBrokerRequestBatch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

from engine.controller.context import DELETED, ControllerContext, PartitionLeadership
from engine.controller.ports import BrokerChannel
from engine.errors import ApiError
from engine.host.promise import Promise
from engine.model import TopicPartition
from engine.wire.layout import NO_UUID
from engine.wire.structs import message_class
from engine.znode.values import PartitionAssignment


class ResponseTakers(NamedTuple):
    """Who takes the responses of brokers; they only put events."""

    #: Broker and response.
    leader_and_isr: Callable[[int, Any], None]
    #: Broker, partitions that it was to delete, and response.
    stop_replica: Callable[[int, frozenset[TopicPartition], Any], None]


class BatchSender(NamedTuple):
    """What the batches of one controller share."""

    controller_id: int
    #: The listener by which brokers reach each other.
    listener: str
    context: ControllerContext
    channel: BrokerChannel
    takers: ResponseTakers


class RequestBatch:
    """Collects what the brokers must be told of one change."""

    def __init__(self, sender: BatchSender) -> None:
        self._sender = sender
        self._context = sender.context
        self._leader_and_isr: dict[int, dict[TopicPartition, Any]] = {}
        self._stop_replica: dict[int, dict[TopicPartition, Any]] = {}
        self._metadata: dict[TopicPartition, Any] = {}
        self._metadata_brokers: set[int] = set()

    def add_leader_and_isr(
        self,
        broker_ids: Iterable[int],
        partition: TopicPartition,
        leadership: PartitionLeadership,
        assignment: PartitionAssignment,
        *,
        is_new: bool,
    ) -> None:
        """Tell replicas about their partition, and all live brokers with them."""
        for broker_id in broker_ids:
            told = self._leader_and_isr.setdefault(broker_id, {})
            before = told.get(partition)
            told[partition] = _leader_and_isr_state(
                partition,
                leadership,
                assignment,
                is_new=is_new or (before is not None and before.is_new),
            )
        self.add_update_metadata(self._context.live_ids(), (partition,))

    def add_stop_replica(self, broker_id: int, partition: TopicPartition, *, delete: bool) -> None:
        """Tell a broker to stop a replica, and to delete it."""
        told = self._stop_replica.setdefault(broker_id, {})
        before = told.get(partition)
        told[partition] = message_class("StopReplicaRequest").StopReplicaPartitionState(
            partition_index=partition.partition,
            leader_epoch=self._context.leader_epoch(partition),
            delete_partition=delete or (before is not None and before.delete_partition),
        )

    def add_update_metadata(
        self, broker_ids: Iterable[int], partitions: Iterable[TopicPartition]
    ) -> None:
        """Tell brokers who is alive, and about those partitions that have had a leader."""
        self._metadata_brokers.update(broker_ids)
        for partition in partitions:
            leadership = self._context.leaderships.get(partition)
            if leadership is not None:
                self._metadata[partition] = self._metadata_state(partition, leadership)

    def send(self) -> None:
        """Send everything to those brokers that live."""
        self._send_leader_and_isr()
        self._send_update_metadata()
        self._send_stop_replica()

    def _send_leader_and_isr(self) -> None:
        message = message_class("LeaderAndIsrRequest")
        for broker_id, told in self._leader_and_isr.items():
            if broker_id not in self._context.live_brokers:
                continue
            leaders = {state.leader for state in told.values()}
            request = message(
                **self._header(broker_id),
                topic_states=self._by_topic(message.LeaderAndIsrTopicState, told),
                live_leaders=self._live_leaders(message.LeaderAndIsrLiveLeader, leaders),
            )
            # Without a response nothing is known of its replicas, and nothing changes.
            sent = self._sender.channel.send(broker_id, "LeaderAndIsrRequest", request)
            sent.then(partial(self._sender.takers.leader_and_isr, broker_id))

    def _send_update_metadata(self) -> None:
        brokers = [each for each in self._context.live_ids() if each in self._metadata_brokers]
        if not brokers:
            return
        message = message_class("UpdateMetadataRequest")
        # Read-only from here on, so that all brokers may be sent the same lists.
        topic_states = self._by_topic(message.UpdateMetadataTopicState, self._metadata)
        live_brokers = self._live_brokers(message)
        for broker_id in brokers:
            request = message(
                **self._header(broker_id), topic_states=topic_states, live_brokers=live_brokers
            )
            # An error in the response changes nothing here.
            self._sender.channel.send(broker_id, "UpdateMetadataRequest", request)

    def _send_stop_replica(self) -> None:
        message = message_class("StopReplicaRequest")
        for broker_id, told in self._stop_replica.items():
            if broker_id not in self._context.live_brokers:
                continue
            topics: dict[str, Any] = {}
            for partition, state in told.items():
                topic = topics.get(partition.topic)
                if topic is None:
                    topic = message.StopReplicaTopicState(topic_name=partition.topic)
                    topics[partition.topic] = topic
                topic.partition_states.append(state)
            deleted = frozenset(p for p, state in told.items() if state.delete_partition)
            request = message(**self._header(broker_id), topic_states=list(topics.values()))
            stopped = self._sender.channel.send(broker_id, "StopReplicaRequest", request)
            stopped.watch(partial(self._stopped, broker_id, deleted, stopped))

    def _stopped(
        self, broker_id: int, deleted: frozenset[TopicPartition], stopped: Promise[Any]
    ) -> None:
        if isinstance(stopped.error, ApiError):
            # As Kafka's own brokers answer a request that they failed to serve.
            response = _failed_stop(deleted, stopped.error.code)
            self._sender.takers.stop_replica(broker_id, deleted, response)
        elif stopped.error is None:
            self._sender.takers.stop_replica(broker_id, deleted, stopped.result())

    def _header(self, broker_id: int) -> dict[str, int]:
        return {
            "controller_id": self._sender.controller_id,
            "controller_epoch": self._context.epoch,
            "broker_epoch": self._context.live_brokers[broker_id].epoch,
        }

    def _by_topic(self, topic_state: Any, told: Mapping[TopicPartition, Any]) -> list[Any]:
        topics: dict[str, Any] = {}
        for partition, state in told.items():
            topic = topics.get(partition.topic)
            if topic is None:
                topic_id = self._context.topic_ids.get(partition.topic, NO_UUID)
                topic = topic_state(topic_name=partition.topic, topic_id=topic_id)
                topics[partition.topic] = topic
            topic.partition_states.append(state)
        return list(topics.values())

    def _live_leaders(self, live_leader: Any, leaders: set[int]) -> list[Any]:
        found = []
        for broker_id in sorted(leaders):
            broker = self._context.live_brokers.get(broker_id)
            endpoint = None if broker is None else broker.node.endpoint(self._sender.listener)
            if endpoint is not None:
                found.append(
                    live_leader(broker_id=broker_id, host_name=endpoint.host, port=endpoint.port)
                )
        return found

    def _live_brokers(self, message: Any) -> list[Any]:
        return [
            message.UpdateMetadataBroker(
                id=broker_id,
                endpoints=[
                    message.UpdateMetadataEndpoint(
                        host=endpoint.host,
                        port=endpoint.port,
                        listener=endpoint.listener,
                        security_protocol=endpoint.security_protocol,
                    )
                    for endpoint in broker.node.endpoints
                ],
                rack=broker.node.rack,
            )
            for broker_id, broker in sorted(self._context.live_brokers.items())
        ]

    def _metadata_state(self, partition: TopicPartition, leadership: PartitionLeadership) -> Any:
        context = self._context
        state, partition_epoch = leadership
        leader, leader_epoch = state.leader, state.leader_epoch
        if partition.topic in context.to_delete:
            leader, leader_epoch, partition_epoch = DELETED, 0, 0
        replicas = context.assignment(partition).replicas
        return message_class("UpdateMetadataRequest").UpdateMetadataPartitionState(
            partition_index=partition.partition,
            controller_epoch=state.controller_epoch,
            leader=leader,
            leader_epoch=leader_epoch,
            isr=list(state.isr),
            zk_version=partition_epoch,
            replicas=list(replicas),
            offline_replicas=[each for each in replicas if not context.is_online(each, partition)],
        )


def _leader_and_isr_state(
    partition: TopicPartition,
    leadership: PartitionLeadership,
    assignment: PartitionAssignment,
    *,
    is_new: bool,
) -> Any:
    state, partition_epoch = leadership
    return message_class("LeaderAndIsrRequest").LeaderAndIsrPartitionState(
        partition_index=partition.partition,
        controller_epoch=state.controller_epoch,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=list(state.isr),
        partition_epoch=partition_epoch,
        replicas=list(assignment.replicas),
        adding_replicas=list(assignment.adding_replicas),
        removing_replicas=list(assignment.removing_replicas),
        is_new=is_new,
        leader_recovery_state=state.leader_recovery_state,
    )


def _failed_stop(partitions: frozenset[TopicPartition], code: int) -> Any:
    """Return the response to a StopReplica that failed as a whole."""
    response = message_class("StopReplicaResponse")
    return response(
        error_code=code,
        partition_errors=[
            response.StopReplicaPartitionError(
                topic_name=partition.topic, partition_index=partition.partition, error_code=code
            )
            for partition in sorted(partitions)
        ],
    )
