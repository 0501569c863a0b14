"""Refuse fetches of partitions that cannot be read: one guard for consumers and followers.

Source: KafkaApis.handleFetchRequest, ReplicaManager.readFromLog; KIP-516.
"""

from __future__ import annotations

from engine.kafka_errors import INCONSISTENT_TOPIC_ID, NONE, UNKNOWN_TOPIC_OR_PARTITION
from engine.model import TopicPartition
from engine.replication.metadata_cache import MetadataCache
from engine.replication.partition import Partition


def fetch_refusal(
    topic_partition: TopicPartition,
    topic_id_text: str | None,
    metadata_cache: MetadataCache,
    here: Partition | None,
) -> int:
    """Return the error code of a partition that cannot be read, 0 if it can.

    `topic_id_text` is the requested id, None for a request by name; `here` is this broker's
    replica.
    """
    if not metadata_cache.is_known(topic_partition):
        return UNKNOWN_TOPIC_OR_PARTITION
    if (
        topic_id_text is not None
        and here is not None
        and here.log.topic_id not in (None, topic_id_text)
    ):
        return INCONSISTENT_TOPIC_ID
    return NONE
