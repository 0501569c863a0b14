"""DescribeProducers (61): the active producers in a partition's log.

Every replica answers, not only the leader.
Source: REPL-15; KafkaApis.handleDescribeProducersRequest; KIP-664.
"""

from __future__ import annotations

from engine.admin.topic_errors import TopicRefused
from engine.admin.topic_rules import check_name
from engine.api.admission import AclOperation, AclResource, NotAuthorized, Session
from engine.api.exchange import Exchange
from engine.errors import ApiError
from engine.hash_order import numbers_in_java_hash_order
from engine.kafka_errors import UNKNOWN_TOPIC_OR_PARTITION
from engine.log.local_log import LocalLog
from engine.model import TopicPartition
from engine.replication.metadata_cache import MetadataCache
from engine.replication.replica_manager import ReplicaManager
from engine.wire import messages

_NOT_HOSTED = "This server does not host this topic-partition."


class DescribeProducers:
    """Answers DescribeProducers."""

    def __init__(self, replica_manager: ReplicaManager, metadata_cache: MetadataCache) -> None:
        self._replica_manager = replica_manager
        self._metadata_cache = metadata_cache

    def handle(
        self, request: messages.DescribeProducersRequest, exchange: Exchange
    ) -> messages.DescribeProducersResponse:
        """Return the producers known to this broker's replica of each partition, or an error."""
        return messages.DescribeProducersResponse(
            topics=[
                messages.DescribeProducersResponse.TopicResponse(
                    name=topic.name,
                    partitions=[
                        self._describe(TopicPartition(topic.name, index), exchange.session)
                        for index in topic.partition_indexes
                    ],
                )
                for topic in request.topics
            ]
        )

    def _describe(
        self, topic_partition: TopicPartition, session: Session
    ) -> messages.DescribeProducersResponse.PartitionResponse:
        """Return the response row of one partition.

        It has the producers, or an error code and message.
        """
        partition = messages.DescribeProducersResponse.PartitionResponse(
            partition_index=topic_partition.partition
        )
        try:
            check_name(topic_partition.topic)
            if not session.may(AclOperation.READ, AclResource.TOPIC, topic_partition.topic):
                raise NotAuthorized(AclResource.TOPIC)
            if topic_partition.topic not in self._metadata_cache.topics:
                raise TopicRefused(UNKNOWN_TOPIC_OR_PARTITION, _NOT_HOSTED)
        except (TopicRefused, NotAuthorized) as error:
            partition.error_code, partition.error_message = error.code, error.detail
            return partition
        try:
            log = self._replica_manager.find(topic_partition).log
        except ApiError as error:
            partition.error_code = error.code
            return partition
        partition.active_producers = self._producer_rows(log)
        return partition

    def _producer_rows(
        self, log: LocalLog
    ) -> list[messages.DescribeProducersResponse.ProducerState]:
        """Return the producers of a log as response rows, in the order of Java's hash map."""
        producers = log.producers.producers
        return [
            messages.DescribeProducersResponse.ProducerState(
                producer_id=producer_id,
                producer_epoch=producer.epoch,
                last_sequence=producer.last_sequence,
                last_timestamp=producer.last_timestamp_ms,
                coordinator_epoch=producer.coordinator_epoch,
                current_txn_start_offset=producer.txn_first_offset,
            )
            for producer_id in numbers_in_java_hash_order(producers)
            for producer in (producers[producer_id],)
        ]
