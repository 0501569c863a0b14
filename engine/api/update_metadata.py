"""UpdateMetadata (6), from the controller: the live brokers and the leaders of partitions.

| versions | form |
|---|---|
| 0 | brokers with one address; partitions in one flat list |
| 1 … 4 | brokers with an endpoint for each listener |
| 5, 6 | partitions by topic; + the broker's epoch |
| 7 | + topic ids |
| 8 | + whether the request has all topics |

A request for thousands of partitions is staged in several turns of the loop, and applied in one:
readers of the cache see all of it or nothing. The next request of the controller waits for it
(`Line`).

Source: KafkaApis.handleUpdateMetadataRequest, ZkMetadataCache; PART-12.
Differs: until its first LeaderAndIsr a started broker has no leader for the partitions that it
leads itself: it would answer their clients NOT_LEADER_OR_FOLLOWER. The controller of this engine
sends all topics before that request (Kafka's sends none), and the same partitions after it.
Differs: a controller of this engine may flag an update as complete; Kafka's with ZooKeeper never
does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from engine.api.exchange import Exchange
from engine.api.inter_broker import check_controller
from engine.api.promised import promised
from engine.host.promise import Promise
from engine.host.turns import Line, LoopTurns
from engine.kafka_errors import NONE
from engine.model import TopicPartition
from engine.replication.leadership import Leadership
from engine.replication.metadata_cache import (
    BrokerNode,
    Endpoint,
    MetadataCache,
    PartitionMetadata,
    StagedUpdate,
)
from engine.wire import messages
from engine.wire.layout import NO_UUID

_BY_TOPIC = 5
_WITH_ENDPOINTS = 1
_PLAINTEXT = "PLAINTEXT"
_NO_CONTROLLER = -1
_FULL = 2
#: The leader's number while the topic is being deleted.
_LEADER_DURING_DELETE = -2
_NO_LEADER = -1


class UpdateMetadata:
    """Applies the controller's updates to the metadata cache."""

    def __init__(
        self,
        leadership: Leadership,
        metadata_cache: MetadataCache,
        broker_epoch: Callable[[], int],
        turns: LoopTurns,
        line: Line,
    ) -> None:
        """Create the handler; `line` orders the controller's requests of all APIs.

        `broker_epoch` returns the epoch of this broker's registration.
        """
        self._turns = turns
        self._line = line
        self._leadership = leadership
        self._metadata_cache = metadata_cache
        self._broker_epoch = broker_epoch
        #: Epochs of the controller and of this broker in the last full update, None before. A full
        #: update with the same epochs is a repetition: it must not remove newer topics.
        self._full_in: tuple[int, int] | None = None

    def handle(
        self, request: messages.UpdateMetadataRequest, exchange: Exchange
    ) -> Promise[messages.UpdateMetadataResponse]:
        """Update the metadata cache by a controller's request; promise the error code."""
        return promised(self._carry_out(request, exchange))

    async def _carry_out(
        self, request: messages.UpdateMetadataRequest, exchange: Exchange
    ) -> messages.UpdateMetadataResponse:
        """Refuse a stale controller; else wait for the request's turn in the line and update."""
        # Before the line: so requests of an earlier controller, in the line, end at their next
        # turn.
        code = self._refusal(request)
        if code:
            return messages.UpdateMetadataResponse(error_code=code)
        place = await self._line.enter()
        try:
            code = await self._carry_out_in_line(request, exchange.api_version)
            return messages.UpdateMetadataResponse(error_code=code)
        finally:
            self._line.leave(place)

    async def _carry_out_in_line(
        self, request: messages.UpdateMetadataRequest, version: int
    ) -> int:
        """Apply the update to the metadata cache as a whole; return the error code.

        The update is staged in turns of the event loop: a new controller during that time refuses
        it.
        """
        share, code = self._turns.begin(), self._refusal(request)
        if code:
            return code
        staged = StagedUpdate(
            self._metadata_cache,
            {
                topic.topic_name: topic.topic_id
                for topic in request.topic_states
                if topic.topic_id != NO_UUID
            },
        )
        staging = _stage_partitions(
            request, version, staged, self._not_led_yet, self._is_full(request)
        )
        for _ in staging:
            if share.is_over():
                await share.next()
                # A new controller may be active now, whose next update is a full one.
                code = self._refusal(request)
                if code:
                    return code
        if request.type == _FULL:
            self._full_in = request.controller_epoch, request.broker_epoch
        controller_id = request.controller_id
        self._metadata_cache.commit(
            None if controller_id == _NO_CONTROLLER else controller_id,
            [_broker_node(broker, version) for broker in request.live_brokers],
            staged,
        )
        return NONE

    def _refusal(self, request: messages.UpdateMetadataRequest) -> int:
        """Return the code that refuses a request with a stale epoch, else 0."""
        return check_controller(request, self._leadership, self._broker_epoch())

    def _not_led_yet(self, metadata: PartitionMetadata) -> PartitionMetadata:
        """Return the metadata, without a leader if that is this broker and it has no roles yet.

        So clients are not sent to it before its first LeaderAndIsr request.
        """
        if self._leadership.is_informed or metadata.leader_id != self._leadership.broker_id:
            return metadata
        return metadata._replace(leader_id=_NO_LEADER)

    def _is_full(self, request: messages.UpdateMetadataRequest) -> bool:
        """True if topics that the request lacks are to be deleted from the cache.

        A controller sends one such request after each start of a broker. A second one is the same
        request repeated, and may arrive after newer topics.
        """
        epochs = request.controller_epoch, request.broker_epoch
        return request.type == _FULL and epochs != self._full_in


