"""OffsetCommit of a member: the request, and the errors in its response."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from engine.kafka_errors import NONE, TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION
from engine.model import TopicPartition, by_topic
from engine.records.record_run import NO_EPOCH
from engine.wire import messages
from engine.wire.structs import Message

_OF_PARTITIONS: Final = (TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION)


def commit_request(
    membership: messages.OffsetCommitRequest,
    offsets: Mapping[TopicPartition, int],
    leader_epochs: Mapping[TopicPartition, int] | None,
) -> messages.OffsetCommitRequest:
    """Add the offsets to commit to OffsetCommit `membership`, which names the group and member.

    `leader_epochs` are those of the last processed records; a partition without one gets -1.
    """
    of = messages.OffsetCommitRequest
    membership.topics = [
        of.OffsetCommitRequestTopic(
            name=topic,
            partitions=[
                of.OffsetCommitRequestPartition(
                    partition_index=key.partition,
                    committed_offset=offsets[key],
                    committed_leader_epoch=(leader_epochs or {}).get(key, NO_EPOCH),
                    committed_metadata="",
                )
                for key in partitions
            ],
        )
        for topic, partitions in by_topic(offsets).items()
    ]
    return membership


def code_to_repeat(message: Message) -> int:
    """Return the error code of an OffsetCommit response by which the request is repeated.

    It is NONE for a deleted topic: its code is retriable, but a retry does not help.

    Source: ConsumerCoordinator.OffsetCommitResponseHandler of 3.9.1.
    """
    code = decisive_commit_code(message)
    return NONE if code == UNKNOWN_TOPIC_OR_PARTITION else code


def decisive_commit_code(message: Message) -> int:
    """Return the error code by which an OffsetCommit response is handled; NONE without errors.

    An error of the whole group takes precedence over errors of single partitions, of which that of
    a deleted topic is the last: a broker returns the latter before it checks that it coordinates
    the group, and that the group does not rebalance.
    """
    codes = [int(row.error_code) for topic in message.topics for row in topic.partitions]
    return min((code for code in codes if code != NONE), key=_code_rank, default=NONE)


def _code_rank(code: int) -> int:
    """Return the rank of a code: the lowest decides; -1 for a code of the whole group."""
    return _OF_PARTITIONS.index(code) if code in _OF_PARTITIONS else -1
