"""The fast path of Fetch between brokers: a session that continues, with one changed partition.

```
request    header · limits · session, epoch · 1 topic, 1 partition: REQUESTED · replica id, epoch
response   header · no throttling, no error · session · 1 topic, 1 partition: OFFSETS · RECORDS
```

Both are one struct followed by the parts of variable size, decoded and encoded at once. The request
is that of versions 15 to 17, in which a tag has the follower's id; it has no forgotten topics and
no rack. `fetch_bytes` and the table codec handle every other form; they also show the layout, and
raise the errors.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from struct import Struct as Format
from typing import Final, NamedTuple

from engine.limits import KEPT_CLIENT_ID_BYTES_MAX, REPLICA_FETCH_FORMS_KEPT
from engine.model import new_tuple
from engine.wire.fast_fetch_bytes import TAGS_AFTER_RECORDS, record_size_bytes
from engine.wire.fetch_bytes import FIRST_WITH_REPLICA_STATE

FETCH_KEY: Final = 1
LAST_VERSION: Final = 17
#: Key, version, correlation id, length of the client id: unsigned, so that null is a long one.
_START: Final = Format(">hhiH").unpack_from
#: After the client id: tags of the header; limits and isolation, session and epoch; count of
#: topics, id, count of partitions; fields of the partition; tags of partition and topic, forgotten
#: topics, rack; one tag, its number and size, replica id and epoch, no tags inside.
_AFTER_CLIENT_ID: Final = "BiiibiiB16sBiiqiqi7BiqB"
_WITHOUT_CLIENT_ID: Final = struct.calcsize(">hhiH" + _AFTER_CLIENT_ID)
_TAIL_COUNTS: Final = (0, 0, 1, 1, 1, 1, 13)
_LOG_END: Final = 0

#: Correlation id, tags of the header; throttle time, error, session; count of topics, id, count of
#: partitions; partition, error, three offsets, no aborted transactions, no preferred replica.
_RESPONSE: Final = Format(">iBihiB16sBihqqqBi")
_pack_response: Final = _RESPONSE.pack
_unpack_response: Final = _RESPONSE.unpack_from
#: Bytes of the response that belong to the header, for callers that write the header themselves.
RESPONSE_HEADER_BYTES: Final = 5
_TAGS_BYTES: Final = len(TAGS_AFTER_RECORDS)


class ReplicaLimits(NamedTuple):
    """Fields that are equal in all requests of a follower's session."""

    version: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    session_id: int
    replica_id: int
    replica_epoch: int


class ReplicaFetch(NamedTuple):
    """A follower's Fetch request for one partition; an epoch is −1 if it is not set."""

    correlation_id: int
    limits: ReplicaLimits
    session_epoch: int
    topic_id: bytes
    partition: int
    current_leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int
    partition_max_bytes: int


class ReplicaFetched(NamedTuple):
    """A decoded Fetch response for one partition; the records are a view of its frame."""

    session_id: int
    topic_id: bytes
    partition: int
    high_watermark: int
    log_start_offset: int
    records: memoryview


def encode_replica_fetch_fast(client_id: bytes, request: ReplicaFetch) -> bytes:
    """Return the frame of a follower's Fetch request for one partition, with its header."""
    correlation_id, limits, epoch, topic_id, index, leader_epoch, offset, fetched, start, size = (
        request
    )
    version, max_wait_ms, min_bytes, max_bytes, session_id, replica_id, replica_epoch = limits
    length = len(client_id)
    return _request_format(length).pack(
        FETCH_KEY, version, correlation_id, length, client_id, 0,
        max_wait_ms, min_bytes, max_bytes, _LOG_END, session_id, epoch,
        2, topic_id, 2, index, leader_epoch, offset, fetched, start, size,
        *_TAIL_COUNTS, replica_id, replica_epoch, 0,
    )  # fmt: skip


def read_replica_fetch_fast(frame: memoryview) -> ReplicaFetch | None:
    """Decode a follower's Fetch request; None for a request off the fast path."""
    size = len(frame)
    if size < _WITHOUT_CLIENT_ID:
        return None
    key, version, _, length = _START(frame)
    if (
        size != _WITHOUT_CLIENT_ID + length
        or length > KEPT_CLIENT_ID_BYTES_MAX
        or key != FETCH_KEY
        or not FIRST_WITH_REPLICA_STATE <= version <= LAST_VERSION
    ):
        return None
    (
        _, _, correlation_id, _, client_id, tags,
        max_wait_ms, min_bytes, max_bytes, isolation, session_id, epoch,
        topics, topic_id, partitions, index, leader_epoch, offset, fetched, start, max_size,
        of_partition, of_topic, forgotten, rack, count, tag, tag_size, replica_id, replica_epoch,
        inside,
    ) = _request_format(length).unpack(frame)  # fmt: skip
    if (
        (of_partition, of_topic, forgotten, rack, count, tag, tag_size) != _TAIL_COUNTS
        or tags
        or inside
        or isolation != _LOG_END
        or topics != 2
        or partitions != 2
        or not client_id.isascii()
    ):
        return None
    limits = new_tuple(
        ReplicaLimits,
        (version, max_wait_ms, min_bytes, max_bytes, session_id, replica_id, replica_epoch),
    )
    return new_tuple(
        ReplicaFetch,
        (correlation_id, limits, epoch, topic_id, index, leader_epoch, offset, fetched, start,
         max_size),
    )  # fmt: skip


def encode_replica_response_head(
    correlation_id: int,
    session_id: int,
    topic_id: bytes,
    offsets: tuple[int, int, int, int],
    records_bytes: int,
) -> bytes:
    """Return the bytes before the records of a follower's Fetch response, including its header.

    `offsets` are the partition's index, high watermark, last stable offset and log start offset;
    TAGS_AFTER_RECORDS must follow the records.
    """
    index, watermark, stable, start = offsets
    return _pack_response(
        correlation_id, 0, 0, 0, session_id, 2, topic_id, 2, index, 0, watermark, stable, start, 0,
        -1,
    ) + record_size_bytes(records_bytes)  # fmt: skip


def read_replica_response_fast(frame: memoryview) -> ReplicaFetched | None:
    """Return the fields of a Fetch response to a follower, for one partition with records.

    None for one off the fast path or without records. The correlation id is not checked.
    """
    try:
        (
            _, tags, throttle_ms, error, session_id, topics, topic_id, partitions, index, code,
            watermark, _, start, aborted, preferred,
        ) = _unpack_response(frame)  # fmt: skip
        if (
            tags
            or throttle_ms
            or error
            or topics != 2
            or partitions != 2
            or code
            or aborted
            or preferred != -1
        ):
            return None
        size, at = _read_size(frame, _RESPONSE.size)
    except (struct.error, IndexError):
        return None
    end = at + size
    if size <= 0 or end + _TAGS_BYTES != len(frame) or bytes(frame[end:]) != TAGS_AFTER_RECORDS:
        return None
    return new_tuple(ReplicaFetched, (session_id, topic_id, index, watermark, start, frame[at:end]))


def _read_size(frame: memoryview, at: int) -> tuple[int, int]:
    """Return the size of records (−1 for null or a varint that is too long), and their position."""
    value = shift = 0
    for _ in range(5):
        byte = frame[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value - 1, at
        shift += 7
    return -1, at


@lru_cache(maxsize=REPLICA_FETCH_FORMS_KEPT)
def _request_format(length: int) -> Format:
    """Return the struct format of a request with a client id of `length` bytes."""
    return Format(f">hhiH{length}s{_AFTER_CLIENT_ID}")
