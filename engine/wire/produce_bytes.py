"""Decode Produce requests and encode responses without the table codec, in a third of the time.

```
request   [v3+: string? transactional id] int16 acks · int32 timeout
          topics: string name · partitions: int32 index · records
response  topics: string name · partitions: PART · [v1+: int32 throttle time]
PART      int32 index · int16 error · int64 base offset · [v2+: int64 append time]
          [v5+: int64 log start] [v8+: record errors · string? message]
```

From version 9 on lengths are compact and every struct ends in a tagged section. The table codec
handles the rare forms, and raises the errors: requests with tagged fields or wrong bytes, responses
with record errors, messages or leaders. Both return the same values and bytes.

Source: D4.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from struct import Struct as Format
from typing import Final, NamedTuple, TypeAlias

from engine.limits import PRODUCED_TOPICS_KEPT
from engine.model import new_tuple
from engine.wire import messages
from engine.wire.codec import message_codec
from engine.wire.read_parts import (
    Refused,
    array_count,
    compact_string,
    long_varint,
    nullable_compact_string,
)
from engine.wire.structs import Message
from engine.wire.writer import STRING_BYTES_MAX, varint_bytes

FIRST_FLEXIBLE: Final = 9
LAST_VERSION: Final = 11
_FIRST_TRANSACTIONAL: Final = 3
_BAD_BYTES: Final = (Refused, struct.error, IndexError, UnicodeDecodeError)

_INT16: Final = Format(">h").unpack_from
_INT32: Final = Format(">i").unpack_from
_ACKS_AND_TIMEOUT: Final = Format(">hi").unpack_from
_ACKS_TIMEOUT_COUNT: Final = Format(">hii").unpack_from
_INDEX_AND_SIZE: Final = Format(">ii").unpack_from
_INDEX_AND_BYTE: Final = Format(">iB").unpack_from
#: Null transactional id, acks, timeout, count of topics, length of the name; its start.
_FAST_HEAD: Final = Format(">BhiBB").unpack_from
_FAST_NAME_AT: Final = 9
#: Count of partitions and index; then the bytes up to and including the first of the records' size.
_FAST_PARTITION: Final = Format(">Bi").unpack_from
_FAST_PARTITION_BYTES: Final = 5

#: PART without an error, per version; behind the numbers stand no errors, no message, no tags.
_PARTITION_FORMS: Final = {
    0: Format(">ihq"),
    2: Format(">ihqq"),
    5: Format(">ihqqq"),
    8: Format(">ihqqqih"),
    9: Format(">ihqqqBBB"),
}
_NUMBERS: Final = _PARTITION_FORMS[5].pack
_EMPTY_TAILS: Final = {8: (0, -1), 9: (1, 0, 0)}
_FORM_OF_VERSION: Final = (0, 0, 2, 2, 2, 5, 5, 5, 8, 9, 9, 9)
#: Compact counts and lengths of one byte, by their value.
_SMALL_COUNTS_SIZE: Final = 127
_SMALL_COUNTS: Final = tuple(bytes((count + 1,)) for count in range(_SMALL_COUNTS_SIZE))
#: The end of a response: nothing in version 0, throttle time 0 from 1 on, empty tags from 9 on.
_THROTTLE_TIME: Final = (b"", bytes(4), bytes(5))


#: A partition and its records: a view of the request, None for null.
ProducedRecords: TypeAlias = tuple[int, memoryview | None]
#: A topic's name and its partitions, in the order of the request.
ProducedTopic: TypeAlias = tuple[str, list[ProducedRecords]]


class ProduceRequest(NamedTuple):
    """A decoded Produce request; its records are views of the request's buffer."""

    transactional_id: str | None
    acks: int
    timeout_ms: int
    topics: list[ProducedTopic]


#: The defaults of record errors, message and leader.
_FAST_END: Final = ((), None, None)


class ProducedPartition(NamedTuple):
    """One partition of a Produce response; `record_errors` are (index in the batch, message).

    `current_leader` is (id, epoch), None if the response does not name it.
    """

    partition: int
    error_code: int
    base_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    record_errors: tuple[tuple[int, str | None], ...] = ()
    error_message: str | None = None
    current_leader: tuple[int, int] | None = None

    @property
    def is_fast_path(self) -> bool:
        """Return True if the result has no record errors, no error message and no leader."""
        return not self.record_errors and self.error_message is None and self.current_leader is None


#: A topic's name and its responses.
AnsweredTopic: TypeAlias = tuple[str, list[ProducedPartition]]


class NodeEndpoint(NamedTuple):
    """The address of a leader in a response."""

    node_id: int
    host: str
    port: int
    rack: str | None = None


def decode_produce_request(body: memoryview, version: int) -> ProduceRequest:
    """Decode a Produce request; trailing bytes are ignored. Raises MalformedMessage."""
    try:
        if version >= FIRST_FLEXIBLE:
            return _read_flexible_fast(body) or _read_flexible(body)
        return _read_classic(body, version)
    except _BAD_BYTES:
        message, _ = message_codec("ProduceRequest", version).decode_at(body, 0)
        return _convert_message(message, version)


