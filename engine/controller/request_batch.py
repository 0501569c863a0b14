"""Collect the controller's requests about one change, and send them at its end.

A broker gets at most one request of each kind, in this order:

| request | to | content |
|---|---|---|
| LeaderAndIsr | replicas of the partitions that changed | leaders and followers |
| UpdateMetadata | all live brokers | the metadata for clients |
| StopReplica | brokers whose replicas stop or are deleted | stop, delete |

Source: CTL-4, CTL-5; Kafka's AbstractControllerBrokerRequestBatch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import NamedTuple, TypeAlias, TypeVar

from engine.controller.context import DELETED, ControllerContext, PartitionLeadership
from engine.controller.ports import BrokerChannel
from engine.errors import ApiError
from engine.host.promise import Promise
from engine.model import TopicPartition
from engine.wire import messages
from engine.wire.layout import NO_UUID
from engine.wire.structs import Struct
from engine.znode.values import PartitionAssignment

#: The type of an UpdateMetadata with all topics.
FULL_UPDATE = 2

_LeaderAndIsrState: TypeAlias = "messages.LeaderAndIsrRequest.LeaderAndIsrPartitionState"
_StopState: TypeAlias = "messages.StopReplicaRequest.StopReplicaPartitionState"
_MetadataState: TypeAlias = "messages.UpdateMetadataRequest.UpdateMetadataPartitionState"
S = TypeVar("S", bound=Struct)


class ResponseTakers(NamedTuple):
    """The handlers of brokers' responses; they queue events."""

    #: Called with broker id and response.
    leader_and_isr: Callable[[int, messages.LeaderAndIsrResponse], None]
    #: Called with broker id, the partitions that it was to delete, and the response.
    stop_replica: Callable[[int, frozenset[TopicPartition], messages.StopReplicaResponse], None]


class BatchSender(NamedTuple):
    """The parts that all request batches of one controller share."""

    controller_id: int
    #: Name of the inter-broker listener.
    listener: str
    context: ControllerContext
    channel: BrokerChannel
    takers: ResponseTakers


