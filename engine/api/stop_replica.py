"""StopReplica (5), from the controller: replicas that are to be used no more.

| versions | form of the partitions |
|---|---|
| 0 | flat; one deletion flag for all |
| 1, 2 | by topic; one flag for all |
| 3, 4 | by topic, each with its leader epoch and flag |

Source: KafkaApis.handleStopReplicaRequest; PART-7; KIP-570.
"""

from __future__ import annotations

from collections.abc import Callable

from engine.api.exchange import Exchange
from engine.api.inter_broker import refusal
from engine.api.promised import promised
from engine.host.promise import Promise
from engine.host.turns import Line
from engine.model import TopicPartition
from engine.replication.leadership import (
    NO_EPOCH,
    Leadership,
    StopOrder,
)
from engine.wire import messages

_BY_TOPIC = 1
_BY_PARTITION = 3


class StopReplica:
    """Stops replicas and answers with an error code per partition."""

    def __init__(self, leadership: Leadership, broker_epoch: Callable[[], int], line: Line) -> None:
        self._line = line
        self._leadership = leadership
        self._broker_epoch = broker_epoch

    def handle(
        self, request: messages.StopReplicaRequest, exchange: Exchange
    ) -> messages.StopReplicaResponse | Promise[messages.StopReplicaResponse]:
        """Carry out the order, or promise to when those before it are."""
        if self._line.is_busy:
            return promised(self._behind(request, exchange))
        return self._carried_out(request, exchange)

    async def _behind(
        self, request: messages.StopReplicaRequest, exchange: Exchange
    ) -> messages.StopReplicaResponse:
        # Before the line: orders of a controller that this one follows end at their next turn.
        code = self._refusal(request)
        if code:
            return messages.StopReplicaResponse(error_code=code)
        place = await self._line.enter()
        try:
            return self._carried_out(request, exchange)
        finally:
            self._line.leave(place)

    def _carried_out(
        self, request: messages.StopReplicaRequest, exchange: Exchange
    ) -> messages.StopReplicaResponse:
        """Return what became of each partition."""
        code = self._refusal(request)
        if code:
            return messages.StopReplicaResponse(error_code=code)
        results = self._leadership.stop(_orders(request, exchange.api_version))
        row = messages.StopReplicaResponse.StopReplicaPartitionError
        return messages.StopReplicaResponse(
            partition_errors=[
                row(
                    topic_name=key.topic,
                    partition_index=key.partition,
                    error_code=0 if error is None else error.code,
                )
                for key, error in results.items()
            ]
        )

    def _refusal(self, request: messages.StopReplicaRequest) -> int:
        return refusal(request, self._leadership, self._broker_epoch())


def _orders(request: messages.StopReplicaRequest, version: int) -> dict[TopicPartition, StopOrder]:
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
