"""OffsetCommit of a member: the request, and what its response means."""

from __future__ import annotations

from collections.abc import Mapping

from engine.kafka_errors import NONE, UNKNOWN_TOPIC_OR_PARTITION
from engine.model import TopicPartition, by_topic
from engine.records.record_run import NO_EPOCH
from engine.wire import messages
from engine.wire.structs import Message


def commit_request(
    membership: messages.OffsetCommitRequest,
    offsets: Mapping[TopicPartition, int],
    leader_epochs: Mapping[TopicPartition, int] | None,
) -> messages.OffsetCommitRequest:
    """Return the request of a member, with offsets and the epochs of the last records."""
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
    """Return a commit's retriable error code; a deleted topic is no reason to retry.

    Source: ConsumerCoordinator.OffsetCommitResponseHandler of 3.9.1.
    """
    code = commit_code(message)
    return NONE if code == UNKNOWN_TOPIC_OR_PARTITION else code


def commit_code(message: Message) -> int:
    """Return the first error of a commit, that of a deleted topic last; NONE if there is none."""
    codes = [int(row.error_code) for topic in message.topics for row in topic.partitions]
    errors = [code for code in codes if code != NONE]
    of_commit = [code for code in errors if code != UNKNOWN_TOPIC_OR_PARTITION]
    return next(iter(of_commit or errors), NONE)
