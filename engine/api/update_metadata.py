"""UpdateMetadata (6), from the controller: who is up, who leads what.

| versions | form |
|---|---|
| 0 | brokers with one address; partitions in one flat list |
| 1 … 4 | brokers with an endpoint for each listener |
| 5, 6 | partitions by topic; + the broker's epoch |
| 7, 8 | + topic ids |

Source: KafkaApis.handleUpdateMetadataRequest, ZkMetadataCache; PART-12.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.api.exchange import Exchange
from engine.api.inter_broker import refusal
from engine.model import TopicPartition
from engine.replication.leadership import Leadership
from engine.replication.metadata_cache import (
    BrokerNode,
    Endpoint,
    MetadataCache,
    PartitionMetadata,
)
from engine.wire.layout import NO_UUID
from engine.wire.structs import message_class

_BY_TOPIC = 5
_WITH_ENDPOINTS = 1
_PLAINTEXT = "PLAINTEXT"
_NO_CONTROLLER = -1
#: What stands for the leader while the topic is being deleted.
_LEADER_DURING_DELETE = -2


class UpdateMetadata:
    """Puts what the controller says into the metadata cache."""

    def __init__(
        self, leadership: Leadership, cache: MetadataCache, broker_epoch: Callable[[], int]
    ) -> None:
        self._leadership = leadership
        self._cache = cache
        self._broker_epoch = broker_epoch
        self._response = message_class("UpdateMetadataResponse")

    def handle(self, request: Any, exchange: Exchange) -> Any:
        """Return an error code, 0 when the cache has it."""
        code = refusal(request, self._leadership, self._broker_epoch())
        if code:
            return self._response(error_code=code)
        controller_id = request.controller_id
        self._cache.update(
            None if controller_id == _NO_CONTROLLER else controller_id,
            [_node(broker, exchange.api_version) for broker in request.live_brokers],
            _partitions(request, exchange.api_version),
            {
                topic.topic_name: topic.topic_id
                for topic in request.topic_states
                if topic.topic_id != NO_UUID
            },
        )
        return self._response()


def _node(broker: Any, version: int) -> BrokerNode:
    if version < _WITH_ENDPOINTS:
        endpoints = [Endpoint(_PLAINTEXT, broker.v0_host, broker.v0_port)]
    else:
        endpoints = [
            Endpoint(each.listener or _PLAINTEXT, each.host, each.port, each.security_protocol)
            for each in broker.endpoints
        ]
    return BrokerNode(broker.id, tuple(endpoints), broker.rack)


def _partitions(request: Any, version: int) -> dict[TopicPartition, PartitionMetadata | None]:
    if version >= _BY_TOPIC:
        found = [
            (topic.topic_name, each)
            for topic in request.topic_states
            for each in topic.partition_states
        ]
    else:
        found = [(each.topic_name, each) for each in request.ungrouped_partition_states]
    return {TopicPartition(topic, each.partition_index): _partition(each) for topic, each in found}


def _partition(entry: Any) -> PartitionMetadata | None:
    if entry.leader == _LEADER_DURING_DELETE:
        return None
    return PartitionMetadata(
        entry.leader,
        entry.leader_epoch,
        tuple(entry.isr),
        entry.zk_version,
        tuple(entry.replicas),
        tuple(entry.offline_replicas),
        entry.controller_epoch,
    )
