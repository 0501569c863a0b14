"""Encode and decode groups and committed offsets as records of `__consumer_offsets`.

| record | key | value |
|---|---|---|
| committed offset | version 1: group, topic, partition | version 3; 1 with a retention |
| group | version 2: group | version 3 |
| deleted, expired | the same | null |

Source: GroupMetadataManager of 3.9.1; `formats.md` §7.
"""

from __future__ import annotations

from functools import lru_cache
from struct import Struct
from typing import Final

from engine.errors import EngineError, WireError
from engine.groups.group import Group
from engine.groups.group_offsets import CommittedOffset
from engine.groups.member import ClientOfMember, GroupMember, Protocol, Timeouts
from engine.groups.ports import GroupRecord
from engine.groups.states import GroupState
from engine.limits import COMMIT_HEADS_KEPT
from engine.model import TopicPartition
from engine.wire import messages
from engine.wire.coordinator_records import (
    CoordinatorRecord,
    decode_coordinator_record,
    encode_key,
    encode_value,
)
from engine.wire.fast_commit_bytes import encode_offset_value_fast

_OFFSET_TYPE, _GROUP_TYPE = 1, 2
_OFFSET_TYPES = (0, _OFFSET_TYPE)
_OFFSET_VALUE, _OFFSET_VALUE_WITH_EXPIRY = 3, 1
_GROUP_VALUE = 3
_NO_TIME = -1
_INDEX: Final = Struct(">i")
_index: Final = _INDEX.pack
#: Up to this length of metadata `encode_offset_value_fast` encodes the value.
_SHORT_METADATA_MAX: Final = 126


class UnknownGroupRecord(EngineError):
    """A record of `__consumer_offsets` is damaged, or of an unknown kind."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"a record of __consumer_offsets cannot be read: {reason}")
        self.reason = reason


def build_offset_record(
    group_id: str, partition: TopicPartition, committed: CommittedOffset | None
) -> GroupRecord:
    """Return the record of a partition's committed offset; a tombstone if `committed` is None."""
    key = _offset_key_start(group_id, partition.topic) + _index(partition.partition)
    if committed is None:
        return GroupRecord(key, None)
    offset, leader_epoch, metadata, commit_ms, expire_ms = committed
    if expire_ms is None and len(metadata) <= _SHORT_METADATA_MAX and metadata.isascii():
        return GroupRecord(key, encode_offset_value_fast(offset, leader_epoch, metadata, commit_ms))
    value = messages.OffsetCommitValue(offset=offset, metadata=metadata, commit_timestamp=commit_ms)
    version = _OFFSET_VALUE
    if expire_ms is None:
        value.leader_epoch = leader_epoch
    else:
        version = _OFFSET_VALUE_WITH_EXPIRY
        value.expire_timestamp = expire_ms
    return GroupRecord(key, encode_value(value, version))


@lru_cache(maxsize=COMMIT_HEADS_KEPT)
def _offset_key_start(group_id: str, topic: str) -> bytes:
    """Return the encoded key of an offset without the partition number at its end."""
    key = messages.OffsetCommitKey(group=group_id, topic=topic)
    return encode_key(key, _OFFSET_TYPE)[: -_INDEX.size]


def group_tombstone(group_id: str) -> GroupRecord:
    """Return the tombstone that removes a group from the log."""
    return GroupRecord(encode_key(messages.GroupMetadataKey(group=group_id), _GROUP_TYPE), None)


def build_group_record(group: Group, assignments: dict[str, bytes]) -> GroupRecord:
    """Return the record of a group's generation with its members and their `assignments` by id."""
    key = messages.GroupMetadataKey(group=group.group_id)
    name = group.protocol_name
    value = messages.GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation_id,
        protocol=name,
        leader=group.leader_id,
        current_state_timestamp=(
            _NO_TIME if group.state_timestamp_ms is None else group.state_timestamp_ms
        ),
        members=[
            messages.GroupMetadataValue.MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client.client_id,
                client_host=member.client.client_host,
                rebalance_timeout=member.timeouts.rebalance_timeout_ms,
                session_timeout=member.timeouts.session_timeout_ms,
                subscription=b"" if name is None else member.metadata(name),
                assignment=assignments.get(member.member_id, b""),
            )
            for member in group.members.values()
        ],
    )
    return GroupRecord(encode_key(key, _GROUP_TYPE), encode_value(value, _GROUP_VALUE))


def decode_group_record(record: GroupRecord) -> CoordinatorRecord:
    """Decode the key and value of a record of `__consumer_offsets`.

    Raises UnknownGroupRecord if its kind or version is unknown or its bytes are malformed.
    """
    try:
        return decode_coordinator_record("offsets", record.key, record.value, allows_more=True)
    except WireError as error:
        raise UnknownGroupRecord(str(error)) from error


def is_offset(record: CoordinatorRecord) -> bool:
    """Return True for the record of a committed offset or its tombstone."""
    return record.type in _OFFSET_TYPES


def is_group(record: CoordinatorRecord) -> bool:
    """Return True for the record of a group or its tombstone."""
    return record.type == _GROUP_TYPE


def parse_committed(record: CoordinatorRecord) -> CommittedOffset:
    """Return the committed offset of an offset record; asserts that it is no tombstone."""
    value = record.value
    assert value is not None, "a tombstone has no offset"
    assert isinstance(value, messages.OffsetCommitValue), value.message_name
    has_expiry = value.expire_timestamp != _NO_TIME
    return CommittedOffset(
        value.offset,
        value.leader_epoch,
        value.metadata,
        value.commit_timestamp,
        value.expire_timestamp if has_expiry else None,
    )


def parse_group(group_id: str, value: messages.GroupMetadataValue) -> Group:
    """Return the group of a record: Stable with members, Empty without.

    Raises UnknownGroupRecord if it has members and no protocol.
    """
    if value.members and value.protocol is None:
        raise UnknownGroupRecord(f"group {group_id} has members and no protocol")
    state = GroupState.STABLE if value.members else GroupState.EMPTY
    stamp = value.current_state_timestamp
    group = Group(group_id, None if stamp == _NO_TIME else stamp, state)
    group.generation_id = value.generation
    for stored in value.members:
        # Records of version 0 have no rebalance timeout: the session timeout serves as one.
        rebalance_ms = stored.rebalance_timeout
        protocols = (Protocol(value.protocol or "", stored.subscription),)
        member = GroupMember(
            stored.member_id,
            stored.group_instance_id,
            ClientOfMember(stored.client_id, stored.client_host),
            Timeouts(
                stored.session_timeout if rebalance_ms < 0 else rebalance_ms,
                stored.session_timeout,
            ),
            value.protocol_type,
            protocols,
        )
        member.assignment = stored.assignment
        group.add_member(member, None)
    group.protocol_type = value.protocol_type or None
    group.protocol_name = value.protocol
    group.leader_id = value.leader
    group.restore_subscriptions()
    return group
