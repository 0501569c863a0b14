"""DescribeProducers (61): who wrote to a partition and may go on, as its log knows.

Any replica answers, not the leader alone.
Source: REPL-15; KafkaApis.handleDescribeProducersRequest; KIP-664.
"""

from __future__ import annotations

from typing import Any

from engine.api.admission import AclOperation, AclResource, NotAuthorized, Session
from engine.api.exchange import Exchange
from engine.errors import ApiError
from engine.log.local_log import LocalLog
from engine.model import TopicPartition
from engine.naming import InvalidTopicName, validate_topic
from engine.replication.errors import UnknownTopicOrPartition
from engine.replication.metadata_cache import MetadataCache
from engine.replication.replica_manager import ReplicaManager
from engine.wire.structs import message_class


class DescribeProducers:
    """Answers DescribeProducers."""

    def __init__(self, manager: ReplicaManager, metadata: MetadataCache) -> None:
        self._manager = manager
        self._metadata = metadata
        self._response = message_class("DescribeProducersResponse")

    def handle(self, request: Any, exchange: Exchange) -> Any:
        """Return the producers of each partition, or why not."""
        return self._response(
            topics=[
                self._response.TopicResponse(
                    name=topic.name,
                    partitions=[
                        self._describe(TopicPartition(topic.name, index), exchange.session)
                        for index in topic.partition_indexes
                    ],
                )
                for topic in request.topics
            ]
        )

    def _describe(self, topic_partition: TopicPartition, session: Session) -> Any:
        answer = self._response.PartitionResponse(partition_index=topic_partition.partition)
        try:
            validate_topic(topic_partition.topic)
            if not session.may(AclOperation.READ, AclResource.TOPIC, topic_partition.topic):
                raise NotAuthorized(AclResource.TOPIC)
            if topic_partition.topic not in self._metadata.topics:
                raise UnknownTopicOrPartition(topic_partition)
        except (InvalidTopicName, NotAuthorized, UnknownTopicOrPartition) as error:
            answer.error_code, answer.error_message = error.code, error.detail
            return answer
        try:
            log = self._manager.find(topic_partition).log
        except ApiError as error:
            answer.error_code = error.code
            return answer
        answer.active_producers = self._producers_of(log)
        return answer

    def _producers_of(self, log: LocalLog) -> list[Any]:
        return [
            self._response.ProducerState(
                producer_id=producer_id,
                producer_epoch=producer.epoch,
                last_sequence=producer.last_sequence,
                last_timestamp=producer.last_timestamp_ms,
                coordinator_epoch=producer.coordinator_epoch,
                current_txn_start_offset=producer.txn_first_offset,
            )
            for producer_id, producer in log.producers.producers.items()
        ]
