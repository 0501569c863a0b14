"""Decode Fetch requests and encode responses without the table codec; records are separate parts.

```
request   [to v14: int32 replica id] int32 max wait · int32 min bytes · [v3+: int32 max bytes]
          [v4+: int8 isolation] [v7+: int32 session id · int32 session epoch]
          topics: TOPIC · partitions: REQUESTED
          [v7+: forgotten topics: TOPIC · int32 partitions] [v11+: string rack]
          tags (v15+): 1 replica id and epoch
REQUESTED     int32 partition · [v9+: int32 leader epoch] int64 offset · [v12+: int32 fetched epoch]
          [v5+: int64 log start] int32 max bytes
response  [v1+: int32 throttle time] [v7+: int16 error · int32 session id]
          topics: TOPIC · partitions: ANSWER
ANSWER    int32 partition · int16 error · int64 high watermark · [v4+: int64 last stable offset]
          [v5+: int64 log start] [v4+: aborted transactions?] [v11+: int32 preferred replica]
          records? · tags (v12+): 0 diverging epoch, 1 current leader
TOPIC     string name, from v13 on the 16 bytes of its id
```

From version 12 on lengths are compact and every struct ends in a tagged section. The table codec
decodes requests of any other form, and raises the errors; see `produce_bytes`.

Source: D4.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from functools import lru_cache
from struct import Struct as Format
from typing import Final, NamedTuple, TypeAlias

from engine.host.ports import FileRegion, SendPart
from engine.limits import FETCHED_TOPICS_KEPT
from engine.model import new_tuple
from engine.wire import messages
from engine.wire.codec import message_codec
from engine.wire.produce_bytes import NodeEndpoint
from engine.wire.read_parts import Refused, array_count, compact_string
from engine.wire.writer import varint_bytes

FIRST_WITH_SESSIONS: Final = 7
#: First version in which consumers may read from followers.
FIRST_FROM_FOLLOWERS: Final = 11
FIRST_FLEXIBLE: Final = 12
FIRST_WITH_TOPIC_IDS: Final = 13
FIRST_WITH_REPLICA_STATE: Final = 15
#: Value of `preferred_read_replica` without a preferred replica: read from the leader.
NO_PREFERRED_REPLICA: Final = -1
_UUID_BYTES: Final = 16
_BAD_BYTES: Final = (Refused, struct.error, IndexError, UnicodeDecodeError)

_INT16: Final = Format(">h").unpack_from
_INT32: Final = Format(">i").unpack_from
_HEAD_12: Final = Format(">iiiibii").unpack_from
_HEAD_15: Final = Format(">iiibii").unpack_from
_HEAD_OLD: Final = {
    0: Format(">iii"),
    3: Format(">iiii"),
    4: Format(">iiiib"),
    7: Format(">iiiibii"),
}
_REQUESTED_OLD: Final = {0: Format(">iqi"), 5: Format(">iqqi"), 9: Format(">iiqqi")}
#: Defaults of the fields that heads before version 7 lack.
_OLD_DEFAULTS: Final = (-1, 0, 0, 0x7FFFFFFF, 0, 0, -1)
#: Partition, leader epoch, offset, fetched epoch, log start, max bytes, no tags.
_REQUESTED_12: Final = Format(">iiqiqiB")
_read_requested_12: Final = _REQUESTED_12.unpack_from
#: Replica id and epoch as the one tag of a follower: count 1, tag 1, size 13, no tags inside.
_REPLICA_STATE: Final = Format(">BBBiqB")

_ANSWER_0: Final = Format(">ihq").pack
_ANSWER_4: Final = Format(">ihqq").pack
_ANSWER_5: Final = Format(">ihqqq").pack
_PREFERRED: Final = Format(">i").pack
_ABORTED: Final = Format(">qq").pack
_HEAD_OF_ANSWER: Final = Format(">ihi").pack
#: Tag 0 and tag 1 with their sizes and an empty tagged section inside.
_DIVERGING_EPOCH: Final = Format(">BBiqB").pack
_CURRENT_LEADER: Final = Format(">BBiiB").pack
_EPOCH_END_BYTES: Final = 13
_LEADER_BYTES: Final = 9


class RequestedPartition(NamedTuple):
    """The request for one partition; epochs and log start offset are −1 if not set."""

    partition: int
    current_leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int
    max_bytes: int


#: A topic's name, or from version 13 on its id, and its requested partitions.
RequestedTopic: TypeAlias = tuple[str | bytes, list[RequestedPartition]]
#: A topic and its partitions to be removed from the session.
ForgottenTopic: TypeAlias = tuple[str | bytes, list[int]]


class FetchRequest(NamedTuple):
    """A decoded Fetch request; it refers to no bytes of the request's buffer."""

    replica_id: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    session_id: int
    session_epoch: int
    topics: list[RequestedTopic]
    forgotten: list[ForgottenTopic]
    rack_id: str = ""
    replica_epoch: int = -1


