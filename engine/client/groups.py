"""Requests about groups: list them, describe their members, read their committed offsets.

Source: KIP-222, KIP-518, KIP-709; `kafka-consumer-groups`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.connection import Call, Response
from engine.client.errors import NoCommonVersion
from engine.client.every_broker import send_to_every_broker
from engine.errors import EngineError, api_error
from engine.kafka_errors import GROUP_ID_NOT_FOUND, NONE, UNSUPPORTED_VERSION
from engine.model import TopicPartition, by_topic
from engine.wire import messages
from engine.wire.schema import ENGINE_RELEASE
from engine.wire.structs import Message, message_class

#: The protocol type of consumers: only their assignments are partitions.
CONSUMER: Final = "consumer"
_LAST_VERSION_OF_ONE_GROUP: Final = 7
_FIRST_VERSION_OF_STABLE: Final = 7
_FIRST_VERSION_OF_STATES: Final = 4
_FIRST_VERSION_OF_TYPES: Final = 5


class GroupListing(NamedTuple):
    """A group as its coordinator lists it; `state` is None before 2.6, `group_type` before 3.8."""

    group_id: str
    protocol_type: str
    state: str | None
    group_type: str | None
    coordinator_id: int


class MemberView(NamedTuple):
    """A member of a group; `partitions` is None if its assignment is not that of a consumer.

    `client_host` is the address as the broker prints it: Java puts a slash before it.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    partitions: tuple[TopicPartition, ...] | None
    #: In the consumer protocol: the member's epoch, and its target assignment.
    member_epoch: int | None = None
    target_partitions: tuple[TopicPartition, ...] = ()


class GroupDescription(NamedTuple):
    """A group with its members; its state is Dead if no coordinator has the group.

    In a group of the consumer protocol (KIP-848) `protocol_name` is the assignor, and the epochs
    are those of the group and of its target assignment.
    """

    group_id: str
    state: str
    protocol_type: str
    protocol_name: str
    members: tuple[MemberView, ...]
    group_epoch: int | None = None
    assignment_epoch: int | None = None


class CommitView(NamedTuple):
    """A group's committed offset of a partition; the leader epoch is -1 if it is unknown."""

    offset: int
    leader_epoch: int
    metadata: str


def list_groups(
    client: KafkaClient, *, types: Sequence[str] = (), states: Sequence[str] = ()
) -> tuple[list[GroupListing], dict[int, EngineError]]:
    """Return the groups of all coordinators, and by broker id the errors of brokers without a list.

    Groups are ordered by broker, then as in its response. `types` and `states` filter on the
    broker; brokers before 3.8 and 2.6 lack these filters, which is their error.
    """
    lowest = _FIRST_VERSION_OF_TYPES if types else _FIRST_VERSION_OF_STATES if states else 0
    request = messages.ListGroupsRequest(types_filter=list(types), states_filter=list(states))
    responses, failures = send_to_every_broker(client, Call("ListGroups", request, lowest))
    groups = [
        listing
        for broker_id, message in responses.items()
        for listing in listings_of(message, broker_id)
    ]
    return groups, failures


def listings_of(message: messages.ListGroupsResponse, broker_id: int) -> list[GroupListing]:
    """Return the groups of a broker's response; empty for an error response."""
    return [_listed_group(row, broker_id) for row in message.groups]


def _listed_group(row: messages.ListGroupsResponse.ListedGroup, broker_id: int) -> GroupListing:
    """Return a listed group; state and type are None where the version lacks them."""
    return GroupListing(
        row.group_id,
        row.protocol_type,
        row.group_state or None,
        row.group_type or None,
        broker_id,
    )


def describe_group(
    client: KafkaClient, group_id: str, *, release: str = ENGINE_RELEASE
) -> GroupDescription:
    """Return a group's state and members, for a group of the classic or the consumer protocol.

    Raises ApiError if its coordinator returns an error. For an unknown group, brokers from 4.0 on
    return GROUP_ID_NOT_FOUND if `release` is 4.0 or later; in older versions its state is Dead.
    """
    response = client.send_to_coordinator(
        group_id,
        "DescribeGroups",
        message_class("DescribeGroupsRequest", release)(groups=[group_id]),
        retriable_code=lambda message: message.groups[0].error_code,
        release=release,
    )
    (row,) = response.message.groups
    if row.error_code == GROUP_ID_NOT_FOUND or row.group_state == "Dead":
        found = _describe_consumer_group(client, group_id)
        if found is not None:
            return found
    if row.error_code != NONE:
        raise api_error(row.error_code, getattr(row, "error_message", None))
    return classic_description(row)


def classic_description(row: messages.DescribeGroupsResponse.DescribedGroup) -> GroupDescription:
    """Convert a row of DescribeGroups: a group of the classic protocol."""
    is_consumer = row.protocol_type == CONSUMER
    return GroupDescription(
        row.group_id,
        row.group_state,
        row.protocol_type,
        row.protocol_data,
        tuple(
            MemberView(
                member.member_id,
                member.group_instance_id,
                member.client_id,
                member.client_host,
                _assigned_partitions(bytes(member.member_assignment)) if is_consumer else None,
            )
            for member in row.members
        ),
    )


def _assigned_partitions(content: bytes) -> tuple[TopicPartition, ...] | None:
    """Return the partitions in a member's encoded assignment, None if it cannot be decoded."""
    # Imported late: most described groups have no members.
    from engine.client.consumer_protocol import decode_assignment

    return decode_assignment(content)


