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
from typing import Any

from engine.api.exchange import Exchange
from engine.api.inter_broker import refusal
from engine.model import TopicPartition
from engine.replication.leadership import (
    NO_EPOCH,
    Leadership,
    StopOrder,
)
from engine.wire.structs import message_class

_BY_TOPIC = 1
_BY_PARTITION = 3


class StopReplica:
    """Stops replicas and answers with an error code per partition."""

    def __init__(self, leadership: Leadership, broker_epoch: Callable[[], int]) -> None:
        self._leadership = leadership
        self._broker_epoch = broker_epoch
        self._response = message_class("StopReplicaResponse")

    def handle(self, request: Any, exchange: Exchange) -> Any:
        """Return what became of each partition."""
        code = refusal(request, self._leadership, self._broker_epoch())
        if code:
            return self._response(error_code=code)
        results = self._leadership.stop(_orders(request, exchange.api_version))
        entry = self._response.StopReplicaPartitionError
        return self._response(
            partition_errors=[
                entry(
                    topic_name=key.topic,
                    partition_index=key.partition,
                    error_code=0 if error is None else error.code,
                )
                for key, error in results.items()
            ]
        )


def _orders(request: Any, version: int) -> dict[TopicPartition, StopOrder]:
    if version >= _BY_PARTITION:
        return {
            TopicPartition(topic.topic_name, each.partition_index): StopOrder(
                each.leader_epoch, each.delete_partition
            )
            for topic in request.topic_states
            for each in topic.partition_states
        }
    order = StopOrder(NO_EPOCH, request.delete_partitions)
    if version >= _BY_TOPIC:
        named = [
            (topic.name, index) for topic in request.topics for index in topic.partition_indexes
        ]
    else:
        named = [(each.topic_name, each.partition_index) for each in request.ungrouped_partitions]
    return {TopicPartition(topic, index): order for topic, index in named}