class FetchedPartition(NamedTuple):
    """One partition of a Fetch response; offsets are −1 if unknown because of an error.

    `records` and `aborted` None mean null; `aborted` has (producer id, first offset). `diverging`
    is (epoch, end offset), `current_leader` (id, epoch).
    """

    partition: int
    error_code: int
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    records: SendPart | None = b""
    aborted: Sequence[tuple[int, int]] | None = None
    diverging: tuple[int, int] | None = None
    current_leader: tuple[int, int] | None = None
    preferred_read_replica: int = NO_PREFERRED_REPLICA


#: A topic's name or id and its responses.
FetchedTopic: TypeAlias = tuple[str | bytes, list[FetchedPartition]]


class FetchResponse(NamedTuple):
    """A Fetch response; `error` and the session id apply to the whole session."""

    topics: list[FetchedTopic]
    error_code: int = 0
    session_id: int = 0
    node_endpoints: Sequence[NodeEndpoint] = ()
    throttle_ms: int = 0


# Requests


def decode_fetch_request(body: memoryview, version: int) -> FetchRequest:
    """Decode a Fetch request; trailing bytes are ignored. Raises MalformedMessage."""
    try:
        if version >= FIRST_FLEXIBLE:
            return _read_flexible(bytes(body), version)
        return _read_classic(bytes(body), version)
    except _BAD_BYTES:
        message, _ = message_codec("FetchRequest", version).decode_at(body, 0)
        return _convert_message(message, version)


def _read_flexible(body: bytes, version: int) -> FetchRequest:
    """Decode a Fetch request of version 12 or later.

    Raises Refused, or an error of a read beyond the end, if the table codec must decode it.
    """
    end = len(body)
    if version >= FIRST_WITH_REPLICA_STATE:
        replica_id = -1
        max_wait, min_bytes, max_bytes, isolation, session_id, epoch = _HEAD_15(body, 0)
        at = 21
    else:
        replica_id, max_wait, min_bytes, max_bytes, isolation, session_id, epoch = _HEAD_12(body, 0)
        at = 25
    topics: list[RequestedTopic] = []
    count, at = array_count(body, at)
    for _ in range(count):
        topic, at = _topic(body, at, end, version)
        partitions, at = _requested_12(body, at)
        topics.append((topic, partitions))
    forgotten: list[ForgottenTopic] = []
    count, at = array_count(body, at)
    for _ in range(count):
        topic, at = _topic(body, at, end, version)
        size, at = array_count(body, at)
        numbers = struct.unpack_from(f">{size}i", body, at) if at + 4 * size <= end else None
        at += 4 * size
        if numbers is None or body[at]:
            raise Refused
        at += 1
        forgotten.append((topic, list(numbers)))
    rack_id, at = compact_string(body, at + 1, end, body[at])
    replica_epoch = -1
    tag_count = body[at]
    at += 1
    if tag_count:
        replica_id, replica_epoch, at = _replica_state(body, at - 1, version)
    return new_tuple(
        FetchRequest,
        (replica_id, max_wait, min_bytes, max_bytes, isolation, session_id, epoch, topics,
         forgotten, rack_id, replica_epoch),
    )  # fmt: skip


