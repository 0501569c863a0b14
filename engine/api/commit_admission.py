"""Partitions that a commit of offsets may contain: the rule of OffsetCommit and TxnOffsetCommit.

| partition | result |
|---|---|
| of a topic that the client may not read | TOPIC_AUTHORIZATION_FAILED |
| that the metadata cache does not know | UNKNOWN_TOPIC_OR_PARTITION |
| any other | the group's coordinator gets its offset |

Source: KafkaApis.handleOffsetCommitRequest and handleTxnOffsetCommitRequest of 3.9.1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from engine.api.admission import AclOperation, AclResource, Session
from engine.api.commit_order import CommittedTopic, T
from engine.groups.group_offsets import CommittedOffset
from engine.groups.offset_commits import Codes
from engine.kafka_errors import TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION
from engine.model import TopicPartition
from engine.replication.metadata_cache import MetadataCache


class AdmittedOffsets(NamedTuple):
    """Offsets for the coordinator, codes of refused partitions, and topics refused as a whole."""

    offsets: dict[TopicPartition, CommittedOffset]
    refused: Codes
    refused_topics: set[str]


def admit_offsets(
    topics: Sequence[CommittedTopic[T]],
    session: Session,
    metadata_cache: MetadataCache,
    committed_of: Callable[[T], CommittedOffset],
) -> AdmittedOffsets:
    """Split a commit's partitions into offsets for the coordinator and refused ones with a code.

    A partition is refused if the client may not read its topic, or the metadata cache lacks it.
    `committed_of` converts a row of the request into the offset to store.
    """
    admitted = AdmittedOffsets({}, {}, set())
    for topic in topics:
        may_read = session.may(AclOperation.READ, AclResource.TOPIC, topic.name)
        if not may_read or topic.name not in metadata_cache.topics:
            admitted.refused_topics.add(topic.name)
        for row in topic.partitions:
            partition = TopicPartition(topic.name, row.partition_index)
            if not may_read:
                admitted.refused[partition] = TOPIC_AUTHORIZATION_FAILED
            elif not metadata_cache.is_known(partition):
                admitted.refused[partition] = UNKNOWN_TOPIC_OR_PARTITION
            else:
                admitted.offsets[partition] = committed_of(row)
    return admitted


def refuse_offsets(topics: Sequence[CommittedTopic[T]], code: int) -> AdmittedOffsets:
    """Return a result in which every partition is refused with `code`."""
    keys = (
        TopicPartition(topic.name, row.partition_index)
        for topic in topics
        for row in topic.partitions
    )
    return AdmittedOffsets({}, dict.fromkeys(keys, code), {topic.name for topic in topics})
