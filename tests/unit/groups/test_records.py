"""Records of groups and offsets are those that a coordinator of Kafka writes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine.groups.ports import GroupRecord
from engine.groups.records import (
    UnknownGroupRecord,
    build_group_record,
    build_offset_record,
    decode_group_record,
    group_tombstone,
    is_group,
    is_offset,
    parse_committed,
    parse_group,
)
from engine.model import TopicPartition
from engine.records.view import batches_in
from engine.wire import messages
from tests.golden_cases import GOLDEN

LOGS = sorted((GOLDEN / "groups" / "data").glob("__consumer_offsets-*/*.log"))


def records() -> Iterator[GroupRecord]:
    """Yield what a broker of 3.9.1 wrote."""
    for path in LOGS:
        for batch in batches_in(memoryview(path.read_bytes()), allow_partial_tail=False):
            for record in batch.records():
                assert record.key is not None
                yield GroupRecord(record.key, record.value)


def written_again(record: GroupRecord) -> GroupRecord:
    """Return the record that is written for what another one says."""
    decoded = decode_group_record(record)
    key, value = decoded.key, decoded.value
    if is_offset(decoded):
        partition = TopicPartition(key.topic, key.partition)
        return build_offset_record(
            key.group, partition, parse_committed(decoded) if value else None
        )
    assert is_group(decoded)
    if value is None:
        return group_tombstone(key.group)
    assert isinstance(value, messages.GroupMetadataValue)
    group = parse_group(key.group, value)
    return build_group_record(group, {m.member_id: m.assignment for m in group.members.values()})


def test_what_kafka_wrote_is_written_again_byte_for_byte() -> None:
    written = list(records())
    kinds = {(record.key[:2], record.value is None) for record in written}
    assert kinds >= {(b"\0\1", False), (b"\0\2", False)}
    assert written == [written_again(record) for record in written]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_members_of_old_records_rejoin_within_their_session(version: int) -> None:
    value = messages.GroupMetadataValue(
        protocol_type="consumer",
        protocol="range",
        members=[messages.GroupMetadataValue.MemberMetadata(session_timeout=9_000)],
    )
    if version:
        value.members[0].rebalance_timeout = 0
    (member,) = parse_group("g", value).members.values()
    assert (0 if version else 9_000) == member.timeouts.rebalance_timeout_ms


def test_members_without_a_protocol_are_no_group() -> None:
    value = messages.GroupMetadataValue(
        protocol_type="consumer",
        protocol=None,
        members=[messages.GroupMetadataValue.MemberMetadata(session_timeout=9_000)],
    )
    with pytest.raises(UnknownGroupRecord):
        parse_group("g", value)
    value.members.clear()
    assert "Empty" == parse_group("g", value).state.value
