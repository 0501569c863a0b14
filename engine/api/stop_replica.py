"""StopReplica (5), from the controller: stop replicas, and delete some of them.

| versions | form of the partitions |
|---|---|
| 0 | flat; one deletion flag for all |
| 1, 2 | by topic; one flag for all |
| 3, 4 | by topic, each with its leader epoch and flag |

A request for thousands takes several turns of the loop; the next request of the controller waits
(`Line`). If the controller is replaced meanwhile, the rest is refused; the deletions (renames) done
until then are still made durable.

Source: KafkaApis.handleStopReplicaRequest; PART-7; KIP-570.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from engine.api.exchange import Exchange
from engine.api.inter_broker import check_controller
from engine.api.promised import promised
from engine.errors import ApiError
from engine.host.promise import Promise
from engine.host.turns import Line, LoopTurns, Share
from engine.model import TopicPartition
from engine.replication.leadership import (
    NO_EPOCH,
    DeletedIn,
    Leadership,
    StopOrder,
)
from engine.wire import messages

_BY_TOPIC = 1
_BY_PARTITION = 3


class _Stopped(NamedTuple):
    """The results of the replicas stopped up to now, and the directories with deletions."""

    results: dict[TopicPartition, ApiError | None]
    deleted: DeletedIn


class StopReplica:
    """Stops replicas and answers with an error code per partition."""

    def __init__(
        self,
        leadership: Leadership,
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
        self._broker_epoch = broker_epoch

    def handle(
        self, request: messages.StopReplicaRequest, exchange: Exchange
    ) -> Promise[messages.StopReplicaResponse]:
        """Stop the replicas that a controller's request names; promise the error code of each."""
        return promised(self._carry_out(request, exchange))

    async def _carry_out(
        self, request: messages.StopReplicaRequest, exchange: Exchange
    ) -> messages.StopReplicaResponse:
        """Execute a StopReplica request, unless its controller is stale.

        Otherwise wait for the request's turn and stop the replicas.
        """
        # Before the line: so requests of an earlier controller, in the line, end at their next
        # turn.
        code = self._refusal(request)
        if code:
            return messages.StopReplicaResponse(error_code=code)
        place = await self._line.enter()
        try:
            return await self._carry_out_in_line(request, exchange)
        finally:
            self._line.leave(place)

    async def _carry_out_in_line(
        self, request: messages.StopReplicaRequest, exchange: Exchange
    ) -> messages.StopReplicaResponse:
        """Stop the replicas in turns of the event loop; return the response.

        Deletions are recorded even if a later step fails.
        """
        share = self._turns.begin()
        stopped = _Stopped({}, {})
        code, fault = 0, None
        try:
            code = await self._stop_all(request, exchange.api_version, share, stopped)
        except Exception as error:
            fault = error
        # Deletions are made durable even if the controller was replaced, or after a fault; but not
        # if the stop of the broker has ended the request, which is then dropped.
        for _ in self._leadership.note_deletions(stopped.deleted):
            if share.is_over():
                await share.next()
        stopped.results.update(self._leadership.failed_deletions(stopped.deleted))
        if fault is not None:
            raise fault
        if code:
            return messages.StopReplicaResponse(error_code=code)
        return await _build_response(stopped.results, share)

    async def _stop_all(
        self,
        request: messages.StopReplicaRequest,
        version: int,
        share: Share,
        stopped: _Stopped,
    ) -> int:
        """Stop replicas one by one, and delete those whose order requires it; fill `stopped`.

        Returns 0, or the error code that refuses the remaining ones: a new controller came.
        """
        code = self._refusal(request)
        for key, order in _parse_orders(request, version).items():
            if not code and share.is_over():
                await share.next()
                code = self._refusal(request)
            if code:
                break
            stopped.results[key] = self._leadership.stop_replica(key, order, stopped.deleted)
        return code

    def _refusal(self, request: messages.StopReplicaRequest) -> int:
        """Return the code that refuses a request with a stale epoch, else 0."""
        return check_controller(request, self._leadership, self._broker_epoch())


async def _build_response(
    results: dict[TopicPartition, ApiError | None], share: Share
) -> messages.StopReplicaResponse:
    """Return the response with the code of each partition, built in turns of the loop."""
    response = messages.StopReplicaResponse()
    for key, error in results.items():
        if share.is_over():
            await share.next()
        row = response.StopReplicaPartitionError(
            topic_name=key.topic,
            partition_index=key.partition,
            error_code=0 if error is None else error.code,
        )
        response.partition_errors.append(row)
    return response


def _parse_orders(
    request: messages.StopReplicaRequest, version: int
) -> dict[TopicPartition, StopOrder]:
    """Return the leader epoch and delete flag for each partition, from any version's layout."""
    if version >= _BY_PARTITION:
        return {
            TopicPartition(topic.topic_name, state.partition_index): StopOrder(
                state.leader_epoch, state.delete_partition
            )
            for topic in request.topic_states
            for state in topic.partition_states
        }
    order = StopOrder(NO_EPOCH, request.delete_partitions)
    if version >= _BY_TOPIC:
        named = [
            (topic.name, index) for topic in request.topics for index in topic.partition_indexes
        ]
    else:
        named = [(p.topic_name, p.partition_index) for p in request.ungrouped_partitions]
    return {TopicPartition(topic, index): order for topic, index in named}
