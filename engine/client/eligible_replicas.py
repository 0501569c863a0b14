"""Eligible leader replicas of partitions (ELR), from KRaft brokers.

Source: KIP-966; KafkaAdminClient.describeTopics of 3.9.1.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.errors import NoCommonVersion
from engine.kafka_errors import NONE
from engine.model import TopicPartition
from engine.wire import messages

#: The largest number of partitions in one response; Kafka's admin client requests the same.
_PARTITIONS_PER_RESPONSE: Final = 2000


class EligibleReplicas(NamedTuple):
    """The eligible leader replicas of a partition, and its last known ELR (KIP-966).

    None if the brokers do not keep them.
    """

    eligible: tuple[int, ...] | None
    last_known: tuple[int, ...] | None


def describe_eligible_replicas(
    client: KafkaClient, topics: Collection[str]
) -> dict[TopicPartition, EligibleReplicas]:
    """Return the eligible leader replicas of topics' partitions; empty if no broker has them.

    Topics that do not exist, or may not be described, are left out.
    """
    request = messages.DescribeTopicPartitionsRequest
    found: dict[TopicPartition, EligibleReplicas] = {}
    names = sorted(topics)
    cursor: messages.DescribeTopicPartitionsResponse.Cursor | None = None
    while names:
        message = request(
            topics=[request.TopicRequest(name=name) for name in names],
            response_partition_limit=_PARTITIONS_PER_RESPONSE,
            cursor=None
            if cursor is None
            else request.Cursor(
                topic_name=cursor.topic_name, partition_index=cursor.partition_index
            ),
        )
        try:
            response: messages.DescribeTopicPartitionsResponse
            response = client.send("DescribeTopicPartitions", message).message
        except NoCommonVersion:
            return {}
        for topic in response.topics:
            if topic.error_code == NONE:
                for row in topic.partitions:
                    key = TopicPartition(topic.name or "", row.partition_index)
                    found[key] = EligibleReplicas(
                        _broker_ids(row.eligible_leader_replicas), _broker_ids(row.last_known_elr)
                    )
        cursor = response.next_cursor
        if cursor is None:
            return found
        names = [name for name in names if name >= cursor.topic_name]
    return found


def _broker_ids(broker_ids: list[int] | None) -> tuple[int, ...] | None:
    """Return broker ids, None for null from a broker that does not keep them."""
    return None if broker_ids is None else tuple(broker_ids)
