"""DeleteRecords (21): delete the records below an offset on all live replicas.

| versions | difference |
|---|---|
| 0, 1 | |
| 2 | flexible |

−1 means the high watermark. Source: KafkaApis.handleDeleteRecordsRequest; KIP-107.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from engine.api.admission import AclOperation, AclResource, NotAuthorized
from engine.api.exchange import Exchange
from engine.hash_order import (
    by_topic_in_hash_order,
    partitions_in_hash_order,
    partitions_in_immutable_order,
)
from engine.host.promise import Promise
from engine.model import TopicPartition
from engine.replication.delayed_delete_records import DeleteRecordsResult
from engine.replication.errors import UnknownTopicOrPartition
from engine.replication.metadata_cache import MetadataCache
from engine.replication.replica_manager import ReplicaManager
from engine.wire import messages

_Results: TypeAlias = dict[TopicPartition, DeleteRecordsResult]


class DeleteRecords:
    """Answers DeleteRecords."""

    def __init__(self, replica_manager: ReplicaManager, metadata_cache: MetadataCache) -> None:
        self._replica_manager = replica_manager
        self._metadata_cache = metadata_cache

    def handle(
        self, request: messages.DeleteRecordsRequest, exchange: Exchange
    ) -> messages.DeleteRecordsResponse | Promise[messages.DeleteRecordsResponse]:
        """Raise the log start offsets of the named partitions.

        Returns or promise the low watermarks. It is a promise if live replicas have to raise theirs
        too. Unknown partitions, and those that the client may not delete from, get error codes.
        """
        offsets: dict[TopicPartition, int] = {}
        denied: _Results = {}
        unknown: _Results = {}
        for topic in request.topics:
            may_delete = exchange.session.may(AclOperation.DELETE, AclResource.TOPIC, topic.name)
            for partition in topic.partitions:
                key = TopicPartition(topic.name, partition.partition_index)
                if not may_delete:
                    denied[key] = DeleteRecordsResult(NotAuthorized(AclResource.TOPIC))
                elif self._metadata_cache.is_known(key):
                    offsets[key] = partition.offset
                else:
                    unknown[key] = DeleteRecordsResult(UnknownTopicOrPartition(key))
        if not offsets:
            # Only in this case Kafka has them in an immutable map, which decides the order.
            refused = [*partitions_in_hash_order(denied), *partitions_in_hash_order(unknown)]
            by_topic = by_topic_in_hash_order(refused, partitions_in_immutable_order)
            return _response_by_topic(denied | unknown, by_topic)
        deleted = self._replica_manager.delete_records(offsets, request.timeout_ms)
        if isinstance(deleted, Promise):
            return deleted.then(lambda results: self._response(results | denied | unknown))
        return self._response(deleted | denied | unknown)

    def _response(self, results: _Results) -> messages.DeleteRecordsResponse:
        """Return the response to a request of which at least one partition was not refused."""
        return _response_by_topic(results, by_topic_in_hash_order(results))


def _response_by_topic(
    results: _Results, by_topic: Mapping[str, Iterable[TopicPartition]]
) -> messages.DeleteRecordsResponse:
    """Return the response: the low watermark or error code of each partition, by topic."""
    response = messages.DeleteRecordsResponse
    return response(
        topics=[
            response.DeleteRecordsTopicResult(
                name=name,
                partitions=[
                    response.DeleteRecordsPartitionResult(
                        partition_index=key.partition,
                        low_watermark=results[key].low_watermark,
                        error_code=0 if (error := results[key].error) is None else error.code,
                    )
                    for key in partitions
                ],
            )
            for name, partitions in by_topic.items()
        ]
    )