def _describe_consumer_group(client: KafkaClient, group_id: str) -> GroupDescription | None:
    """Return the description of a group of the consumer protocol by ConsumerGroupDescribe.

    None if the group has another type, or if the broker lacks that API. Raises ApiError.
    """
    try:
        response = client.send_to_coordinator(
            group_id,
            "ConsumerGroupDescribe",
            messages.ConsumerGroupDescribeRequest(group_ids=[group_id]),
            retriable_code=lambda message: message.groups[0].error_code,
        )
    except NoCommonVersion:
        return None
    (row,) = response.message.groups
    if row.error_code in (GROUP_ID_NOT_FOUND, UNSUPPORTED_VERSION):
        return None
    if row.error_code != NONE:
        raise api_error(row.error_code, row.error_message)
    return consumer_description(row)


def consumer_description(
    row: messages.ConsumerGroupDescribeResponse.DescribedGroup,
) -> GroupDescription:
    """Convert a row of ConsumerGroupDescribe: a group of the consumer protocol (KIP-848)."""
    return GroupDescription(
        row.group_id,
        row.group_state,
        CONSUMER,
        row.assignor_name,
        tuple(
            MemberView(
                member.member_id,
                member.instance_id,
                member.client_id,
                member.client_host,
                _partitions_of(member.assignment),
                member.member_epoch,
                _partitions_of(member.target_assignment),
            )
            for member in row.members
        ),
        row.group_epoch,
        row.assignment_epoch,
    )


def _partitions_of(
    assignment: messages.ConsumerGroupDescribeResponse.Assignment,
) -> tuple[TopicPartition, ...]:
    """Return the partitions of an assignment of the consumer protocol, in its order."""
    return tuple(
        TopicPartition(topic.topic_name, partition)
        for topic in assignment.topic_partitions
        for partition in topic.partitions
    )


def committed_offsets(
    client: KafkaClient,
    group_id: str,
    partitions: Iterable[TopicPartition] | None = None,
    *,
    member: tuple[str, int] | None = None,
) -> dict[TopicPartition, int]:
    """Return a group's committed offsets, by partition.

    They are those of `request_commits`, without the commits' metadata. Raises ApiError.
    """
    found = request_commits(client, group_id, partitions, member=member)
    return {key: commit.offset for key, commit in found.items()}


def request_commits(
    client: KafkaClient,
    group_id: str,
    partitions: Iterable[TopicPartition] | None = None,
    *,
    member: tuple[str, int] | None = None,
) -> dict[TopicPartition, CommitView]:
    """Return a group's committed offsets, by partition: of the named partitions, or of all if None.

    For named partitions the broker waits for pending transactional offsets (KIP-447), so that a
    consumer that starts there reads nothing twice; brokers before 2.5 cannot wait. `member` is the
    id and epoch of a member of the consumer protocol: it is refused once the group has continued
    without it. Raises ApiError.
    """
    response: Response = client.send_to_coordinator(
        group_id,
        "OffsetFetch",
        commits_call(group_id, partitions, member=member).message,
        retriable_code=_fetched_code,
    )
    found = commits_of(response.message)
    if isinstance(found, EngineError):
        raise found
    return found


def commits_call(
    group_id: str,
    partitions: Iterable[TopicPartition] | None = None,
    *,
    member: tuple[str, int] | None = None,
) -> Call:
    """Return the OffsetFetch request that `request_commits` sends to the coordinator."""
    topics = None if partitions is None else by_topic(partitions)

    def request(version: int) -> messages.OffsetFetchRequest:
        """Build OffsetFetch: one group up to version 7, a list of groups from 8 on.

        Only versions from 7 on can wait for pending transactional offsets (require_stable).
        """
        of = messages.OffsetFetchRequest
        is_stable = topics is not None and version >= _FIRST_VERSION_OF_STABLE
        if version <= _LAST_VERSION_OF_ONE_GROUP:
            rows = _topic_rows(of.OffsetFetchRequestTopic, topics)
            return of(group_id=group_id, topics=rows, require_stable=is_stable)
        group = of.OffsetFetchRequestGroup
        rows = _topic_rows(of.OffsetFetchRequestTopics, topics)
        row = group(group_id=group_id, topics=rows)
        if member is not None:
            row.member_id, row.member_epoch = member
        return of(groups=[row], require_stable=is_stable)

    return Call("OffsetFetch", request)


def commits_of(
    message: messages.OffsetFetchResponse,
) -> dict[TopicPartition, CommitView] | EngineError:
    """Return the committed offsets in an OffsetFetch response by partition, or its error.

    Partitions without a commit (offset -1) are left out.
    """
    code = _fetched_code(message)
    if code != NONE:
        return api_error(code)
    fetched = _of_group(message)
    return {
        TopicPartition(topic.name, row.partition_index): CommitView(
            row.committed_offset, row.committed_leader_epoch, row.metadata or ""
        )
        for topic in fetched.topics
        for row in topic.partitions
        if row.committed_offset >= 0
    }


def _topic_rows(
    kind: Callable[..., Message], topics: Mapping[str, list[TopicPartition]] | None
) -> list[Message] | None:
    """Return the topic rows of an OffsetFetch request; None, for all topics, stays None."""
    if topics is None:
        return None
    return [
        kind(name=name, partition_indexes=[key.partition for key in keys])
        for name, keys in topics.items()
    ]


def _fetched_code(message: messages.OffsetFetchResponse) -> int:
    """Return the group's error code in an OffsetFetch response, else its first partition's."""
    fetched = _of_group(message)
    codes = (int(row.error_code) for topic in fetched.topics for row in topic.partitions)
    return int(fetched.error_code) or next((code for code in codes if code != NONE), NONE)


def _of_group(
    message: messages.OffsetFetchResponse,
) -> messages.OffsetFetchResponse | messages.OffsetFetchResponse.OffsetFetchResponseGroup:
    """Return the part of an OffsetFetch response that has the offsets of its only group.

    Before version 8 that is the response itself, later a row.
    """
    return message.groups[0] if message.groups else message
