"""Requests and records of commits that are read by hand, and those that are not."""

from __future__ import annotations

import struct

import pytest

from engine.groups.group import Group
from engine.groups.group_offsets import CommittedOffset
from engine.groups.records import build_group_record, build_offset_record, group_tombstone
from engine.model import TopicPartition
from engine.wire.codec import message_codec
from engine.wire.fast_commit_bytes import (
    INDEX_BYTES,
    CommitRequest,
    encode_offset_value_fast,
    parse_offset_key,
    read_commit_fast,
    read_offset_value_fast,
)
from engine.wire.headers import read_request_header

_FIRST_INDEX = struct.pack(">i", 0)
_NO_GENERATION = struct.pack(">i", -1)
_NO_MEMBER = b"\1\0"


def commit_of(offset: int) -> bytes:
    """Return offset, leader epoch and empty metadata."""
    return struct.pack(">qiB", offset, 0, 1)


def frame_of(*, client_id: bytes = b"app", tags: bytes = b"\0", body: bytes) -> bytes:
    """Return a request of version 9."""
    return struct.pack(">hhih", 8, 9, 77, len(client_id)) + client_id + tags + body


def read(frame: bytes) -> CommitRequest | None:
    """Read a frame by hand."""
    return read_commit_fast(memoryview(frame))


def offset_of(frame: bytes) -> int:
    """Return the offset that the table codec reads."""
    *_, position = read_request_header(frame)
    request = message_codec("OffsetCommitRequest", 9).decode(memoryview(frame)[position:])
    offset: int = request.topics[0].partitions[0].committed_offset
    return offset


def body_of(commit: bytes) -> bytes:
    """Return the body of a commit of group g for t-0, without the counts of tags."""
    return b"\2g" + _NO_GENERATION + _NO_MEMBER + b"\2\2t\2" + _FIRST_INDEX + commit


def test_a_header_with_tags_is_not_read_as_the_beginning_of_a_body() -> None:
    # Number and size of the tag are a group's id to one who does not know of tags, its content is
    # generation, member and a count of topics; the rest is a topic's name, up to another commit
    # in the metadata.
    inner = b"\2" + _FIRST_INDEX + commit_of(99)
    metadata = bytes([len(inner) + 1]) + inner
    body = body_of(struct.pack(">qi", 5, 0)) + metadata + bytes(3)
    named = len(body) - len(inner) - 3
    tags = b"\1\2\x08" + _NO_GENERATION + _NO_MEMBER + b"\2" + bytes([named + 1])
    frame = frame_of(tags=tags, body=body)
    assert 5 == offset_of(frame)
    assert read(frame) is None


@pytest.mark.parametrize("length", [0, 1, 255])
def test_client_ids_of_up_to_255_bytes_are_read(length: int) -> None:
    frame = frame_of(client_id=b"c" * length, body=body_of(commit_of(7)) + bytes(3))
    found = read(frame)
    assert found is not None
    assert (77, "g", ("t", 0), 7) == (
        found.correlation_id, found.head.group_id, found.head.topic_partition, found.offset,
    )  # fmt: skip
    assert 7 == offset_of(frame)


@pytest.mark.parametrize("cut_bytes", range(1, 40))
def test_a_request_that_is_cut_short_is_not_read(cut_bytes: int) -> None:
    frame = frame_of(body=body_of(commit_of(7)) + bytes(3))
    assert read(frame[:-cut_bytes]) is None


@pytest.mark.parametrize("metadata_size", [0, 1, 63, 64, 126])
@pytest.mark.parametrize("name_size", [1, 63, 64, 126])
def test_commits_of_short_strings_are_read(metadata_size: int, name_size: int) -> None:
    group, member = b"g" * name_size, b"m" * name_size
    metadata = b"x" * metadata_size
    names = bytes([name_size + 1])
    body = (
        names + group + struct.pack(">i", 5) + names + member + names + b"i" * name_size
        + b"\2" + names + b"t" * name_size + b"\2" + struct.pack(">i", 3)
        + struct.pack(">qiB", 7, 4, metadata_size + 1) + metadata + bytes(3)
    )  # fmt: skip
    found = read(frame_of(body=body))
    assert found is not None
    head = found.head
    assert (group.decode(), 5, member.decode(), "i" * name_size) == head[:4]
    assert (("t" * name_size, 3), 7, 4, metadata.decode()) == (
        head.topic_partition, found.offset, found.leader_epoch, found.metadata,
    )  # fmt: skip
    assert 7 == offset_of(frame_of(body=body))


@pytest.mark.parametrize("metadata", ["", "m", "ä" * 63, "x" * 5_000])
def test_records_of_committed_offsets_are_read(metadata: str) -> None:
    key = TopicPartition("t" * 200, 7)
    record = build_offset_record("grüppe", key, CommittedOffset(5, 3, metadata, 9))
    assert record.value is not None
    assert ("grüppe", key.topic) == parse_offset_key(record.key[:-INDEX_BYTES])
    assert (5, 3, metadata, 9) == read_offset_value_fast(record.value)
    if len(metadata.encode()) <= 126:
        assert record.value == encode_offset_value_fast(5, 3, metadata, 9)


def test_records_of_other_kinds_and_sizes_are_not_read() -> None:
    key = TopicPartition("t", 7)
    record = build_offset_record("g", key, CommittedOffset(5, 3, "note", 9))
    with_expiry = build_offset_record("g", key, CommittedOffset(5, 3, "note", 9, 10))
    group, value = build_group_record(Group("g", 5), {}), record.value
    assert value is not None
    assert with_expiry.value is not None
    for other_key in (
        group.key,
        group_tombstone("g").key,
        # A key of version 0, and keys with too many bytes or too few.
        b"\0\0" + record.key[2:],
        record.key + b"\0",
        record.key[:-1],
        record.key[:3],
        b"",
    ):
        assert parse_offset_key(other_key[:-INDEX_BYTES]) is None
    for other_value in (
        with_expiry.value,
        b"\0\4" + value[2:],
        value + b"\0",
        value[:-1],
        value[:15],
        b"",
        value[:14] + b"\xff\xff" + value[20:],
        value[:16] + b"\xff" + value[17:],
    ):
        assert read_offset_value_fast(other_value) is None


@pytest.mark.parametrize("version", [7, 10])
def test_a_known_head_is_that_of_its_version_alone(version: int) -> None:
    frame = frame_of(body=body_of(commit_of(7)) + bytes(3))
    assert read(frame) is not None
    assert read(frame) is not None
    assert read(frame[:2] + struct.pack(">h", version) + frame[4:]) is None
    assert read(frame) is not None


def test_metadata_that_ends_as_a_commit_does_is_metadata() -> None:
    plain = frame_of(body=body_of(commit_of(7)) + bytes(3))
    assert read(plain) is not None
    inner = commit_of(9)
    metadata = bytes([len(inner) + 1]) + inner
    frame = frame_of(body=body_of(struct.pack(">qi", 5, 0)) + metadata + bytes(3))
    found = read(frame)
    assert found is None or (5, inner.decode()) == (found.offset, found.metadata)
    assert 5 == offset_of(frame)
