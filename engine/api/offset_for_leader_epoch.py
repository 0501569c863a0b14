"""OffsetForLeaderEpoch (23): the end of an epoch in the leader's log, to find where logs diverge.

| versions | difference |
|---|---|
| 0 | end offsets alone |
| 1 | + the epoch that they belong to |
| 2 | + the leader epoch that the client knows, to refuse another one |
| 3 | + replica id |
| 4 | flexible |

An epoch that the log does not know, nor one below it, answers −1 and −1.
Source: KafkaApis.handleOffsetForLeaderEpochRequest; KIP-101, KIP-279, KIP-320.
"""

from __future__ import annotations

from engine.api.admission import UNLOGGED_DENIAL, AclOperation, AclResource, Session
from engine.api.exchange import Exchange
from engine.errors import ApiError, StorageError
from engine.kafka_errors import TOPIC_AUTHORIZATION_FAILED
from engine.model import TopicPartition
from engine.replication.replica_manager import ReplicaManager
from engine.wire import messages

_NO_EPOCH = -1


class OffsetForLeaderEpoch:
    """Answers OffsetForLeaderEpoch."""

    def __init__(self, replica_manager: ReplicaManager) -> None:
        self._replica_manager = replica_manager

    def handle(
        self, request: messages.OffsetForLeaderEpochRequest, exchange: Exchange
    ) -> messages.OffsetForLeaderEpochResponse:
        """Return at which offset the requested leader epoch ends in each partition, or an error
        code.

        Topics that are denied to the client come last.
        """
        allowed, denied = [], []
        for topic in request.topics:
            result = messages.OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult(
                topic=topic.topic
            )
            if _may_describe(exchange.session, topic.topic):
                result.partitions = [self._find(topic.topic, each) for each in topic.partitions]
                allowed.append(result)
            else:
                result.partitions = [
                    _denied_row(requested.partition) for requested in topic.partitions
                ]
                denied.append(result)
        return messages.OffsetForLeaderEpochResponse(topics=[*allowed, *denied])

    def _find(
        self, topic: str, requested: messages.OffsetForLeaderEpochRequest.OffsetForLeaderPartition
    ) -> messages.OffsetForLeaderEpochResponse.EpochEndOffset:
        """Return the row of one partition.

        It has the end offset (exclusive) of the epoch, or an error code.
        """
        topic_partition = TopicPartition(topic, requested.partition)
        row = messages.OffsetForLeaderEpochResponse.EpochEndOffset(partition=requested.partition)
        current = requested.current_leader_epoch
        try:
            end = self._replica_manager.find(topic_partition).end_offset_for_epoch(
                requested.leader_epoch, None if current == _NO_EPOCH else current
            )
        except (ApiError, StorageError) as failure:
            row.error_code = self._replica_manager.answer_to(topic_partition, failure).code
            return row
        if end is not None:
            row.leader_epoch = end.leader_epoch
            row.end_offset = end.end_offset
        return row


def _may_describe(session: Session, topic: str) -> bool:
    """Return True if a client may request epochs of a topic: as a follower, or by DESCRIBE."""
    return session.may_on_cluster(AclOperation.CLUSTER_ACTION, UNLOGGED_DENIAL) or session.may(
        AclOperation.DESCRIBE, AclResource.TOPIC, topic
    )


def _denied_row(partition: int) -> messages.OffsetForLeaderEpochResponse.EpochEndOffset:
    """Return the row of a partition whose topic is denied to the client."""
    return messages.OffsetForLeaderEpochResponse.EpochEndOffset(
        partition=partition, error_code=TOPIC_AUTHORIZATION_FAILED
    )
