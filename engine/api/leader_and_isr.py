"""LeaderAndIsr (4), from the controller: which partitions this broker leads and follows.

| versions | form of the partitions, and of the response's |
|---|---|
| 0, 1 | one flat list |
| 2 … 4 | by topic; the response flat |
| 5 … 7 | by topic with its id, in both |

Each partition costs a few syncs of small files, so a request for thousands takes many turns of the
loop. Requests of the controller are still applied one after the other (`Line`); a request whose
controller is replaced while it waits is refused. The controller epoch is checked and stored when
the request arrives, and checked again when its turn comes.

Source: KafkaApis.handleLeaderAndIsrRequest; PART-3, PART-4; KIP-516 for the ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from engine.api.exchange import Exchange
from engine.api.inter_broker import check_controller
from engine.api.promised import promised
from engine.errors import ApiError, EngineError
from engine.hash_order import partitions_in_hash_order
from engine.host.coroutine import PromiseCoroutine
from engine.host.promise import Promise
from engine.host.turns import Line, LoopTurns, Share
from engine.ids import uuid_text
from engine.kafka_errors import UNKNOWN_SERVER_ERROR
from engine.limits import ROWS_PER_SHARE
from engine.model import TopicPartition
from engine.replication.leadership import Leadership
from engine.replication.partition_types import PartitionState
from engine.wire import messages
from engine.wire.layout import NO_UUID

_BY_TOPIC = 2
_BY_TOPIC_ID = 5


class LeaderAndIsr:
    """Applies leader and ISR states, and answers with an error code per partition.

    `load_topics` reads the settings of topics before their logs are opened.
    """

    def __init__(
        self,
        leadership: Leadership,
        broker_epoch: Callable[[], int],
        load_topics: Callable[[Iterable[str]], PromiseCoroutine[None]],
        turns: LoopTurns,
        line: Line,
    ) -> None:
        """Create the handler; `line` orders the controller's requests of all APIs.

        `broker_epoch` returns the epoch of this broker's registration. `load_topics` reads settings
        of topics from the store before their first replica is created.
        """
        self._leadership = leadership
        self._turns = turns
        self._line = line
        self._broker_epoch = broker_epoch
        self._load_topics = load_topics

    def handle(
        self, request: messages.LeaderAndIsrRequest, exchange: Exchange
    ) -> Promise[messages.LeaderAndIsrResponse]:
        """Apply the leader and ISR states of a controller's request.

        Promises each partition's code.
        """
        return promised(self._apply(request, exchange))

    async def _apply(
        self, request: messages.LeaderAndIsrRequest, exchange: Exchange
    ) -> messages.LeaderAndIsrResponse:
        """Refuse a stale controller; else wait for the request's turn in the line and apply it."""
        # Before the line: so requests of an earlier controller, in the line, end at their next
        # turn.
        code = self._refusal(request)
        if code:
            return messages.LeaderAndIsrResponse(error_code=code)
        place = await self._line.enter()
        try:
            return await self._apply_in_line(request, exchange)
        finally:
            self._line.leave(place)

    async def _apply_in_line(
        self, request: messages.LeaderAndIsrRequest, exchange: Exchange
    ) -> messages.LeaderAndIsrResponse:
        """Apply the leader and ISR states one by one, in turns of the event loop.

        Returns the response. A request with a stale controller epoch or broker epoch is refused,
        even if the epoch becomes stale between two turns.
        """
        code = self._refusal(request)
        if code:
            return messages.LeaderAndIsrResponse(error_code=code)
        share = self._turns.begin()
        states, new = await _parse_states(request, exchange.api_version, share)
        unknown = sorted(await self._topics_without_replica(states, share))
        try:
            for start in range(0, len(unknown), ROWS_PER_SHARE):
                if share.is_over():
                    await share.next()
                await self._load_topics(unknown[start : start + ROWS_PER_SHARE])
        except EngineError:
            # The store does not answer: the controller sends everything again after its session is
            # renewed.
            return messages.LeaderAndIsrResponse(error_code=UNKNOWN_SERVER_ERROR)
        ids = {topic.topic_name: topic.topic_id for topic in request.topic_states}
        results: dict[TopicPartition, ApiError | None] = {}
        # Another controller may have followed meanwhile, or this broker have begun a new life.
        code = self._refusal(request)
        for key in self._order_of_logs(states):
            if not code and share.is_over():
                await share.next()
                code = self._refusal(request)
            if code:
                return messages.LeaderAndIsrResponse(error_code=code)
            topic_id = ids.get(key.topic, NO_UUID)
            results[key] = self._leadership.apply_state(
                key,
                states[key],
                is_new=key in new,
                topic_id=None if topic_id == NO_UUID else uuid_text(topic_id),
            )
        if code:
            return messages.LeaderAndIsrResponse(error_code=code)
        self._leadership.is_informed = True
        results = {key: results[key] for key in states}
        return await _build_response(request, results, exchange.api_version, share)

    def _order_of_logs(
        self, states: Mapping[TopicPartition, PartitionState]
    ) -> Iterable[TopicPartition]:
        """Return the partitions in the order in which Kafka creates their logs.

        The order matters: each new log is placed in the directory with the fewest logs at that
        time.
        Source: ReplicaManager.becomeLeaderOrFollower, which leads first; two hash maps.
        """
        if len(states) < 2:
            return states
        led = self._leadership.broker_id
        ordered = partitions_in_hash_order(states, are_hosted=True)
        return sorted(ordered, key=lambda key: states[key].leader_id != led)

    async def _topics_without_replica(
        self, keys: Iterable[TopicPartition], share: Share
    ) -> set[str]:
        """Return the topics with a partition of which this broker has no replica yet."""
        unknown: set[str] = set()
        for key in keys:
            if share.is_over():
                await share.next()
            if not self._leadership.hosts_online(key):
                unknown.add(key.topic)
        return unknown

    def _refusal(self, request: messages.LeaderAndIsrRequest) -> int:
        """Return the code that refuses a request with a stale epoch, else 0."""
        return check_controller(request, self._leadership, self._broker_epoch())


