"""What responses to commits and deletions of offsets list, and in which order.

1. A topic that may not be read, or does not exist: all its partitions, also if there are none.
2. Of other topics the partitions that do not exist.
3. The partitions that the group's coordinator was asked about, each once.

A topic is listed once, where it is added first, however often a request has it.

Source: OffsetCommitResponse.Builder, TxnOffsetCommitResponse.Builder, OffsetDeleteResponse.Builder,
KafkaApis.handleOffsetCommitRequest of 3.9.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, TypeVar

from engine.api.admission import AclOperation, AclResource, Session
from engine.kafka_errors import TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION
from engine.model import TopicPartition
from engine.replication.metadata_cache import MetadataCache


class RequestedRow(Protocol):
    """A partition of a request."""

    partition_index: int


R = TypeVar("R", bound=RequestedRow)


class RequestedTopic(Protocol[R]):
    """A topic of a request."""

    name: str
    partitions: list[R]


class CommitResults:
    """The error code of each partition by its topic, in the order of the response."""

    def __init__(self) -> None:
        self.by_topic: dict[str, list[tuple[int, int]]] = {}

    def refuse(
        self, topics: Iterable[RequestedTopic[R]], session: Session, cache: MetadataCache
    ) -> list[tuple[TopicPartition, R]]:
        """Add what is not for the coordinator (1, 2); return the partitions that are."""
        left: list[tuple[TopicPartition, R]] = []
        for topic in topics:
            refusal = _topic_refusal(topic.name, session, cache)
            if refusal:
                self.by_topic.setdefault(topic.name, [])
            for row in topic.partitions:
                key = TopicPartition(topic.name, row.partition_index)
                if refusal:
                    self.add(key, refusal)
                elif not cache.is_known(key):
                    self.add(key, UNKNOWN_TOPIC_OR_PARTITION)
                else:
                    left.append((key, row))
        return left

    def add_all(self, codes: Mapping[TopicPartition, int]) -> None:
        """Add the results of the coordinator (3)."""
        for key, code in codes.items():
            self.add(key, code)

    def add(self, key: TopicPartition, code: int) -> None:
        """Add the result of a partition."""
        self.by_topic.setdefault(key.topic, []).append((key.partition, code))


def _topic_refusal(topic: str, session: Session, cache: MetadataCache) -> int:
    if not session.may(AclOperation.READ, AclResource.TOPIC, topic):
        return TOPIC_AUTHORIZATION_FAILED
    return 0 if topic in cache.topics else UNKNOWN_TOPIC_OR_PARTITION
