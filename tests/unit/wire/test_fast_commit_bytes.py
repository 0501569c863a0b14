"""Requests of commits that are read by hand, and those that are not."""

from __future__ import annotations

import struct

import pytest

from engine.wire.codec import message_codec
from engine.wire.fast_commit_bytes import CommitRequest, read_commit_fast
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