async def _build_response(
    request: messages.LeaderAndIsrRequest,
    results: dict[TopicPartition, ApiError | None],
    version: int,
    share: Share,
) -> messages.LeaderAndIsrResponse:
    """Return the response with the code of each partition, by topic id since version 5."""
    response = messages.LeaderAndIsrResponse()
    row = response.LeaderAndIsrPartitionError
    if version < _BY_TOPIC_ID:
        for key, error in results.items():
            if share.is_over():
                await share.next()
            code = 0 if error is None else error.code
            response.partition_errors.append(
                row(topic_name=key.topic, partition_index=key.partition, error_code=code)
            )
        return response
    for topic in request.topic_states:
        if share.is_over():
            await share.next()
        errors = []
        for state in topic.partition_states:
            error = results[TopicPartition(topic.topic_name, state.partition_index)]
            code = 0 if error is None else error.code
            errors.append(row(partition_index=state.partition_index, error_code=code))
        response.topics.append(
            response.LeaderAndIsrTopicError(topic_id=topic.topic_id, partition_errors=errors)
        )
    return response


async def _parse_states(
    request: messages.LeaderAndIsrRequest, version: int, share: Share
) -> tuple[dict[TopicPartition, PartitionState], frozenset[TopicPartition]]:
    """Return the state of each partition in a request, and the partitions flagged as new."""
    states: dict[TopicPartition, PartitionState] = {}
    new: set[TopicPartition] = set()
    for topic, state in _named_states(request, version):
        if share.is_over():
            await share.next()
        key = TopicPartition(topic, state.partition_index)
        states[key] = PartitionState(
            state.leader,
            state.leader_epoch,
            tuple(state.isr),
            state.partition_epoch,
            tuple(state.replicas),
            tuple(state.adding_replicas),
            tuple(state.removing_replicas),
        )
        if state.is_new:
            new.add(key)
    return states, frozenset(new)


def _named_states(
    request: messages.LeaderAndIsrRequest, version: int
) -> list[tuple[str, messages.LeaderAndIsrRequest.LeaderAndIsrPartitionState]]:
    """Return (topic, partition state) from the flat or the by-topic form of the request."""
    if version < _BY_TOPIC:
        return [(state.topic_name, state) for state in request.ungrouped_partition_states]
    return [
        (topic.topic_name, state)
        for topic in request.topic_states
        for state in topic.partition_states
    ]
