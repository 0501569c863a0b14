"""Codecs against bytes drawn by hand, and what they refuse."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from engine.limits import WALKED_BYTES, WALKED_ROWS
from engine.wire.codec import MessageCodec, message_codec
from engine.wire.errors import (
    BadTag,
    BadUtf8,
    FieldNotInVersion,
    FrameTruncated,
    LengthOutOfBounds,
    MalformedMessage,
    NullNotAllowed,
    TrailingBytes,
    UnencodableValue,
    UnsupportedVersion,
    WireVarintTooLong,
)
from engine.wire.structs import message_class


def warmed(name: str, version: int, release: str = "3.9.1") -> MessageCodec:
    """Return a codec that has compiled both directions."""
    codec = MessageCodec(name, version, release)
    raw = codec.encode(message_class(name, release)())
    for _ in range(WALKED_BYTES // max(1, len(raw)) + 2):
        codec.encode(codec.decode(raw))
    return codec


TIERS = pytest.mark.parametrize("make", [MessageCodec, warmed], ids=["walked", "compiled"])


@TIERS
def test_classic_message(make: Any) -> None:
    cls = message_class("MetadataRequest")
    raw = bytes.fromhex("00000002 0001 61 0002 6263 01")
    message = cls(topics=[cls.MetadataRequestTopic(name=n) for n in ("a", "bc")])
    codec = make("MetadataRequest", 4, "3.9.1")
    assert raw == codec.encode(message)
    assert message == codec.decode(raw)


@TIERS
def test_flexible_message(make: Any) -> None:
    cls = message_class("MetadataRequest")
    uuid = bytes(range(16))
    raw = bytes.fromhex("02") + uuid + bytes.fromhex("00 00 01 00 00")
    message = cls(topics=[cls.MetadataRequestTopic(topic_id=uuid, name=None)])
    codec = make("MetadataRequest", 12, "3.9.1")
    assert raw == codec.encode(message)
    assert message == codec.decode(raw)


@TIERS
def test_null_and_empty_arrays_differ(make: Any) -> None:
    codec = make("MetadataRequest", 12, "3.9.1")
    assert codec.decode(bytes.fromhex("00 01 00 00")).topics is None
    assert [] == codec.decode(bytes.fromhex("01 01 00 00")).topics
    classic = make("MetadataRequest", 4, "3.9.1")
    assert classic.decode(bytes.fromhex("ffffffff 01")).topics is None


@TIERS
def test_tagged_fields_are_written_only_when_they_say_something(make: Any) -> None:
    cls = message_class("FetchRequest")
    codec = make("FetchRequest", 12, "3.9.1")
    plain = codec.encode(cls())
    named = codec.encode(cls(cluster_id="c1"))
    assert plain.endswith(b"\x00")
    assert plain[:-1] + bytes.fromhex("01 00 03 03") + b"c1" == named
    assert codec.decode(named).cluster_id == "c1"


@TIERS
def test_tagged_struct(make: Any) -> None:
    cls = message_class("ProduceResponse")
    codec = make("ProduceResponse", 10, "3.9.1")
    leader = cls.LeaderIdAndEpoch(leader_id=3, leader_epoch=4)
    part = cls.PartitionProduceResponse(current_leader=leader)
    message = cls(responses=[cls.TopicProduceResponse(partition_responses=[part])])
    raw = codec.encode(message)
    assert bytes.fromhex("01 00 09 00000003 00000004 00") in raw
    assert message == codec.decode(raw)


@TIERS
def test_nullable_struct_has_a_byte_before_it(make: Any) -> None:
    cls = message_class("ConsumerGroupHeartbeatResponse")
    codec = make("ConsumerGroupHeartbeatResponse", 0, "3.9.1")
    assert codec.encode(cls()).endswith(bytes.fromhex("ff 00"))
    full = cls(assignment=cls.Assignment())
    assert codec.encode(full).endswith(bytes.fromhex("01 01 00 00"))
    assert full == codec.decode(codec.encode(full))


@TIERS
def test_unknown_tags_are_passed_over(make: Any) -> None:
    codec = make("HeartbeatResponse", 4, "3.9.1")
    raw = bytes.fromhex("00000001 0002 02 07 03 616263 9001 00")
    assert codec.decode(raw) == message_class("HeartbeatResponse")(throttle_time_ms=1, error_code=2)


@TIERS
def test_records_are_a_view_of_what_was_decoded(make: Any) -> None:
    cls = message_class("ProduceRequest")
    part = cls.PartitionProduceData(records=b"batch")
    message = cls(topic_data=[cls.TopicProduceData(name="t", partition_data=[part])])
    for version in (3, 9):
        codec = make("ProduceRequest", version, "3.9.1")
        raw = codec.encode(message)
        records = codec.decode(raw).topic_data[0].partition_data[0].records
        assert records.obj is raw
        assert records == b"batch"


@TIERS
def test_any_buffer_is_decoded(make: Any) -> None:
    codec = make("HeartbeatResponse", 1, "3.9.1")
    raw = bytes.fromhex("00000001 0002")
    assert 1 == len({repr(codec.decode(kind(raw))) for kind in (bytes, bytearray, memoryview)})


def test_decoding_starts_at_a_position_and_returns_its_end() -> None:
    codec = message_codec("HeartbeatResponse", 1)
    message, end = codec.decode_at(b"??" + bytes.fromhex("00000001 0002") + b"!", 2)
    assert (2, 8) == (message.error_code, end)


@TIERS
def test_fields_of_other_versions_get_their_defaults(make: Any) -> None:
    message = make("FetchRequest", 0, "3.9.1").decode(
        bytes.fromhex("ffffffff 00000000 00000001 00000000")
    )
    assert message == message_class("FetchRequest")(min_bytes=1)


# -- what cannot be written


@TIERS
def test_field_that_the_version_lacks_is_refused(make: Any) -> None:
    cls = message_class("MetadataRequest")
    codec = make("MetadataRequest", 3, "3.9.1")
    with pytest.raises(FieldNotInVersion) as caught:
        codec.encode(cls(allow_auto_topic_creation=False))
    assert (caught.value.field, caught.value.version) == ("allowAutoTopicCreation", 3)


@TIERS
def test_ignorable_field_is_left_out(make: Any) -> None:
    cls = message_class("HeartbeatResponse")
    codec = make("HeartbeatResponse", 0, "3.9.1")
    assert bytes.fromhex("0005") == codec.encode(cls(throttle_time_ms=9, error_code=5))


@TIERS
@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"group_id": None}, "groupId"),
        ({"group_id": 5}, "groupId"),
        ({"group_id": "\ud800"}, "groupId"),
        ({"group_id": "x" * 32768}, "groupId"),
        ({"generation_id": 2**31}, "generationId"),
        ({"generation_id": "1"}, "generationId"),
    ],
)
@pytest.mark.parametrize("version", [3, 4])
def test_value_of_wrong_type_or_range_is_named(
    make: Any, version: int, fields: dict[str, object], place: str
) -> None:
    codec = make("HeartbeatRequest", version, "3.9.1")
    with pytest.raises(UnencodableValue) as caught:
        codec.encode(message_class("HeartbeatRequest")(**fields))
    assert place == caught.value.field


@TIERS
def test_array_must_be_a_list(make: Any) -> None:
    for version in (4, 12):
        with pytest.raises(UnencodableValue) as caught:
            make("MetadataRequest", version, "3.9.1").encode(
                message_class("MetadataRequest")(topics=5)
            )
        assert caught.value.field == "topics"


@TIERS
def test_path_leads_to_the_nested_field(make: Any) -> None:
    cls = message_class("MetadataRequest")
    topics = [cls.MetadataRequestTopic(topic_id=b"short")]
    with pytest.raises(UnencodableValue) as caught:
        make("MetadataRequest", 12, "3.9.1").encode(cls(topics=topics))
    assert caught.value.field == "topics.topicId"


@TIERS
def test_failed_append_leaves_the_buffer_as_it_was(make: Any) -> None:
    out = bytearray(b"before")
    cls = message_class("MetadataRequest")
    topics = [cls.MetadataRequestTopic(name="a"), cls.MetadataRequestTopic(name="b" * 40000)]
    with pytest.raises(UnencodableValue):
        make("MetadataRequest", 9, "3.9.1").append(cls(topics=topics), out)
    assert out == b"before"


def test_uuids_of_an_array_must_have_sixteen_bytes() -> None:
    group = message_class("ConsumerGroupHeartbeatRequest")
    parts = [group.TopicPartitions(topic_id=b"x" * 17)]
    with pytest.raises(UnencodableValue):
        message_codec("ConsumerGroupHeartbeatRequest", 0).encode(group(topic_partitions=parts))


def test_version_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UnsupportedVersion):
        message_codec("MetadataRequest", 99)


# -- bytes that are wrong

HOSTILE = [
    ("MetadataRequest", 12, "ffffffff0f", LengthOutOfBounds, "topics", 0),
    ("MetadataRequest", 12, "ffffffffff01", WireVarintTooLong, "topics", 0),
    ("MetadataRequest", 4, "7fffffff", LengthOutOfBounds, "topics", 0),
    ("MetadataResponse", 1, "fffffffe", LengthOutOfBounds, "brokers", 0),
    ("MetadataRequest", 4, "00000001 7fff", LengthOutOfBounds, "topics.name", 4),
    ("MetadataRequest", 4, "00000001 ffff", NullNotAllowed, "topics.name", 4),
    ("SyncGroupResponse", 5, "00000000 0000 02ff", BadUtf8, "protocolType", 6),
    ("MetadataRequest", 4, "000000", FrameTruncated, "topics", 0),
    ("MetadataRequest", 4, "ffffffff", FrameTruncated, "allowAutoTopicCreation", 4),
    ("MetadataRequest", 4, "ffffffff 01 00", TrailingBytes, "", 5),
    ("MetadataRequest", 12, "00 01 00 01 05 7f", LengthOutOfBounds, "", 4),
    ("MetadataRequest", 12, "00 01 00 ffffffff0f", FrameTruncated, "", 8),
    ("HeartbeatRequest", 4, "8080 02", LengthOutOfBounds, "groupId", 0),
    ("HeartbeatRequest", 4, "81808080 80", WireVarintTooLong, "groupId", 0),
    ("SyncGroupResponse", 3, "00000000 0000 fffffffe", LengthOutOfBounds, "assignment", 6),
    ("SyncGroupResponse", 3, "00000000 0000 ffffffff", NullNotAllowed, "assignment", 6),
    ("SyncGroupResponse", 3, "00000000 0000 00000009 00", LengthOutOfBounds, "assignment", 6),
    ("FetchResponse", 12, "00000000 0000 00000000 01 01 00 02 00 00", BadTag, "nodeEndpoints", 12),
    (
        "FetchRequest",
        12,
        "ffffffff" + "00" * 21 + "01 01 01 01 00 03 02 63 00",
        BadTag,
        "clusterId",
        29,
    ),
]


@TIERS
@pytest.mark.parametrize(("name", "version", "raw", "error", "field", "position"), HOSTILE)
def test_wrong_bytes_are_named_with_their_place(
    make: Any,
    name: str,
    version: int,
    raw: str,
    error: type[MalformedMessage],
    field: str,
    position: int,
) -> None:
    codec = make(name, version, "3.9.1")
    with pytest.raises(MalformedMessage) as caught:
        codec.decode(bytes.fromhex(raw))
    got = caught.value
    assert (error, name, field, position) == (type(got), got.message, got.field, got.position)


@TIERS
@pytest.mark.parametrize(
    ("name", "version", "raw"),
    [
        ("MetadataRequest", 12, "ffffffff0f"),
        ("MetadataRequest", 4, "7fffffff"),
        ("ProduceRequest", 9, "00 0000 00000000 ffffffff0f"),
        ("FetchRequest", 12, "ffffffff" + "00" * 21 + "ffffffff0f"),
        ("JoinGroupRequest", 0, "0000 7fffffff 0000 0000 7fffffff"),
        ("HeartbeatResponse", 4, "000000000000 ffffffff0f"),
    ],
)
def test_announced_lengths_take_no_memory(make: Any, name: str, version: int, raw: str) -> None:
    codec = make(name, version, "3.9.1")
    tracemalloc.start()
    try:
        with pytest.raises(MalformedMessage):
            codec.decode(bytes.fromhex(raw))
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@TIERS
def test_zero_in_several_bytes_is_still_null(make: Any) -> None:
    request = make("DescribeAclsRequest", 3, "3.9.1").decode(
        bytes.fromhex("01 8000 03 808000 00 01 01 00")
    )
    assert (request.resource_name_filter, request.principal_filter) == (None, None)
    fetch = make("PartitionChangeRecord", 0, "3.9.1").decode(
        bytes.fromhex("00000001" + "00" * 16 + "01 00 02 8000")
    )
    assert fetch.isr is None
    sync = make("EnvelopeRequest", 0, "3.9.1").decode(bytes.fromhex("01 8000 01 00"))
    assert sync.request_principal is None


# -- tiers


def test_codec_compiles_only_the_direction_in_use() -> None:
    codec = MessageCodec("HeartbeatResponse", 4, "3.9.1")
    message = message_class("HeartbeatResponse")()
    for _ in range(WALKED_BYTES):
        raw = codec.encode(message)
    assert codec.has_compiled == (False, True)
    for _ in range(WALKED_BYTES):
        codec.decode(raw)
    assert codec.has_compiled == (True, True)


@pytest.mark.parametrize(("row_count", "is_compiled"), [(WALKED_ROWS - 2, False), (10_000, True)])
def test_a_large_message_is_compiled_before_it_is_written_first(
    row_count: int, is_compiled: bool
) -> None:
    made = message_class("DescribeLogDirsResponse")
    topics = [made.DescribeLogDirsTopic() for _ in range(row_count)]
    message = made(results=[made.DescribeLogDirsResult(topics=topics)])
    codec = MessageCodec("DescribeLogDirsResponse", 4, "3.9.1")
    topics[-1].name = None
    with pytest.raises(UnencodableValue):
        codec.encode(message)
    assert (False, is_compiled) == codec.has_compiled
    topics[-1].name = "t"
    assert message == codec.decode(codec.encode(message))


def test_codecs_are_shared() -> None:
    assert message_codec("HeartbeatRequest", 4) is message_codec("HeartbeatRequest", 4)
    assert repr(message_codec("HeartbeatRequest", 4)) == "Codec(HeartbeatRequest v4 of 3.9.1)"


def test_requests_are_read_as_java_reads_them() -> None:
    codec = message_codec("MetadataRequest", 4)
    request = codec.decode(bytes.fromhex("00000001 0001 ff 00"))
    assert ["\ufffd"] == [topic.name for topic in request.topics]
    assert codec.decode(bytes.fromhex("fffffffe 00")).topics is None
