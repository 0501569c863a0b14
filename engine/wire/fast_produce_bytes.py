"""Fast path of Produce: the bytes that all requests of one producer share are decoded only once.

A producer sends the same bytes before each batch except the correlation id and a length, and its
responses differ in a few numbers:

```
request   key · version · CORRELATION ID · client id, acks, timeout, topic, index · SIZE · RECORDS
                                           └────── cached, a ProduceHead ───────┘
response  CORRELATION ID · topic · index · no error · OFFSETS · throttle time · tags
```

Only requests of one partition, without a transaction and tags, of the flexible versions and of a
client with a short id have a head; `produce_bytes` decodes any other request, and raises its
errors.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from struct import Struct as Format
from typing import Final

from engine.limits import KEPT_CLIENT_ID_BYTES_MAX, PRODUCE_HEADS_KEPT
from engine.model import TopicPartition
from engine.naming import ADMIN_CLIENT_ID
from engine.wire.produce_bytes import (
    FIRST_FLEXIBLE,
    LAST_VERSION,
    parse_request_head,
    split_around_numbers,
)

PRODUCE_KEY: Final = 0
_CLIENT_ID_AT: Final = 2
#: Key, version, correlation id, length of the client id: unsigned, so that null is a long one.
_START: Final = Format(">hhiH").unpack_from
#: Position of the body, without the client id; the byte before it is the number of header tags.
_BODY_AT: Final = 11
#: Position in the body of the topic name's compact length, a byte: length + 1.
_NAME_SIZE_AT: Final = 8
#: Bytes of the body before the records, without the topic name and its length.
_AROUND_NAME_BYTES: Final = 13
#: The counts of tags of partition, topic and request.
_TAGS: Final = Format(">HB").unpack_from
_NO_TAGS: Final = (0, 0)
#: The partition's index in the response, and its error.
_NO_ERROR: Final = Format(">ih").pack
_BAD_BYTES: Final = (struct.error, IndexError, UnicodeDecodeError)


@dataclass(slots=True)
class ProduceHead:
    """The fields of a request before its records, and the constant bytes of its responses."""

    client_id: str
    acks: int
    timeout_ms: int
    topic_partition: TopicPartition
    #: Whether the client is kctl's own, which may write to internal topics.
    is_admin: bool
    pack: Callable[..., bytes]
    prefix: bytes
    suffix: bytes

    def answer(
        self, correlation_id: int, base_offset: int, append_time_ms: int, log_start: int
    ) -> bytes:
        """Return the frame of a response without an error, for the partition of this request.

        Offsets and time are those of the appended batch; see `encode_produce_response_fast`.
        """
        prefix, suffix = self.prefix, self.suffix
        return self.pack(correlation_id, prefix, base_offset, append_time_ms, log_start, suffix)


def read_produce_fast(frame: memoryview) -> tuple[int, int, ProduceHead, memoryview] | None:
    """Return (version, correlation id, head, records) of a Produce request for one partition.

    None for a request off the fast path. The records are a view of the frame, and are not checked
    here.
    """
    try:
        key, version, correlation_id, client_id_size = _START(frame)
        if key or client_id_size > KEPT_CLIENT_ID_BYTES_MAX:
            return None
        body_at = _BODY_AT + client_id_size
        if frame[body_at]:
            # The request has a transactional id.
            return None
        at = body_at + _AROUND_NAME_BYTES + frame[body_at + _NAME_SIZE_AT]
        head = _parse_head(bytes(frame[8:at]), version)
        if head is None:
            return None
        size = frame[at]
        at += 1
        if size > 0x7F:
            # Written out, for a call costs as much as all of it: lengths below 2 MiB.
            more = frame[at]
            size = size & 0x7F | (more & 0x7F) << 7
            at += 1
            if more > 0x7F:
                more = frame[at]
                size |= more << 14
                at += 1
                if more > 0x7F:
                    return None
        end = at + size - 1
        if not size or _TAGS(frame, end) != _NO_TAGS:
            return None
    except _BAD_BYTES:
        return None
    return version, correlation_id, head, frame[at:end]


@lru_cache(maxsize=PRODUCE_HEADS_KEPT)
def _parse_head(head: bytes, version: int) -> ProduceHead | None:
    """Parse a Produce request's start, and encode the fixed bytes of its response; None otherwise.

    `head` begins after the correlation id, with the client id, and ends with the partition index. A
    producer repeats it in each request: the result is cached. None if the fast path does not serve
    such a request.
    """
    if not FIRST_FLEXIBLE <= version <= LAST_VERSION:
        return None
    tags_at = _CLIENT_ID_AT + int.from_bytes(head[:_CLIENT_ID_AT])
    named = parse_request_head(head[tags_at + 1 :])
    if head[tags_at] or named is None:
        return None
    client_id = str(head[_CLIENT_ID_AT:tags_at], "utf-8")
    acks, timeout_ms, topic, index = named
    prefix, suffix = split_around_numbers(version, topic)
    # The response's header ends in a count of tags.
    prefix = b"\x00" + prefix + _NO_ERROR(index, 0)
    pack = Format(f">i{len(prefix)}sqqq{len(suffix)}s").pack
    topic_partition = TopicPartition(topic, index)
    return ProduceHead(
        client_id,
        acks,
        timeout_ms,
        topic_partition,
        client_id == ADMIN_CLIENT_ID,
        pack,
        prefix,
        suffix,
    )