def _topic(body: bytes, at: int, end: int, version: int) -> tuple[str | bytes, int]:
    """Return (a topic's name, or its id from version 13 on; the position after it)."""
    if version < FIRST_WITH_TOPIC_IDS:
        return compact_string(body, at + 1, end, body[at])
    stop = at + _UUID_BYTES
    if stop > end:
        raise Refused
    return body[at:stop], stop


def _requested_12(body: bytes, at: int) -> tuple[list[RequestedPartition], int]:
    """Return the partitions of a topic, and the position of the next topic."""
    count, at = array_count(body, at)
    partitions = []
    for _ in range(count):
        *requested, tag_count = _read_requested_12(body, at)
        if tag_count:
            raise Refused
        at += _REQUESTED_12.size
        partitions.append(new_tuple(RequestedPartition, requested))
    if body[at]:
        raise Refused
    return partitions, at + 1


def _replica_state(body: bytes, at: int, version: int) -> tuple[int, int, int]:
    """Return a follower's id and epoch and the position after the tags.

    Raises Refused for other tags.
    """
    count, tag, size, replica_id, epoch, inside = _REPLICA_STATE.unpack_from(body, at)
    if (count, tag, size, inside) != (1, 1, 13, 0) or version < FIRST_WITH_REPLICA_STATE:
        raise Refused
    return replica_id, epoch, at + _REPLICA_STATE.size


def _read_classic(body: bytes, version: int) -> FetchRequest:
    """Decode a Fetch request before version 12.

    Raises Refused if the table codec must decode it.
    """
    head = _HEAD_OLD[0 if version < 3 else 3 if version < 4 else 4 if version < 7 else 7]
    values = head.unpack_from(body, 0)
    values = (*values, *_OLD_DEFAULTS[len(values) :])
    replica_id, max_wait_ms, min_bytes, max_bytes, isolation, session_id, epoch = values
    requested = _REQUESTED_OLD[0 if version < 5 else 5 if version < 9 else 9]
    topics: list[RequestedTopic] = []
    count, at = _classic_count(body, head.size)
    for _ in range(count):
        topic, at = _classic_string(body, at)
        size, at = _classic_count(body, at)
        partitions = []
        for _ in range(size):
            partitions.append(_classic_requested(requested.unpack_from(body, at)))
            at += requested.size
        topics.append((topic, partitions))
    forgotten: list[ForgottenTopic] = []
    count, at = _classic_count(body, at) if version >= FIRST_WITH_SESSIONS else (0, at)
    for _ in range(count):
        topic, at = _classic_string(body, at)
        size, at = _classic_count(body, at)
        if at + 4 * size > len(body):
            raise Refused
        forgotten.append((topic, list(struct.unpack_from(f">{size}i", body, at))))
        at += 4 * size
    rack_id, at = _classic_string(body, at) if version >= 11 else ("", at)
    return new_tuple(
        FetchRequest,
        (replica_id, max_wait_ms, min_bytes, max_bytes, isolation, session_id, epoch, topics,
         forgotten, rack_id, -1),
    )  # fmt: skip


def _classic_requested(values: tuple[int, ...]) -> RequestedPartition:
    """Return a requested partition from its numbers; fields that older versions lack are −1."""
    if len(values) == 3:
        partition, offset, max_bytes = values
        return RequestedPartition(partition, -1, offset, -1, -1, max_bytes)
    if len(values) == 4:
        partition, offset, log_start, max_bytes = values
        return RequestedPartition(partition, -1, offset, -1, log_start, max_bytes)
    partition, leader_epoch, offset, log_start, max_bytes = values
    return new_tuple(
        RequestedPartition, (partition, leader_epoch, offset, -1, log_start, max_bytes)
    )


def _classic_count(body: bytes, at: int) -> tuple[int, int]:
    """Return an int32 array count and the position after it; raise Refused if negative."""
    (count,) = _INT32(body, at)
    if count < 0:
        raise Refused
    return count, at + 4


def _classic_string(body: bytes, at: int) -> tuple[str, int]:
    """Return an int16-sized string and the position after it; raise Refused for null."""
    (size,) = _INT16(body, at)
    stop = at + 2 + size
    if size < 0 or stop > len(body):
        raise Refused
    return str(body[at + 2 : stop], "utf-8"), stop


