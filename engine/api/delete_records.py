"""DeleteRecords (21): delete the records below an offset on all live replicas.

| versions | difference |
|---|---|
| 0, 1 | |
| 2 | flexible |

−1 means the high watermark. Source: KafkaApis.handleDeleteRecordsRequest; KIP-107.
"""

from __future__ import annotations

from engine.api.admission import AclOperation, AclResource, NotAuthorized
from engine.api.exchange import Exchange
from engine.errors import ApiError
from engine.host.promise import Promise
from engine.model import TopicPartition
from engine.replication.delayed_delete_records import DeleteRecordsResult
from engine.replication.errors import UnknownTopicOrPartition
from engine.replication.metadata_cache import MetadataCache
from engine.replication.replica_manager import ReplicaManager
from engine.wire import messages


class DeleteRecords:
    """Answers DeleteRecords."""

    def __init__(self, replica_manager: ReplicaManager, metadata_cache: MetadataCache) -> None:
        self._replica_manager = replica_manager
        self._metadata_cache = metadata_cache

    def handle(
        self, request: messages.DeleteRecordsRequest, exchange: Exchange
    ) -> messages.DeleteRecordsResponse | Promise[messages.DeleteRecordsResponse]:
        """Raise the logs' starts; promises the response if live replicas have to follow."""
        offsets: dict[TopicPartition, int] = {}
        refused: dict[TopicPartition, DeleteRecordsResult] = {}
        for topic in request.topics:
            may_delete = exchange.session.may(AclOperation.DELETE, AclResource.TOPIC, topic.name)
            for partition in topic.partitions:
                topic_partition = TopicPartition(topic.name, partition.partition_index)
                error: ApiError
                if not may_delete:
                    error = NotAuthorized(AclResource.TOPIC)
                    refused[topic_partition] = DeleteRecordsResult(error)
                elif self._metadata_cache.is_known(topic_partition):
                    offsets[topic_partition] = partition.offset
                else:
                    error = UnknownTopicOrPartition(topic_partition)
                    refused[topic_partition] = DeleteRecordsResult(error)
        deleted = self._replica_manager.delete_records(offsets, request.timeout_ms)
        if isinstance(deleted, Promise):
            return deleted.then(lambda results: self._response({**results, **refused}))
        return self._response({**deleted, **refused})

    def _response(
        self, results: dict[TopicPartition, DeleteRecordsResult]
    ) -> messages.DeleteRecordsResponse:
        """Return the response: the low watermark or error code of each partition, by topic."""
        topics: dict[str, list[messages.DeleteRecordsResponse.DeleteRecordsPartitionResult]] = {}
        for topic_partition, result in results.items():
            partition = messages.DeleteRecordsResponse.DeleteRecordsPartitionResult(
                partition_index=topic_partition.partition,
                low_watermark=result.low_watermark,
                error_code=0 if result.error is None else result.error.code,
            )
            topics.setdefault(topic_partition.topic, []).append(partition)
        return messages.DeleteRecordsResponse(
            topics=[
                messages.DeleteRecordsResponse.DeleteRecordsTopicResult(
                    name=name, partitions=partitions
                )
                for name, partitions in topics.items()
            ]
        )