def _stage_partitions(
    request: messages.UpdateMetadataRequest,
    version: int,
    staged: StagedUpdate,
    not_led_yet: Callable[[PartitionMetadata], PartitionMetadata],
    is_full: bool,
) -> Iterator[None]:
    """Stage the partitions of a request in `staged`, one in each step of the iterator.

    The caller may end its turn of the event loop between two steps.
    """
    partitions: dict[TopicPartition, PartitionMetadata | None] = {}
    for topic, state in _named_states(request, version):
        metadata = _partition_metadata(state)
        partitions[TopicPartition(topic, state.partition_index)] = (
            None if metadata is None else not_led_yet(metadata)
        )
        yield
    yield from staged.stage_all(partitions, is_full=is_full)


def _broker_node(
    broker: messages.UpdateMetadataRequest.UpdateMetadataBroker, version: int
) -> BrokerNode:
    """Return a live broker with its listeners; version 0 has one PLAINTEXT address."""
    if version < _WITH_ENDPOINTS:
        endpoints = [Endpoint(_PLAINTEXT, broker.v0_host, broker.v0_port)]
    else:
        endpoints = [
            Endpoint(row.listener or _PLAINTEXT, row.host, row.port, row.security_protocol)
            for row in broker.endpoints
        ]
    return BrokerNode(broker.id, tuple(endpoints), broker.rack)


def _named_states(
    request: messages.UpdateMetadataRequest, version: int
) -> Iterator[tuple[str, messages.UpdateMetadataRequest.UpdateMetadataPartitionState]]:
    """Yield pairs of topic and partition state from either form of the request."""
    if version < _BY_TOPIC:
        for state in request.ungrouped_partition_states:
            yield state.topic_name, state
        return
    for topic in request.topic_states:
        for state in topic.partition_states:
            yield topic.topic_name, state


def _partition_metadata(
    state: messages.UpdateMetadataRequest.UpdateMetadataPartitionState,
) -> PartitionMetadata | None:
    """Return a partition's metadata, or None if its topic is being deleted."""
    if state.leader == _LEADER_DURING_DELETE:
        return None
    return PartitionMetadata(
        state.leader,
        state.leader_epoch,
        tuple(state.isr),
        state.zk_version,
        tuple(state.replicas),
        tuple(state.offline_replicas),
        state.controller_epoch,
    )