def _convert_message(message: messages.FetchRequest, version: int) -> FetchRequest:
    """Return a Fetch request that the table codec has decoded in the form of this module."""
    has_ids = version >= FIRST_WITH_TOPIC_IDS
    topics: list[RequestedTopic] = [
        (
            topic.topic_id if has_ids else topic.topic,
            [
                RequestedPartition(
                    partition.partition,
                    partition.current_leader_epoch,
                    partition.fetch_offset,
                    partition.last_fetched_epoch,
                    partition.log_start_offset,
                    partition.partition_max_bytes,
                )
                for partition in topic.partitions
            ],
        )
        for topic in message.topics
    ]
    forgotten: list[ForgottenTopic] = [
        (topic.topic_id if has_ids else topic.topic, topic.partitions)
        for topic in message.forgotten_topics_data
    ]
    state = message.replica_state
    has_state = version >= FIRST_WITH_REPLICA_STATE
    return FetchRequest(
        state.replica_id if has_state else message.replica_id,
        message.max_wait_ms,
        message.min_bytes,
        message.max_bytes,
        message.isolation_level,
        message.session_id,
        message.session_epoch,
        topics,
        forgotten,
        message.rack_id,
        state.replica_epoch if has_state else -1,
    )


# Responses


def encode_fetch_response(version: int, answer: FetchResponse) -> list[SendPart]:
    """Encode a Fetch response as a list of parts; each file region is a separate part."""
    return _Writer(version).write_response(answer)


def encode_fetch_response_in_pieces(
    version: int, answer: FetchResponse, parts: list[SendPart], partitions_per_step: int
) -> Iterator[None]:
    """Encode a Fetch response, some partitions in each step of the iterator.

    `parts` is complete after the last step. So a large response does not block the event loop.
    """
    return _Writer(version).write_in_steps(answer, parts, partitions_per_step)


@lru_cache(maxsize=FETCHED_TOPICS_KEPT)
def encode_single_topic_start(version: int, topic: str | bytes) -> bytes:
    """Return the bytes between a Fetch response's session id and its only partition.

    These are the count of topics, the topic, and the count of partitions. `topic` is a name, or a
    topic id from version 13 on.
    """
    writer = _Writer(version)
    writer.write_count(1)
    writer.write_topic(topic)
    writer.write_count(1)
    return bytes(writer.out)


