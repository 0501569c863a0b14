"""Requests for many groups at once to their coordinator, on brokers that support them.

| request | many groups |
|---|---|
| OffsetFetch | from version 8 (3.0) on |
| DescribeGroups | always |
| ConsumerGroupDescribe | always (groups of KIP-848) |

Source: KIP-709, KIP-848.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from engine.client.connection import Call
from engine.client.groups import (
    CommitView,
    GroupDescription,
    classic_description,
    consumer_description,
)
from engine.errors import EngineError, api_error
from engine.kafka_errors import NONE
from engine.model import TopicPartition
from engine.wire import messages

#: Brokers before it take one group in a request.
OFFSETS_OF_MANY: Final = 8


def commits_of_groups_call(group_ids: Sequence[str]) -> Call:
    """Return one OffsetFetch request for all committed offsets of several groups."""
    of = messages.OffsetFetchRequest
    rows = [of.OffsetFetchRequestGroup(group_id=group_id, topics=None) for group_id in group_ids]
    return Call("OffsetFetch", of(groups=rows), OFFSETS_OF_MANY)


def commits_of_groups(
    message: messages.OffsetFetchResponse,
) -> dict[str, dict[TopicPartition, CommitView] | EngineError]:
    """Return the committed offsets of each group in a response, or the group's error."""
    return {
        group.group_id: api_error(group.error_code)
        if group.error_code != NONE
        else {
            TopicPartition(topic.name, row.partition_index): CommitView(
                row.committed_offset, row.committed_leader_epoch, row.metadata or ""
            )
            for topic in group.topics
            for row in topic.partitions
            if row.committed_offset >= 0 and row.error_code == NONE
        }
        for group in message.groups
    }


def descriptions_call(group_ids: Sequence[str]) -> Call:
    """Return the request for groups of the classic protocol, with their members."""
    return Call("DescribeGroups", messages.DescribeGroupsRequest(groups=list(group_ids)))


def descriptions_of(
    message: messages.DescribeGroupsResponse,
) -> dict[str, GroupDescription | EngineError]:
    """Return the classic groups of a DescribeGroups response, by id.

    The error of a group it lacks.
    """
    return {
        row.group_id: classic_description(row)
        if row.error_code == NONE
        else api_error(row.error_code)
        for row in message.groups
    }


def consumer_descriptions_call(group_ids: Sequence[str]) -> Call:
    """Return the request for groups of the consumer protocol, with their members."""
    request = messages.ConsumerGroupDescribeRequest(group_ids=list(group_ids))
    return Call("ConsumerGroupDescribe", request)


def consumer_descriptions_of(
    message: messages.ConsumerGroupDescribeResponse,
) -> dict[str, GroupDescription | EngineError]:
    """Return the groups of a ConsumerGroupDescribe response, by id, or the error of a group."""
    return {
        row.group_id: consumer_description(row)
        if row.error_code == NONE
        else api_error(row.error_code, row.error_message)
        for row in message.groups
    }
