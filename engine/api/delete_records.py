"""DeleteRecords (21): everything below an offset goes, on all live replicas.

| versions | difference |
|---|---|
| 0, 1 | |
| 2 | flexible |

−1 stands for the high watermark. Source: KafkaApis.handleDeleteRecordsRequest; KIP-107.
"""

from __future__ import annotations

from typing import Any

from engine.api.admission import AclOperation, AclResource, NotAuthorized
from engine.api.exchange import Exchange
from engine.errors import ApiError
from engine.host.promise import Promise
from engine.model import TopicPartition
from engine.replication.delayed_delete_records import DeleteRecordsResult
from engine.replication.errors import UnknownTopicOrPartition
from engine.replication.metadata_cache import MetadataCache
from engine.replication.replica_manager import ReplicaManager
from engine.wire.structs import message_class


class DeleteRecords:
    """Answers DeleteRecords."""

    def __init__(self, manager: ReplicaManager, metadata: MetadataCache) -> None:
        self._manager = manager
        self._metadata = metadata
        self._response = message_class("DeleteRecordsResponse")

    def handle(self, request: Any, exchange: Exchange) -> Any:
        """Raise the logs' starts; the answer comes when all live replicas followed, or too late."""
        offsets: dict[TopicPartition, int] = {}
        refused: dict[TopicPartition, DeleteRecordsResult] = {}
        for topic in request.topics:
            may_delete = exchange.session.may(AclOperation.DELETE, AclResource.TOPIC, topic.name)
            for asked in topic.partitions:
                topic_partition = TopicPartition(topic.name, asked.partition_index)
                error: ApiError
                if not may_delete:
                    error = NotAuthorized(AclResource.TOPIC)
                    refused[topic_partition] = DeleteRecordsResult(error)
                elif self._metadata.is_known(topic_partition):
                    offsets[topic_partition] = asked.offset
                else:
                    error = UnknownTopicOrPartition(topic_partition)
                    refused[topic_partition] = DeleteRecordsResult(error)
        deleted = self._manager.delete_records(offsets, request.timeout_ms)
        if isinstance(deleted, Promise):
            return deleted.then(lambda results: self._answer({**results, **refused}))
        return self._answer({**deleted, **refused})

    def _answer(self, results: dict[TopicPartition, DeleteRecordsResult]) -> Any:
        topics: dict[str, list[Any]] = {}
        for topic_partition, result in results.items():
            answer = self._response.DeleteRecordsPartitionResult(
                partition_index=topic_partition.partition,
                low_watermark=result.low_watermark,
                error_code=0 if result.error is None else result.error.code,
            )
            topics.setdefault(topic_partition.topic, []).append(answer)
        return self._response(
            topics=[
                self._response.DeleteRecordsTopicResult(name=name, partitions=partitions)
                for name, partitions in topics.items()
            ]
        )
