"""OffsetForLeaderEpoch (23): where an epoch ended in the leader's log, to find where logs parted.

| versions | difference |
|---|---|
| 0 | end offsets alone |
| 1 | + the epoch that they belong to |
| 2 | + the epoch of the leader that is asked, to refuse who knows another |
| 3 | + replica id |
| 4 | flexible |

An epoch that the log does not know, nor one below it, answers −1 and −1.
Source: KafkaApis.handleOffsetForLeaderEpochRequest; KIP-101, KIP-279, KIP-320.
"""

from __future__ import annotations

from typing import Any

from engine.api.admission import AclOperation, AclResource, Session
from engine.api.exchange import Exchange
from engine.errors import ApiError, StorageError
from engine.kafka_errors import TOPIC_AUTHORIZATION_FAILED
from engine.model import TopicPartition
from engine.replication.replica_manager import ReplicaManager
from engine.wire.structs import message_class

_NO_EPOCH = -1


class OffsetForLeaderEpoch:
    """Answers OffsetForLeaderEpoch."""

    def __init__(self, manager: ReplicaManager) -> None:
        self._manager = manager
        self._response = message_class("OffsetForLeaderEpochResponse")

    def handle(self, request: Any, exchange: Exchange) -> Any:
        """Return the end of an epoch, or an error, for each partition."""
        return self._response(
            topics=[
                self._response.OffsetForLeaderTopicResult(
                    topic=topic.topic,
                    partitions=self._partitions(topic, exchange.session),
                )
                for topic in request.topics
            ]
        )

    def _partitions(self, topic: Any, session: Session) -> list[Any]:
        # Followers ask too, and consumers since KIP-320.
        if session.may_on_cluster(AclOperation.CLUSTER_ACTION) or session.may(
            AclOperation.DESCRIBE, AclResource.TOPIC, topic.topic
        ):
            return [self._look_up(topic.topic, asked) for asked in topic.partitions]
        return [
            self._response.EpochEndOffset(
                partition=asked.partition, error_code=TOPIC_AUTHORIZATION_FAILED
            )
            for asked in topic.partitions
        ]

    def _look_up(self, topic: str, asked: Any) -> Any:
        topic_partition = TopicPartition(topic, asked.partition)
        answer = self._response.EpochEndOffset(partition=asked.partition)
        current = asked.current_leader_epoch
        try:
            found = self._manager.find(topic_partition).end_offset_for_epoch(
                asked.leader_epoch, None if current == _NO_EPOCH else current
            )
        except (ApiError, StorageError) as failure:
            answer.error_code = self._manager.answer_to(topic_partition, failure).code
            return answer
        if found is not None:
            answer.leader_epoch = found.leader_epoch
            answer.end_offset = found.end_offset
        return answer