class RequestBatch:
    """Collects the requests to brokers about one change."""

    def __init__(self, sender: BatchSender) -> None:
        """Create an empty batch of the controller's requests to brokers."""
        self._sender = sender
        self._context = sender.context
        #: Partition states for each broker, by broker id.
        self._leader_and_isr: dict[int, dict[TopicPartition, _LeaderAndIsrState]] = {}
        self._stop_replica: dict[int, dict[TopicPartition, _StopState]] = {}
        #: Partitions in UpdateMetadata, and the brokers that get it: all get the same partitions.
        self._metadata: dict[TopicPartition, _MetadataState] = {}
        self._metadata_brokers: set[int] = set()
        #: Whether UpdateMetadata has all partitions: the receivers then drop those that are
        #: missing.
        self._is_full = False

    def add_leader_and_isr(
        self,
        broker_ids: Iterable[int],
        partition: TopicPartition,
        leadership: PartitionLeadership,
        assignment: PartitionAssignment,
        *,
        is_new: bool,
    ) -> None:
        """Add a partition's state to LeaderAndIsr of replicas and to UpdateMetadata of all brokers.

        `is_new` marks replicas that may not exist on the broker yet.
        """
        for broker_id in broker_ids:
            states = self._leader_and_isr.setdefault(broker_id, {})
            before = states.get(partition)
            states[partition] = _leader_and_isr_row(
                partition,
                leadership,
                assignment,
                is_new=is_new or (before is not None and before.is_new),
            )
        self.add_update_metadata(self._context.live_ids(), (partition,))

    def add_stop_replica(self, broker_id: int, partition: TopicPartition, *, delete: bool) -> None:
        """Add a replica to the StopReplica request of a broker.

        With `delete` its log is deleted too.
        """
        states = self._stop_replica.setdefault(broker_id, {})
        before = states.get(partition)
        states[partition] = messages.StopReplicaRequest.StopReplicaPartitionState(
            partition_index=partition.partition,
            leader_epoch=self._context.epoch_for_stop(partition),
            delete_partition=delete or (before is not None and before.delete_partition),
        )

    def add_update_metadata(
        self, broker_ids: Iterable[int], partitions: Iterable[TopicPartition]
    ) -> None:
        """Add UpdateMetadata with the given partitions and all live brokers, to `broker_ids`.

        Partitions that never had a leader are left out.
        """
        self._metadata_brokers.update(broker_ids)
        for partition in partitions:
            leadership = self._context.leaderships.get(partition)
            if leadership is not None:
                self._metadata[partition] = self._metadata_row(partition, leadership)

    def add_all_metadata(self, broker_ids: Iterable[int]) -> None:
        """Add a full UpdateMetadata to brokers: topics that it lacks do not exist.

        Differs: Kafka marks a full update only without ZooKeeper. Without the mark, a broker whose
        session ended during a deletion, and that has no replica of the topic, keeps the topic until
        it is restarted. Brokers of Kafka ignore the mark from a controller with ZooKeeper.
        """
        self._is_full = True
        self.add_update_metadata(broker_ids, self._context.partitions_with_leadership())

    def send(self) -> None:
        """Send each live broker its requests of this batch."""
        self._send_leader_and_isr()
        self._send_update_metadata()
        self._send_stop_replica()

    def _send_leader_and_isr(self) -> None:
        """Send each broker one LeaderAndIsr request with its partitions of this batch."""
        request = messages.LeaderAndIsrRequest
        for broker_id, states in self._leader_and_isr.items():
            epoch = self._epoch_of(broker_id)
            if epoch is None:
                continue
            topics = self._topic_ids_of(states)
            order = request(
                controller_id=self._sender.controller_id,
                controller_epoch=self._context.epoch,
                broker_epoch=epoch,
                topic_states=[
                    request.LeaderAndIsrTopicState(
                        topic_name=topic, topic_id=topics[topic], partition_states=of_topic
                    )
                    for topic, of_topic in _group_by_topic(states).items()
                ],
                live_leaders=self._live_leader_rows({state.leader for state in states.values()}),
            )
            # Without a response the state of the replicas is unknown, and nothing changes.
            sent = self._sender.channel.send(broker_id, "LeaderAndIsrRequest", order)
            sent.then(partial(self._sender.takers.leader_and_isr, broker_id))

    def _send_update_metadata(self) -> None:
        """Send the brokers of this batch one UpdateMetadata request with all its partitions."""
        brokers = [id_ for id_ in self._context.live_ids() if id_ in self._metadata_brokers]
        if not brokers:
            return
        request = messages.UpdateMetadataRequest
        # All brokers get the same lists, which do not change any more.
        topics = self._topic_ids_of(self._metadata)
        topic_states = [
            request.UpdateMetadataTopicState(
                topic_name=topic, topic_id=topics[topic], partition_states=of_topic
            )
            for topic, of_topic in _group_by_topic(self._metadata).items()
        ]
        live_brokers = self._live_broker_rows()
        for broker_id in brokers:
            update = request(
                type=FULL_UPDATE if self._is_full else 0,
                controller_id=self._sender.controller_id,
                controller_epoch=self._context.epoch,
                broker_epoch=self._context.live_brokers[broker_id].epoch,
                topic_states=topic_states,
                live_brokers=live_brokers,
            )
            # An error in the response changes nothing here.
            self._sender.channel.send(broker_id, "UpdateMetadataRequest", update)

    def _send_stop_replica(self) -> None:
        """Send each broker one StopReplica request with its partitions of this batch."""
        request = messages.StopReplicaRequest
        for broker_id, states in self._stop_replica.items():
            epoch = self._epoch_of(broker_id)
            if epoch is None:
                continue
            deleted = frozenset(p for p, state in states.items() if state.delete_partition)
            order = request(
                controller_id=self._sender.controller_id,
                controller_epoch=self._context.epoch,
                broker_epoch=epoch,
                topic_states=[
                    request.StopReplicaTopicState(topic_name=topic, partition_states=of_topic)
                    for topic, of_topic in _group_by_topic(states).items()
                ],
            )
            stopped = self._sender.channel.send(broker_id, "StopReplicaRequest", order)
            stopped.watch(partial(self._on_stopped, broker_id, deleted, stopped))

    def _on_stopped(
        self,
        broker_id: int,
        deleted: frozenset[TopicPartition],
        stopped: Promise[messages.StopReplicaResponse],
    ) -> None:
        """Pass the response to StopReplica to its handler.

        After a lost connection there is none.
        """
        if isinstance(stopped.error, ApiError):
            # Kafka's brokers respond with an error code for each partition.
            response = _failed_stop_response(deleted, stopped.error.code)
            self._sender.takers.stop_replica(broker_id, deleted, response)
        elif stopped.error is None:
            self._sender.takers.stop_replica(broker_id, deleted, stopped.result())

    def _epoch_of(self, broker_id: int) -> int | None:
        """Return the broker epoch of a broker's registration, None if it is not live."""
        broker = self._context.live_brokers.get(broker_id)
        return None if broker is None else broker.epoch

    def _topic_ids_of(self, partitions: Iterable[TopicPartition]) -> dict[str, bytes]:
        """Return the topic ids of partitions, NO_UUID for topics without an id."""
        topic_ids = self._context.topic_ids
        return {p.topic: topic_ids.get(p.topic, NO_UUID) for p in partitions}

    def _live_leader_rows(
        self, leaders: set[int]
    ) -> list[messages.LeaderAndIsrRequest.LeaderAndIsrLiveLeader]:
        """Return the addresses of those `leaders` that are live, at the inter-broker listener."""
        live_leader = messages.LeaderAndIsrRequest.LeaderAndIsrLiveLeader
        rows = []
        for broker_id in sorted(leaders):
            broker = self._context.live_brokers.get(broker_id)
            endpoint = None if broker is None else broker.node.endpoint(self._sender.listener)
            if endpoint is not None:
                rows.append(
                    live_leader(broker_id=broker_id, host_name=endpoint.host, port=endpoint.port)
                )
        return rows

    def _live_broker_rows(self) -> list[messages.UpdateMetadataRequest.UpdateMetadataBroker]:
        """Return the live brokers with endpoints and racks, for UpdateMetadata."""
        request = messages.UpdateMetadataRequest
        return [
            request.UpdateMetadataBroker(
                id=broker_id,
                endpoints=[
                    request.UpdateMetadataEndpoint(
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

    def _metadata_row(
        self, partition: TopicPartition, leadership: PartitionLeadership
    ) -> _MetadataState:
        """Return a partition's row of UpdateMetadata; leader −2 if its topic is being deleted."""
        context = self._context
        state, partition_epoch = leadership
        leader, leader_epoch = state.leader, state.leader_epoch
        if context.is_being_deleted(partition.topic):
            leader, leader_epoch, partition_epoch = DELETED, 0, 0
        replicas = context.assignment(partition).replicas
        return messages.UpdateMetadataRequest.UpdateMetadataPartitionState(
            partition_index=partition.partition,
            controller_epoch=state.controller_epoch,
            leader=leader,
            leader_epoch=leader_epoch,
            isr=list(state.isr),
            zk_version=partition_epoch,
            replicas=list(replicas),
            offline_replicas=[r for r in replicas if not context.is_online(r, partition)],
        )


def _group_by_topic(states: Mapping[TopicPartition, S]) -> dict[str, list[S]]:
    """Return partition states by topic, in their order."""
    topics: dict[str, list[S]] = {}
    for partition, state in states.items():
        topics.setdefault(partition.topic, []).append(state)
    return topics


def _leader_and_isr_row(
    partition: TopicPartition,
    leadership: PartitionLeadership,
    assignment: PartitionAssignment,
    *,
    is_new: bool,
) -> _LeaderAndIsrState:
    """Return the row of a partition in LeaderAndIsr: its state and its assignment."""
    state, partition_epoch = leadership
    return messages.LeaderAndIsrRequest.LeaderAndIsrPartitionState(
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


def _failed_stop_response(
    partitions: frozenset[TopicPartition], code: int
) -> messages.StopReplicaResponse:
    """Return a StopReplica response with the same error for the request and all partitions."""
    response = messages.StopReplicaResponse
    return response(
        error_code=code,
        partition_errors=[
            response.StopReplicaPartitionError(
                topic_name=partition.topic, partition_index=partition.partition, error_code=code
            )
            for partition in sorted(partitions)
        ],
    )