def _read_flexible_fast(body: memoryview) -> ProduceRequest | None:
    """Decode a request for one partition without a transaction; None for any other request.

    Most small requests have this form, and for them the cost of each step counts.
    """
    if body[0]:
        # The request has a transactional id.
        return None
    at = _FAST_NAME_AT + body[_FAST_NAME_AT - 1] + _FAST_PARTITION_BYTES
    head = parse_request_head(bytes(body[: at - 1]))
    if head is None:
        return None
    acks, timeout_ms, name, index = head
    size = body[at - 1]
    if size > 127:
        size, at = long_varint(body, at, size)
    end = at + size - 1
    if size < 1 or body[end] or body[end + 1] or body[end + 2]:
        # Tags behind the partition, the topic or the request; or records that are null.
        return None
    return new_tuple(ProduceRequest, (None, acks, timeout_ms, [(name, [(index, body[at:end])])]))


@lru_cache(maxsize=PRODUCED_TOPICS_KEPT)
def parse_request_head(head: bytes) -> tuple[int, int, str, int] | None:
    """Return acks, timeout, topic and index from the bytes before the records' size.

    Results are cached, because a producer sends the same bytes each time. None for any other form.
    """
    transactional_id, acks, timeout_ms, topic_count, size = _FAST_HEAD(head)
    # Compact lengths and counts are one more than the number they mean.
    name_end = _FAST_NAME_AT + size - 1
    partition_count, index = _FAST_PARTITION(head, name_end)
    if transactional_id or topic_count != 2 or not 0 < size < 128 or partition_count != 2:
        return None
    return acks, timeout_ms, str(head[_FAST_NAME_AT:name_end], "utf-8"), index


def _read_flexible(body: memoryview) -> ProduceRequest:
    """Decode a Produce request of a flexible version.

    Raises Refused if it has tagged fields: the table codec must decode it then.
    """
    end = len(body)
    first = body[0]
    transactional_id, at = nullable_compact_string(body, 1, end, first) if first else (None, 1)
    acks, timeout_ms = _ACKS_AND_TIMEOUT(body, at)
    topic_count, at = array_count(body, at + 6)
    topics: list[ProducedTopic] = []
    for _ in range(topic_count):
        name, at = compact_string(body, at + 1, end, body[at])
        partition_count, at = array_count(body, at)
        partitions: list[ProducedRecords] = []
        for _ in range(partition_count):
            index, size = _INDEX_AND_BYTE(body, at)
            at += 5
            if size > 127:
                size, at = long_varint(body, at, size)
            # The byte after the records is the count of tags.
            if size:
                stop = at + size - 1
                partitions.append((index, body[at:stop]))
            else:
                stop = at
                partitions.append((index, None))
            if body[stop]:
                raise Refused
            at = stop + 1
        if body[at]:
            raise Refused
        at += 1
        topics.append((name, partitions))
    if body[at]:
        raise Refused
    return new_tuple(ProduceRequest, (transactional_id, acks, timeout_ms, topics))


def _read_classic(body: memoryview, version: int) -> ProduceRequest:
    """Decode a Produce request before version 9.

    Raises Refused if the table codec must decode it.
    """
    transactional_id, at = None, 0
    if version >= _FIRST_TRANSACTIONAL:
        (size,) = _INT16(body, 0)
        at = 2
        if size >= 0:
            at = 2 + size
            transactional_id = str(body[2:at], "utf-8")
        elif size < -1:
            raise Refused
    acks, timeout_ms, topic_count = _ACKS_TIMEOUT_COUNT(body, at)
    at += 10
    if topic_count < 0:
        raise Refused
    topics = []
    for _ in range(topic_count):
        (size,) = _INT16(body, at)
        stop = at + 2 + size
        if size < 0:
            raise Refused
        name = str(body[at + 2 : stop], "utf-8")
        (partition_count,) = _INT32(body, stop)
        at = stop + 4
        if partition_count < 0:
            raise Refused
        partitions, at = _read_classic_partitions(body, at, partition_count)
        topics.append((name, partitions))
    return new_tuple(ProduceRequest, (transactional_id, acks, timeout_ms, topics))


def _read_classic_partitions(
    body: memoryview, at: int, count: int
) -> tuple[list[ProducedRecords], int]:
    """Decode `count` partitions of a classic version; return them and the position after them.

    Raises Refused for a negative size other than -1 (null) and for records beyond the body.
    """
    end = len(body)
    partitions: list[ProducedRecords] = []
    for _ in range(count):
        index, size = _INDEX_AND_SIZE(body, at)
        at += 8
        if size < 0:
            if size < -1:
                raise Refused
            partitions.append((index, None))
            continue
        stop = at + size
        if stop > end:
            raise Refused
        partitions.append((index, body[at:stop]))
        at = stop
    return partitions, at


def _convert_message(message: Message, version: int) -> ProduceRequest:
    """Return a Produce request that the table codec has decoded in the form of this module."""
    topics = [
        (topic.name, [(part.index, part.records) for part in topic.partition_data])
        for topic in message.topic_data
    ]
    transactional_id = message.transactional_id if version >= _FIRST_TRANSACTIONAL else None
    return ProduceRequest(transactional_id, message.acks, message.timeout_ms, topics)


