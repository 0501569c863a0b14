"""DescribeTopicPartitions: topics by name, page by page.

```
request: topics (none: all) · cursor (topic, partition) · limit
 └─ topics sorted, those before the cursor's left out
     └─ partitions from the cursor's on, until the limit ── more? ──> next cursor
```

A page ends inside a topic or before one; the next cursor is the start of the next page. Topics
that do not exist count as no partition.

Source: DescribeTopicPartitionsRequestHandler and KRaftMetadataCache of 3.9.1 (KIP-966).
Differs: Kafka serves it only without ZooKeeper. Eligible leaders outside the in-sync set exist
only there too: both lists of them are empty here, where tools print N/A for a cluster that does
not serve this.
"""

from __future__ import annotations

from collections.abc import Iterable

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
from engine.wire import messages
from engine.wire.layout import NO_UUID

_NO_LEADER = -1


class DescribeTopicPartitions:
    """Answers DescribeTopicPartitions from the metadata cache."""

    def __init__(
        self, metadata_cache: MetadataCache, partitions_max: int = DESCRIBED_PARTITIONS_MAX
    ) -> None:
        """Create the handler of DescribeTopicPartitions.

        `partitions_max` bounds a response (max.request.partition.size.limit).
        """
        self._metadata_cache = metadata_cache
        self._partitions_max = partitions_max

    def handle(
        self, request: messages.DescribeTopicPartitionsRequest, exchange: Exchange
    ) -> messages.DescribeTopicPartitionsResponse:
        """Return one page of topics and their partitions, sorted, from the request's cursor on.

        A request that names no topic asks for all that the client may describe.
        """
        cursor = request.cursor
        first = "" if cursor is None else cursor.topic_name
        are_all = not request.topics
        names = self._metadata_cache.topics if are_all else {topic.name for topic in request.topics}
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
            return messages.DescribeTopicPartitionsResponse()
        left = max(1, min(request.response_partition_limit, self._partitions_max))
        response = self._page(wanted, cursor, left, session)
        if not are_all and hidden:
            response.topics += self._refusal(hidden, TOPIC_AUTHORIZATION_FAILED).topics
        return response

    def _refusal(self, names: Iterable[str], code: int) -> messages.DescribeTopicPartitionsResponse:
        """Return a response that has the same error code for each topic, without partitions."""
        refused = messages.DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
        return messages.DescribeTopicPartitionsResponse(
            topics=[refused(error_code=code, name=name) for name in names]
        )

    def _page(
        self,
        names: list[str],
        cursor: messages.DescribeTopicPartitionsRequest.Cursor | None,
        left: int,
        session: Session,
    ) -> messages.DescribeTopicPartitionsResponse:
        """Return up to `left` partitions of topics, from the cursor on.

        The response has the next cursor if partitions remain.
        """
        response = messages.DescribeTopicPartitionsResponse()
        for name in names:
            if not left:
                response.next_cursor = messages.DescribeTopicPartitionsResponse.Cursor(
                    topic_name=name, partition_index=0
                )
                break
            topic = self._topic_row(name, session)
            response.topics.append(topic)
            partitions = self._metadata_cache.topics.get(name, {})
            start = cursor.partition_index if cursor and cursor.topic_name == name else 0
            indexes = sorted(index for index in partitions if index >= start)
            topic.partitions = [
                self._partition_row(index, partitions[index], session.listener)
                for index in indexes[:left]
            ]
            if len(indexes) > left:
                response.next_cursor = messages.DescribeTopicPartitionsResponse.Cursor(
                    topic_name=name, partition_index=indexes[left]
                )
                break
            left -= len(indexes)
        return response

    def _topic_row(
        self, name: str, session: Session
    ) -> messages.DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic:
        """Return the row of one topic, without partitions; an unknown name has an error code."""
        code = 0
        if name not in self._metadata_cache.topics:
            try:
                validate_topic(name)
                code = UNKNOWN_TOPIC_OR_PARTITION
            except InvalidTopicName:
                code = INVALID_TOPIC_EXCEPTION
        return messages.DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic(
            error_code=code,
            name=name,
            topic_id=self._metadata_cache.topic_ids.get(name, NO_UUID),
            is_internal=name in INTERNAL_TOPICS,
            topic_authorized_operations=session.operations_on(
                AclResource.TOPIC, name, ALL_TOPIC_OPERATIONS
            ),
        )

    def _partition_row(
        self, index: int, metadata: PartitionMetadata, listener: str
    ) -> messages.DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition:
        """Return the row of one partition; leader -1 if the listener does not reach the leader."""
        leader = self._metadata_cache.brokers.get(metadata.leader_id)
        is_reached = leader is not None and leader.endpoint(listener) is not None
        return messages.DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition(
            partition_index=index,
            leader_id=metadata.leader_id if is_reached else _NO_LEADER,
            leader_epoch=metadata.leader_epoch,
            replica_nodes=list(metadata.replicas),
            isr_nodes=list(metadata.isr),
            # The schema allows null, but Java's client fails at it.
            eligible_leader_replicas=[],
            last_known_elr=[],
            offline_replicas=list(metadata.offline_replicas),
        )
