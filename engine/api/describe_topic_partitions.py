"""DescribeTopicPartitions: topics by name, page by page.

```
asked: topics (none: all) · cursor (topic, partition) · limit
 └─ topics sorted, those before the cursor's left out
     └─ partitions from the cursor's on, until the limit ── more? ──> next cursor
```

A page ends inside a topic or before one; the next cursor says where the next one begins. Topics
that are not there count nothing.

Source: DescribeTopicPartitionsRequestHandler and KRaftMetadataCache of 3.9.1 (KIP-966).
Differs: Kafka serves it only without ZooKeeper. Eligible leaders beside the in-sync set are kept
only there too: both lists of them are empty here, where tools print N/A for a cluster that does
not serve this.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from engine.api.admission import AclOperation, AclResource, Session
from engine.api.exchange import Exchange
from engine.api.metadata import ALL_TOPIC_OPERATIONS
from engine.kafka_errors import (
    INVALID_REQUEST,
    INVALID_TOPIC_EXCEPTION,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from engine.limits import DESCRIBED_PARTITIONS_MAX
from engine.naming import INTERNAL_TOPICS, InvalidTopicName, validate_topic
from engine.replication.metadata_cache import MetadataCache, PartitionMetadata
from engine.wire.layout import NO_UUID
from engine.wire.structs import message_class

_NO_LEADER = -1


class DescribeTopicPartitions:
    """Answers from the metadata cache."""

    def __init__(
        self, cache: MetadataCache, partitions_max: int = DESCRIBED_PARTITIONS_MAX
    ) -> None:
        self._cache = cache
        self._partitions_max = partitions_max
        self._response = message_class("DescribeTopicPartitionsResponse")

    def handle(self, request: Any, exchange: Exchange) -> Any:
        """Return one page."""
        cursor = request.cursor
        first = "" if cursor is None else cursor.topic_name
        are_all = not request.topics
        names = self._cache.topics if are_all else {topic.name for topic in request.topics}
        session = exchange.session
        hidden = [
            name
            for name in names
            if not session.may(AclOperation.DESCRIBE, AclResource.TOPIC, name)
        ]
        wanted = sorted(name for name in names if name >= first and name not in hidden)
        if cursor is not None and (
            cursor.partition_index < 0 or not (are_all or cursor.topic_name in names)
        ):
            return self._refusal((topic.name for topic in request.topics), INVALID_REQUEST)
        if are_all and not wanted:
            return self._response()
        left = max(1, min(request.response_partition_limit, self._partitions_max))
        reply = self._page(wanted, cursor, left, session)
        if not are_all and hidden:
            reply.topics += self._refusal(hidden, TOPIC_AUTHORIZATION_FAILED).topics
        return reply

    def _refusal(self, names: Iterable[str], code: int) -> Any:
        entry = self._response.DescribeTopicPartitionsResponseTopic
        return self._response(topics=[entry(error_code=code, name=name) for name in names])

    def _page(self, names: list[str], cursor: Any, left: int, session: Session) -> Any:
        reply = self._response()
        for name in names:
            if not left:
                reply.next_cursor = self._response.Cursor(topic_name=name, partition_index=0)
                break
            topic = self._topic(name, session)
            reply.topics.append(topic)
            known = self._cache.topics.get(name, {})
            start = cursor.partition_index if cursor and cursor.topic_name == name else 0
            indexes = sorted(index for index in known if index >= start)
            topic.partitions = [
                self._partition(index, known[index], session.listener) for index in indexes[:left]
            ]
            if len(indexes) > left:
                reply.next_cursor = self._response.Cursor(
                    topic_name=name, partition_index=indexes[left]
                )
                break
            left -= len(indexes)
        return reply

    def _topic(self, name: str, session: Session) -> Any:
        code = 0
        if name not in self._cache.topics:
            try:
                validate_topic(name)
                code = UNKNOWN_TOPIC_OR_PARTITION
            except InvalidTopicName:
                code = INVALID_TOPIC_EXCEPTION
        return self._response.DescribeTopicPartitionsResponseTopic(
            error_code=code,
            name=name,
            topic_id=self._cache.topic_ids.get(name, NO_UUID),
            is_internal=name in INTERNAL_TOPICS,
            topic_authorized_operations=session.operations_on(
                AclResource.TOPIC, name, ALL_TOPIC_OPERATIONS
            ),
        )

    def _partition(self, index: int, known: PartitionMetadata, listener: str) -> Any:
        leader = self._cache.brokers.get(known.leader_id)
        is_reached = leader is not None and leader.endpoint(listener) is not None
        return self._response.DescribeTopicPartitionsResponsePartition(
            partition_index=index,
            leader_id=known.leader_id if is_reached else _NO_LEADER,
            leader_epoch=known.leader_epoch,
            replica_nodes=list(known.replicas),
            isr_nodes=list(known.isr),
            # The schema allows null, but Java's client fails at it.
            eligible_leader_replicas=[],
            last_known_elr=[],
            offline_replicas=list(known.offline_replicas),
        )