def encode_produce_response_fast(
    version: int, topic: str, partition: int, offsets: tuple[int, int, int]
) -> bytes:
    """Encode the most frequent Produce response: one partition without an error.

    `offsets` are the base offset, the append time and the log start offset. Only for version 5 and
    later, which have all three.
    """
    prefix, suffix = split_around_numbers(version, topic)
    return prefix + _NUMBERS(partition, 0, *offsets) + suffix


@lru_cache(maxsize=PRODUCED_TOPICS_KEPT)
def split_around_numbers(version: int, topic: str) -> tuple[bytes, bytes]:
    """Return the bytes before and after the numbers of a response for one partition."""
    whole = _encode_fast(version, [(topic, [ProducedPartition(0, 0)])])
    # UTF-8 has no bytes 0xff, of which the offsets −1 consist.
    prefix, _, suffix = whole.partition(_NUMBERS(0, 0, -1, -1, -1))
    return prefix, suffix


def encode_produce_response(
    version: int,
    topics: list[AnsweredTopic],
    node_endpoints: list[NodeEndpoint] | None = None,
    throttle_ms: int = 0,
) -> bytes:
    """Encode a Produce response; raises UnencodableValue.

    `topics` are (name, partitions); `node_endpoints` are the addresses of new leaders.
    """
    if not node_endpoints and not throttle_ms:
        try:
            return _encode_fast(version, topics)
        except (Refused, struct.error, ValueError, OverflowError):
            # The general encoder writes the rare forms, and names the value that it cannot encode.
            pass
    return _encode_generally(version, topics, node_endpoints or [], throttle_ms)


def _encode_fast(version: int, topics: list[AnsweredTopic]) -> bytes:
    """Encode a response with throttle time 0 and no endpoints of leaders.

    Raises Refused for a topic name that is too long, and from version 8 on for a partition with
    record errors, a message or a current leader; struct.error, OverflowError or ValueError for a
    value that does not fit its field. Before version 8 responses have none of the rare fields.
    """
    is_flexible = version >= FIRST_FLEXIBLE
    form = _FORM_OF_VERSION[version]
    pack = _PARTITION_FORMS[form].pack
    suffix = _EMPTY_TAILS.get(form, ())
    width = 3 + (form >= 2) + (form >= 5)
    out = bytearray(_count_bytes(len(topics), is_flexible))
    for name, partitions in topics:
        raw = name.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise Refused
        out += _count_bytes(len(raw), is_flexible) if is_flexible else len(raw).to_bytes(2)
        out += raw
        out += _count_bytes(len(partitions), is_flexible)
        for partition in partitions:
            if form >= 8 and not partition.is_fast_path:
                raise Refused
            out += pack(*partition[:width], *suffix)
        if is_flexible:
            out.append(0)
    out += _THROTTLE_TIME[(version >= 1) + is_flexible]
    return bytes(out)


def _count_bytes(count: int, is_flexible: bool) -> bytes:
    """Return an encoded count: int32, in flexible versions a varint of count + 1."""
    if not is_flexible:
        return count.to_bytes(4)
    return _SMALL_COUNTS[count] if count < _SMALL_COUNTS_SIZE else varint_bytes(count + 1)


def _encode_generally(
    version: int,
    topics: list[AnsweredTopic],
    node_endpoints: list[NodeEndpoint],
    throttle_ms: int,
) -> bytes:
    """Encode a Produce response with the table codec; its errors name the field."""
    response = messages.ProduceResponse(
        responses=[
            messages.ProduceResponse.TopicProduceResponse(
                name=name,
                partition_responses=[_partition_message(partition) for partition in partitions],
            )
            for name, partitions in topics
        ]
    )
    if version >= 1:
        response.throttle_time_ms = throttle_ms
    if version >= 10:
        response.node_endpoints = [
            messages.ProduceResponse.NodeEndpoint(
                node_id=endpoint.node_id,
                host=endpoint.host,
                port=endpoint.port,
                rack=endpoint.rack,
            )
            for endpoint in node_endpoints
        ]
    return message_codec("ProduceResponse", version).encode(response)


def _partition_message(
    partition: ProducedPartition,
) -> messages.ProduceResponse.PartitionProduceResponse:
    """Return the table codec's struct for one partition of a Produce response."""
    response = messages.ProduceResponse
    row = response.PartitionProduceResponse(
        index=partition.partition,
        error_code=partition.error_code,
        base_offset=partition.base_offset,
        log_append_time_ms=partition.log_append_time_ms,
        log_start_offset=partition.log_start_offset,
        record_errors=[
            response.BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=message)
            for index, message in partition.record_errors
        ],
        error_message=partition.error_message,
    )
    if partition.current_leader is not None:
        leader_id, leader_epoch = partition.current_leader
        row.current_leader = response.LeaderIdAndEpoch(
            leader_id=leader_id, leader_epoch=leader_epoch
        )
    return row
