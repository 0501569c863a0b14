"""The fast path of Fetch.

One partition, or none in a session, decoded and encoded as one struct each.

```
request   version 11    by librdkafka: one topic by name, nothing to forget, any rack
          15 … 17       by Java's clients: one topic by id or none, no rack, no tags
response  from 7 on     one partition without an error, or none: no changes in a session
```

`fetch_bytes` handles every other form; it also shows the layout, and raises the errors.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from struct import Struct as Format
from typing import Final

from engine.limits import FETCHED_TOPICS_KEPT
from engine.model import new_tuple
from engine.wire.fetch_bytes import (
    FIRST_FLEXIBLE,
    FIRST_WITH_REPLICA_STATE,
    FetchRequest,
    RequestedPartition,
    RequestedTopic,
    decode_fetch_request,
    encode_single_topic_start,
)

_VERSION_WITH_RACK: Final = 11
#: Head, count of topics, length of the first one's name.
_HEAD_11: Final = Format(">iiiibiiih").unpack_from
_HEAD_11_BYTES: Final = 31
#: Count of partitions, fields of the first, count of forgotten topics, length of the rack.
_TAIL_11: Final = Format(">iiiqqiih").unpack_from
_TAIL_11_BYTES: Final = 38
#: Head without a replica id, topics, forgotten topics, rack, tags.
_NOTHING_REQUESTED_15: Final = Format(">iiibiiBBBB")
_NOTHING_COUNTED_15: Final = (1, 1, 1, 0)
#: Head without a replica id; count of topics, id, count of partitions, fields of the partition, its
#: tags and those of the topic; forgotten topics, rack, tags.
_ONE_REQUESTED_15: Final = Format(">iiibiiB16sBiiqiqiBBBBB")
_EMPTY_TAIL_OF_ONE_15: Final = (0, 0, 1, 1, 0)

#: Throttle time, error, session.
_HEAD_OF_ANSWER: Final = Format(">ihi").pack
#: Partition, error, three offsets, count of aborted transactions, preferred replica, size of the
#: records.
_ONE_7: Final = Format(">ihqqqii").pack
_ONE_11: Final = Format(">ihqqqiii").pack
_ONE_12: Final = Format(">ihqqqBi").pack
#: The tags of partition, topic and response.
TAGS_AFTER_RECORDS: Final = b"\0\0\0"


def read_fetch_request(body: memoryview, version: int) -> FetchRequest:
    """Decode a Fetch request; trailing bytes are ignored. Raises MalformedMessage.

    Frequent forms are decoded by one struct call.
    """
    request = None
    if version >= FIRST_WITH_REPLICA_STATE:
        size = len(body)
        if size == _NOTHING_REQUESTED_15.size:
            request = _read_none_15(body)
        elif size == _ONE_REQUESTED_15.size:
            request = _read_one_15(body)
    elif version == _VERSION_WITH_RACK:
        request = _read_one_11(body)
    return decode_fetch_request(body, version) if request is None else request


def _read_one_11(body: memoryview) -> FetchRequest | None:
    """Decode a version 11 request for one partition by topic name; None for any other request."""
    try:
        (
            replica_id, max_wait_ms, min_bytes, max_bytes, isolation, session_id, epoch, topics,
            size,
        ) = _HEAD_11(body)  # fmt: skip
        stop = _HEAD_11_BYTES + size
        count, index, leader_epoch, offset, log_start, partition_bytes, forgotten, rack_size = (
            _TAIL_11(body, stop)
        )
        end = stop + _TAIL_11_BYTES + rack_size
        if topics != 1 or size < 0 or count != 1 or forgotten or rack_size < 0 or end > len(body):
            return None
        topic = str(body[_HEAD_11_BYTES:stop], "utf-8")
        rack_id = str(body[end - rack_size : end], "utf-8") if rack_size else ""
    except (struct.error, UnicodeDecodeError):
        return None
    requested = new_tuple(
        RequestedPartition, (index, leader_epoch, offset, -1, log_start, partition_bytes)
    )
    return new_tuple(
        FetchRequest,
        (replica_id, max_wait_ms, min_bytes, max_bytes, isolation, session_id, epoch,
         [(topic, [requested])], [], rack_id, -1),
    )  # fmt: skip


def _read_none_15(body: memoryview) -> FetchRequest | None:
    """Decode a version 15 to 17 request without partitions; None for any other request."""
    max_wait_ms, min_bytes, max_bytes, isolation, session_id, epoch, *counts = (
        _NOTHING_REQUESTED_15.unpack(body)
    )
    if tuple(counts) != _NOTHING_COUNTED_15:
        return None
    topics: list[RequestedTopic] = []
    return new_tuple(
        FetchRequest,
        (-1, max_wait_ms, min_bytes, max_bytes, isolation, session_id, epoch, topics, [], "", -1),
    )


def _read_one_15(body: memoryview) -> FetchRequest | None:
    """Decode a version 15 to 17 request for one partition by id; None for any other request."""
    (
        max_wait_ms, min_bytes, max_bytes, isolation, session_id, epoch, topics, topic, count,
        index, leader_epoch, offset, fetched_epoch, log_start, partition_max_bytes, *tail,
    ) = _ONE_REQUESTED_15.unpack(body)  # fmt: skip
    if topics != 2 or count != 2 or tuple(tail) != _EMPTY_TAIL_OF_ONE_15:
        return None
    requested = new_tuple(
        RequestedPartition,
        (index, leader_epoch, offset, fetched_epoch, log_start, partition_max_bytes),
    )
    return new_tuple(
        FetchRequest,
        (-1, max_wait_ms, min_bytes, max_bytes, isolation, session_id, epoch,
         [(topic, [requested])], [], "", -1),
    )  # fmt: skip


def encode_response_head(
    version: int,
    session_id: int,
    topic: str | bytes,
    offsets: tuple[int, int, int, int],
    records_bytes: int,
    *,
    has_aborted: bool,
) -> bytes:
    """Return the bytes before the records of the only partition of a response.

    `offsets` are its index, high watermark, last stable offset and log start offset; with
    `has_aborted` there is an empty list of aborted transactions, otherwise null. From version 12 on
    TAGS_AFTER_RECORDS must follow the records.
    """
    index, watermark, stable, log_start = offsets
    head = _HEAD_OF_ANSWER(0, 0, session_id) + encode_single_topic_start(version, topic)
    if version >= FIRST_FLEXIBLE:
        one = _ONE_12(index, 0, watermark, stable, log_start, has_aborted, -1)
        return head + one + record_size_bytes(records_bytes)
    if version >= _VERSION_WITH_RACK:
        return head + _ONE_11(
            index, 0, watermark, stable, log_start, has_aborted - 1, -1, records_bytes
        )
    return head + _ONE_7(index, 0, watermark, stable, log_start, has_aborted - 1, records_bytes)


@lru_cache(maxsize=FETCHED_TOPICS_KEPT)
def answer_without_news(version: int, session_id: int) -> bytes:
    """Return the body of a response without partitions, for a session without changes."""
    head = _HEAD_OF_ANSWER(0, 0, session_id)
    return head + (b"\1\0" if version >= FIRST_FLEXIBLE else b"\0\0\0\0")


def record_size_bytes(size: int) -> bytes:
    """Return the encoded size field that precedes the records from version 12 on.

    `size` is the size of the records in bytes.
    """
    return _encode_varint(size + 1)


def _encode_varint(value: int) -> bytes:
    """Return an unsigned varint of up to five bytes."""
    if value < 1 << 7:
        return bytes((value,))
    if value < 1 << 14:
        return bytes((value & 127 | 128, value >> 7))
    if value < 1 << 21:
        return bytes((value & 127 | 128, value >> 7 & 127 | 128, value >> 14))
    return bytes((value & 127 | 128, value >> 7 & 127 | 128)) + _encode_varint(value >> 14)
