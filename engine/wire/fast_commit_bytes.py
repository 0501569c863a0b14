"""Fast path of OffsetCommit with one partition, and its record, by bytes that commits share.

A consumer that commits sends the same bytes each time but for a correlation id and the commit:

```
request   key · version · CORRELATION ID · client id, group, generation, member, topic, index · COMMIT
                                           └─────── remembered, a CommitHead ───────────────┘
COMMIT    int64 offset · int32 leader epoch · compact metadata · no tags (partition, topic, request)
answer    CORRELATION ID · no throttle time, topic, index · ERROR CODE · no tags
record    key (remembered) · value: version 3, offset, leader epoch, metadata, commit time
```

Only requests of one partition without tags, of the flexible versions and with short strings have a
head; any other has none, and is read by the table codec, which judges it.

Source: D21; `formats.md` §7.
"""  # noqa: E501 - prose

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache
from struct import Struct as Format
from typing import Final, NamedTuple

from engine.errors import WireError
from engine.limits import COMMIT_HEADS_KEPT, KEPT_CLIENT_ID_BYTES_MAX
from engine.model import TopicPartition
from engine.wire import messages
from engine.wire.codec import message_codec
from engine.wire.coordinator_records import decode_coordinator_record, encode_key
from engine.wire.headers import api, read_request_header, response_header_bytes

_COMMIT: Final = api("OffsetCommit")
_FIRST_FLEXIBLE: Final = 8
#: Key, version, correlation id, length of the client id: unsigned, so that null is a long one.
_START: Final = Format(">hhiH").unpack_from
HEAD_AT: Final = 8
#: Position of the client id in the cached bytes, after its length.
_CLIENT_ID_AT: Final = 2
#: Position of the body, without the client id; the byte before it is the number of header tags.
_BODY_AT: Final = 11
_GENERATION_BYTES: Final = 4
#: Bytes of the partition number at the end of a record's key.
INDEX_BYTES: Final = 4
#: The compact array count of one element.
_ONE: Final = 2
#: Offset, leader epoch, compact length of the metadata.
_COMMIT_NUMBERS: Final = Format(">qiB").unpack_from
_METADATA_AT: Final = 13
_NO_TAGS: Final = bytes(3)
#: Bytes of a commit without metadata and the tags after it, which follow the head in most requests.
PLAIN_COMMIT_BYTES: Final = _METADATA_AT + len(_NO_TAGS)
#: Unpacks offset, leader epoch, and the end of a plain commit.
read_plain_commit: Final = Format(">qi4s").unpack_from
#: The ends of a plain commit: with empty or null metadata, and no tags.
PLAIN_COMMIT_ENDS: Final = (b"\1" + _NO_TAGS, b"\0" + _NO_TAGS)
#: Unpacks version and correlation id of a request.
read_version: Final = Format(">2xhi").unpack_from
#: The value of such a commit: version, offset, leader epoch, length of the metadata, time.
_PLAIN_VALUE: Final = Format(">hqihq").pack
_LONGEST_COMPACT: Final = 0x7F
_OFFSET_KEY: Final = 1
#: A value of version 3: its version, offset, leader epoch and length of the metadata; the time.
_VALUE: Final = Format(">hqih").pack
_VALUE_VERSION: Final = 3
_TIME: Final = Format(">q").pack
_READ_VALUE: Final = Format(">hqih").unpack_from
_VALUE_BYTES: Final = 16
_READ_TIME: Final = Format(">q").unpack_from
_TIME_BYTES: Final = 8
_BAD_BYTES: Final = (struct.error, IndexError, UnicodeDecodeError)


class CommitHead(NamedTuple):
    """A request's fields before its commit, the record's key, and the encoder of its responses."""

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None
    topic_partition: TopicPartition
    #: The key of the record in `__consumer_offsets`.
    record_key: bytes
    #: Returns the response's frame for a correlation id and an error code.
    answer: Callable[[int, int], bytes]
    #: Number of bytes of the request that the head covers, from HEAD_AT on.
    size_bytes: int


class CommitRequest(NamedTuple):
    """A decoded OffsetCommit request for one partition."""

    correlation_id: int
    head: CommitHead
    offset: int
    leader_epoch: int
    metadata: str


def read_commit_fast(frame: memoryview) -> CommitRequest | None:
    """Return the request in a frame; None for a request off the fast path.

    The fast path is an OffsetCommit of one partition without tags, whose client id and names are
    short.
    """
    try:
        _, version, correlation_id, client_id_size = _START(frame)
        if client_id_size > KEPT_CLIENT_ID_BYTES_MAX:
            return None
        at = _find_head_end(frame, _BODY_AT + client_id_size)
        head = _parse_head(bytes(frame[HEAD_AT:at]), version) if at else None
        if head is None:
            return None
        offset, leader_epoch, size = _COMMIT_NUMBERS(frame, at)
        metadata_at = at + _METADATA_AT
        end = metadata_at + max(size - 1, 0)
        if size > _LONGEST_COMPACT or frame[end:] != _NO_TAGS:
            return None
        metadata = str(frame[metadata_at:end], "utf-8")
    except _BAD_BYTES:
        return None
    return CommitRequest(correlation_id, head, offset, leader_epoch, metadata)


