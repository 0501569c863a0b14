"""Change groups without members: set and remove offsets, delete groups; and remove members.

| change | request | allowed for |
|---|---|---|
| offsets set | OffsetCommit without member and generation | Empty or unknown groups |
| offsets removed | OffsetDelete | topics that no member subscribes to |
| groups deleted | DeleteGroups | Empty groups |
| members removed | LeaveGroup | any group; members without an instance id rejoin |

Source: KIP-222, KIP-396, KIP-345, KIP-496.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from engine.client.blocking import KafkaClient
from engine.errors import EngineError, api_error
from engine.kafka_errors import (
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    NONE,
    NOT_COORDINATOR,
    UNKNOWN_SERVER_ERROR,
)
from engine.model import TopicPartition, by_topic
from engine.wire import messages
from engine.wire.structs import Message

_NO_GENERATION: Final = -1
_NOT_SERVED: Final = (NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS)
#: The first version of LeaveGroup that names several members.
_LEAVE_BATCH_VERSION: Final = 3

#: The error of each partition, None if it was changed.
PartitionResults = dict[TopicPartition, EngineError | None]


class MemberToRemove(NamedTuple):
    """A member to remove, by member id or by instance id; the other id is empty or None."""

    member_id: str
    group_instance_id: str | None = None


def set_offsets(
    client: KafkaClient, group_id: str, offsets: Mapping[TopicPartition, int]
) -> PartitionResults:
    """Commit offsets for a group without members; return None or the error for each partition.

    For a group with members the error of each partition is UNKNOWN_MEMBER_ID. Raises ApiError if no
    coordinator is found.
    """
    if not offsets:
        return {}
    request = messages.OffsetCommitRequest
    message = request(
        group_id=group_id,
        generation_id_or_member_epoch=_NO_GENERATION,
        member_id="",
        topics=[
            request.OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    request.OffsetCommitRequestPartition(
                        partition_index=partition.partition,
                        committed_offset=offsets[partition],
                        committed_metadata="",
                    )
                    for partition in partitions
                ],
            )
            for topic, partitions in by_topic(offsets).items()
        ],
    )
    response = client.send_to_coordinator(
        group_id, "OffsetCommit", message, retriable_code=_coordinator_code
    )
    return _partition_results(offsets, response.message)


def delete_offsets(
    client: KafkaClient, group_id: str, partitions: Collection[TopicPartition]
) -> PartitionResults:
    """Delete a group's committed offsets; return None or the error for each partition.

    Raises ApiError for the group as a whole, for instance GROUP_ID_NOT_FOUND or NON_EMPTY_GROUP.
    """
    request = messages.OffsetDeleteRequest
    message = request(
        group_id=group_id,
        topics=[
            request.OffsetDeleteRequestTopic(
                name=topic,
                partitions=[
                    request.OffsetDeleteRequestPartition(partition_index=partition.partition)
                    for partition in of_topic
                ],
            )
            for topic, of_topic in by_topic(partitions).items()
        ],
    )
    response = client.send_to_coordinator(
        group_id, "OffsetDelete", message, retriable_code=lambda answer: answer.error_code
    )
    if response.message.error_code != NONE:
        raise api_error(response.message.error_code)
    return _partition_results(partitions, response.message)


def delete_groups(client: KafkaClient, group_ids: Iterable[str]) -> dict[str, EngineError | None]:
    """Delete groups, each at its coordinator; return None or the error for each group id."""
    results: dict[str, EngineError | None] = {}
    for group_id in dict.fromkeys(group_ids):
        try:
            response = client.send_to_coordinator(
                group_id,
                "DeleteGroups",
                messages.DeleteGroupsRequest(groups_names=[group_id]),
                retriable_code=lambda answer: answer.results[0].error_code,
            )
            results[group_id] = _error_of(response.message.results[0].error_code)
        except EngineError as error:
            results[group_id] = error
    return results


def remove_members(
    client: KafkaClient, group_id: str, members: Collection[MemberToRemove]
) -> dict[MemberToRemove, EngineError | None]:
    """Remove members from a group; return None or the error for each member.

    Raises ApiError for the group as a whole; NoCommonVersion from brokers before 2.4.
    """
    identity = messages.LeaveGroupRequest.MemberIdentity
    message = messages.LeaveGroupRequest(
        group_id=group_id,
        members=[
            identity(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                reason="removed by an administrator",
            )
            for member in members
        ],
    )
    response = client.send_to_coordinator(
        group_id,
        "LeaveGroup",
        message,
        retriable_code=lambda answer: answer.error_code,
        lowest=_LEAVE_BATCH_VERSION,
    )
    if response.message.error_code != NONE:
        raise api_error(response.message.error_code)
    rows = response.message.members
    return {member: _error_of(row.error_code) for member, row in zip(members, rows, strict=True)}


def _coordinator_code(message: Message) -> int:
    """Return the error code for which to retry OffsetCommit.

    It means that the broker does not coordinate the group. Such a broker returns it for each
    partition that it has not refused before. NONE otherwise: codes of single partitions, for
    instance of an unknown topic, are results.

    Source: AlterConsumerGroupOffsetsHandler.
    """
    codes = {int(row.error_code) for topic in message.topics for row in topic.partitions}
    return next((code for code in _NOT_SERVED if code in codes), NONE)


def _partition_results(
    partitions: Iterable[TopicPartition],
    message: messages.OffsetCommitResponse | messages.OffsetDeleteResponse,
) -> PartitionResults:
    """Return None or an error for each requested partition; UNKNOWN_SERVER_ERROR without a row."""
    codes = {
        TopicPartition(topic.name, row.partition_index): row.error_code
        for topic in message.topics
        for row in topic.partitions
    }
    return {
        partition: _error_of(codes.get(partition, UNKNOWN_SERVER_ERROR)) for partition in partitions
    }


def _error_of(code: int) -> EngineError | None:
    """Return the error for a code, None for 0."""
    return None if code == NONE else api_error(code)
