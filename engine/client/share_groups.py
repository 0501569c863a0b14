"""Describe share groups, and read, set and delete their start offsets.

| request | what it does | allowed for |
|---|---|---|
| ShareGroupDescribe | state, epochs, members | any share group |
| DescribeShareGroupOffsets | start offset and lag of each partition | any share group |
| AlterShareGroupOffsets | start offsets set | Empty or unknown groups |
| DeleteShareGroupOffsets | start offsets of whole topics removed | Empty groups |

Source: KIP-932, KIP-1226 (lag) as in 4.3.0.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.described_groups import request_description
from engine.errors import ApiError, api_error
from engine.kafka_errors import NONE
from engine.model import TopicPartition, by_topic
from engine.wire.schema import Release
from engine.wire.structs import Message, message_class

SHARE: Final = "share"
_RELEASE: Final[Release] = "4.3.0"


class ShareMember(NamedTuple):
    """A member of a share group, with the partitions that it reads."""

    member_id: str
    client_id: str
    client_host: str
    member_epoch: int
    partitions: tuple[TopicPartition, ...]


class ShareGroup(NamedTuple):
    """A share group with the epochs of the group and of its target assignment."""

    group_id: str
    state: str
    group_epoch: int
    assignment_epoch: int
    members: tuple[ShareMember, ...]


class ShareStart(NamedTuple):
    """The share-partition start offset of a group.

    Epoch and lag are None if the broker lacks them.
    """

    offset: int
    leader_epoch: int | None
    lag: int | None


def describe_share_group(client: KafkaClient, group_id: str) -> ShareGroup:
    """Return state, epochs and members of a share group.

    Raises ApiError GROUP_ID_NOT_FOUND, also for a group of another type, and NoCommonVersion.
    """
    row = request_description(client, "ShareGroupDescribe", group_id, _RELEASE)
    members = tuple(_group_member(member) for member in row.members)
    return ShareGroup(row.group_id, row.group_state, row.group_epoch, row.assignment_epoch, members)


def _group_member(row: Message) -> ShareMember:
    """Return a member of a share group with the partitions that it is assigned."""
    partitions = tuple(
        TopicPartition(topic.topic_name, partition)
        for topic in row.assignment.topic_partitions
        for partition in topic.partitions
    )
    return ShareMember(row.member_id, row.client_id, row.client_host, row.member_epoch, partitions)


def request_share_starts(
    client: KafkaClient, group_id: str
) -> dict[TopicPartition, ShareStart | None]:
    """Return each partition's share-partition start offset; None if none is stored yet.

    Partitions with an error are left out, as Kafka's client does. Raises ApiError.
    """
    kind = message_class("DescribeShareGroupOffsetsRequest", _RELEASE)
    group = kind.DescribeShareGroupOffsetsRequestGroup(group_id=group_id, topics=None)
    response = client.send_to_coordinator(
        group_id,
        "DescribeShareGroupOffsets",
        kind(groups=[group]),
        retriable_code=lambda message: message.groups[0].error_code,
        release=_RELEASE,
    )
    (found,) = response.message.groups
    if found.error_code != NONE:
        raise api_error(found.error_code, found.error_message)
    return {
        TopicPartition(topic.topic_name, row.partition_index): _share_start(row)
        for topic in found.topics
        for row in topic.partitions
        if row.error_code == NONE
    }


def _share_start(row: Message) -> ShareStart | None:
    """Return a partition's start offset from its row, with leader epoch and lag.

    None without one.
    """
    if row.start_offset < 0:
        return None
    epoch = row.leader_epoch if row.leader_epoch >= 0 else None
    return ShareStart(row.start_offset, epoch, row.lag if row.lag >= 0 else None)


def set_share_starts(
    client: KafkaClient, group_id: str, offsets: Mapping[TopicPartition, int]
) -> dict[TopicPartition, ApiError | None]:
    """Set the start offsets of a share group; return None or the error of each partition.

    An error of the group as a whole is reported for each partition.
    """
    kind = message_class("AlterShareGroupOffsetsRequest", _RELEASE)
    topics = [
        kind.AlterShareGroupOffsetsRequestTopic(
            topic_name=topic,
            partitions=[
                kind.AlterShareGroupOffsetsRequestPartition(
                    partition_index=partition.partition, start_offset=offsets[partition]
                )
                for partition in partitions
            ],
        )
        for topic, partitions in by_topic(offsets).items()
    ]
    response = client.send_to_coordinator(
        group_id,
        "AlterShareGroupOffsets",
        kind(group_id=group_id, topics=topics),
        retriable_code=lambda message: message.error_code,
        release=_RELEASE,
    ).message
    if response.error_code != NONE:
        error = api_error(response.error_code, response.error_message)
        return dict.fromkeys(offsets, error)
    return {
        TopicPartition(topic.topic_name, row.partition_index): _error_of(row)
        for topic in response.responses
        for row in topic.partitions
    }


def delete_share_starts(
    client: KafkaClient, group_id: str, topics: Collection[str]
) -> dict[str, ApiError | None]:
    """Delete a share group's start offsets of topics; return None or the error of each topic.

    Raises ApiError for the group as a whole, for instance GROUP_ID_NOT_FOUND or NON_EMPTY_GROUP.
    """
    kind = message_class("DeleteShareGroupOffsetsRequest", _RELEASE)
    rows = [kind.DeleteShareGroupOffsetsRequestTopic(topic_name=topic) for topic in topics]
    response = client.send_to_coordinator(
        group_id,
        "DeleteShareGroupOffsets",
        kind(group_id=group_id, topics=rows),
        retriable_code=lambda message: message.error_code,
        release=_RELEASE,
    ).message
    if response.error_code != NONE:
        raise api_error(response.error_code, response.error_message)
    return {row.topic_name: _error_of(row) for row in response.responses}


def _error_of(row: Message) -> ApiError | None:
    """Return the error in a response row, None without one."""
    return None if row.error_code == NONE else api_error(row.error_code, row.error_message)