def _find_head_end(frame: memoryview, at: int) -> int:
    """Return the position at which a request's only commit starts, 0 for any other form."""
    group_size = frame[at]
    at += group_size + _GENERATION_BYTES
    member_size = frame[at]
    at += member_size
    instance_size = frame[at]
    at += instance_size or 1
    topic_count, topic_size = frame[at], frame[at + 1]
    at += 1 + topic_size
    is_short = max(group_size, member_size, instance_size, topic_size) <= _LONGEST_COMPACT
    if not is_short or topic_count != _ONE or frame[at] != _ONE:
        return 0
    return at + 1 + INDEX_BYTES


@lru_cache(maxsize=COMMIT_HEADS_KEPT)
def _parse_head(content: bytes, version: int) -> CommitHead | None:
    """Return the fields from the client id to the index, None for a request off the fast path."""
    # `_find_head_end` assumes that the header has no tags.
    has_tags = content[_CLIENT_ID_AT + int.from_bytes(content[:_CLIENT_ID_AT])]
    if has_tags or not _FIRST_FLEXIBLE <= version <= _COMMIT.stable.highest:
        return None
    start = struct.pack(">hhi", _COMMIT.key, version, 0)
    # With a commit without metadata the bytes are a complete request for the table codec.
    whole = memoryview(start + content + struct.pack(">qiB", 0, 0, 1) + _NO_TAGS)
    try:
        *_, at = read_request_header(whole)
        request = message_codec("OffsetCommitRequest", version).decode(whole[at:])
        (topic,) = request.topics
        (partition,) = topic.partitions
        key = TopicPartition(topic.name, partition.partition_index)
        record_key = encode_key(
            messages.OffsetCommitKey(
                group=request.group_id, topic=key.topic, partition=key.partition
            ),
            _OFFSET_KEY,
        )
    except (WireError, ValueError):
        return None
    return CommitHead(
        request.group_id,
        request.generation_id_or_member_epoch,
        request.member_id,
        request.group_instance_id,
        key,
        record_key,
        _create_response_packer(version, key),
        len(content),
    )


def _create_response_packer(version: int, key: TopicPartition) -> Callable[[int, int], bytes]:
    """Return a function that makes response frames for one partition.

    It takes a correlation id and an error code.
    """
    response = messages.OffsetCommitResponse
    body = message_codec("OffsetCommitResponse", version).encode(
        response(
            topics=[
                response.OffsetCommitResponseTopic(
                    name=key.topic,
                    partitions=[
                        response.OffsetCommitResponsePartition(partition_index=key.partition)
                    ],
                )
            ]
        )
    )
    whole = response_header_bytes(_COMMIT.key, version, 0) + body
    # After the correlation id; before the error code and three counts of tags.
    prefix, suffix = whole[4 : -2 - len(_NO_TAGS)], _NO_TAGS
    pack = Format(f">i{len(prefix)}sh{len(suffix)}s").pack
    return lambda correlation_id, code: pack(correlation_id, prefix, code, suffix)


def read_offset_value_fast(value: bytes) -> tuple[int, int, str, int] | None:
    """Return (offset, leader epoch, metadata, commit time in ms) of a committed offset's value.

    None for a value of any other version than the latest, or with malformed bytes.
    """
    try:
        version, offset, leader_epoch, size = _READ_VALUE(value)
        end = _VALUE_BYTES + size
        if version != _VALUE_VERSION or size < 0 or end + _TIME_BYTES != len(value):
            return None
        metadata = str(value[_VALUE_BYTES:end], "utf-8") if size else ""
        (commit_ms,) = _READ_TIME(value, end)
    except _BAD_BYTES:
        return None
    return offset, leader_epoch, metadata, commit_ms


def parse_offset_key(start: bytes) -> tuple[str, str] | None:
    """Return (group, topic) of an offset key without its partition; None for any other key."""
    try:
        decoded = decode_coordinator_record("offsets", start + bytes(INDEX_BYTES), None)
    except WireError:
        return None
    if decoded.type != _OFFSET_KEY:
        return None
    return decoded.key.group, decoded.key.topic


def encode_offset_value_fast(
    offset: int, leader_epoch: int, metadata: str, commit_ms: int
) -> bytes:
    """Return the value of a committed offset without retention, with the bytes of `encode_value`.

    The metadata must be at most 126 bytes long, which `read_commit_fast` ensures.
    """
    if not metadata:
        return _PLAIN_VALUE(_VALUE_VERSION, offset, leader_epoch, 0, commit_ms)
    content = metadata.encode()
    numbers = _VALUE(_VALUE_VERSION, offset, leader_epoch, len(content))
    return numbers + content + _TIME(commit_ms)