class _Writer:
    """Encodes one response; bytes are collected in `out` until the next file region."""

    __slots__ = ("is_flexible", "out", "parts", "version")

    def __init__(self, version: int) -> None:
        """Start an empty response of a version."""
        self.version = version
        self.is_flexible = version >= FIRST_FLEXIBLE
        self.out = bytearray()
        #: Complete parts of the response: bytes and file regions.
        self.parts: list[SendPart] = []

    def write_response(self, answer: FetchResponse) -> list[SendPart]:
        """Write a complete response and return its parts."""
        self._write_head(answer)
        for topic, partitions in answer.topics:
            self.write_topic(topic)
            self.write_count(len(partitions))
            for partition in partitions:
                self._write_partition(partition)
            if self.is_flexible:
                self.out.append(0)
        self._write_end(answer)
        return self.parts

    def write_in_steps(
        self, answer: FetchResponse, parts: list[SendPart], partitions_per_step: int
    ) -> Iterator[None]:
        """Write a complete response, and yield after each step so that the loop can do other work.

        After the last step the parts are added to `parts`.
        """
        self._write_head(answer)
        count = 0
        for topic, partitions in answer.topics:
            self.write_topic(topic)
            self.write_count(len(partitions))
            for partition in partitions:
                self._write_partition(partition)
                count += 1
                if count % partitions_per_step == 0:
                    yield
            if self.is_flexible:
                self.out.append(0)
        self._write_end(answer)
        parts += self.parts

    def _write_head(self, answer: FetchResponse) -> None:
        """Write the version's fields before the topics, and the number of topics."""
        version, out = self.version, self.out
        if version >= FIRST_WITH_SESSIONS:
            out += _HEAD_OF_ANSWER(answer.throttle_ms, answer.error_code, answer.session_id)
        elif version >= 1:
            out += answer.throttle_ms.to_bytes(4)
        self.write_count(len(answer.topics))

    def _write_end(self, answer: FetchResponse) -> None:
        """Write the tagged fields of flexible versions and close the last part."""
        if self.is_flexible:
            self._write_endpoints(answer.node_endpoints)
        if self.out:
            self.parts.append(self.out)

    def write_count(self, count: int) -> None:
        """Write the number of elements of an array, or the size of records."""
        if not self.is_flexible:
            self.out += count.to_bytes(4)
        elif count < 127:
            self.out.append(count + 1)
        else:
            self.out += varint_bytes(count + 1)

    def write_topic(self, topic: str | bytes) -> None:
        """Write a topic's name or id."""
        if isinstance(topic, bytes):
            self.out += topic
            return
        raw = topic.encode()
        self.out += varint_bytes(len(raw) + 1) if self.is_flexible else len(raw).to_bytes(2)
        self.out += raw

    def _write_partition(self, fetched: FetchedPartition) -> None:
        """Write one partition of the response, with the fields that the version has."""
        version, out = self.version, self.out
        (
            index, code, watermark, stable, log_start, records, aborted, diverging, leader,
            preferred,
        ) = fetched  # fmt: skip
        if version >= 5:
            out += _ANSWER_5(index, code, watermark, stable, log_start)
        elif version == 4:
            out += _ANSWER_4(index, code, watermark, stable)
        else:
            out += _ANSWER_0(index, code, watermark)
        if version >= 4:
            self._write_aborted(aborted)
        if version >= 11:
            out += _PREFERRED(preferred)
        self._write_records(records)
        if self.is_flexible:
            self._write_tags(diverging, leader)

    def _write_aborted(self, aborted: Sequence[tuple[int, int]] | None) -> None:
        """Write the aborted transactions of a partition; None is a null array."""
        if aborted is None:
            self.out += b"\x00" if self.is_flexible else b"\xff\xff\xff\xff"
            return
        self.write_count(len(aborted))
        for producer_id, first_offset in aborted:
            self.out += _ABORTED(producer_id, first_offset)
            if self.is_flexible:
                self.out.append(0)

    def _write_records(self, records: SendPart | None) -> None:
        """Write a partition's records; a file region becomes a part that is sent uncopied."""
        if records is None:
            self.out += b"\x00" if self.is_flexible else b"\xff\xff\xff\xff"
        elif isinstance(records, FileRegion):
            self.write_count(records.length)
            self.parts += (self.out, records)
            self.out = bytearray()
        else:
            self.write_count(len(records))
            self.out += records

    def _write_tags(
        self, diverging: tuple[int, int] | None, leader: tuple[int, int] | None
    ) -> None:
        """Write a partition's tagged fields: diverging epoch (0) and current leader (1)."""
        if diverging is None and leader is None:
            self.out.append(0)
            return
        self.out.append((diverging is not None) + (leader is not None))
        if diverging is not None:
            self.out += _DIVERGING_EPOCH(0, _EPOCH_END_BYTES, *diverging, 0)
        if leader is not None:
            self.out += _CURRENT_LEADER(1, _LEADER_BYTES, *leader, 0)

    def _write_endpoints(self, endpoints: Sequence[NodeEndpoint]) -> None:
        """Write the tagged section of the response, with the leaders' addresses (version 16 on)."""
        if not endpoints:
            self.out.append(0)
            return
        section = bytearray(varint_bytes(len(endpoints) + 1))
        for endpoint in endpoints:
            host = endpoint.host.encode()
            rack = None if endpoint.rack is None else endpoint.rack.encode()
            section += _PREFERRED(endpoint.node_id)
            section += varint_bytes(len(host) + 1) + host
            section += _PREFERRED(endpoint.port)
            section += b"\x00" if rack is None else varint_bytes(len(rack) + 1) + rack
            section.append(0)
        self.out += b"\x01\x00" + varint_bytes(len(section)) + section
