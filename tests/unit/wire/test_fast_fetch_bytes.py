"""The usual Fetch by hand: it reads and writes what the other forms do."""

from __future__ import annotations

from typing import Any

import pytest

from engine.errors import WireError
from engine.host.ports import FileRegion
from engine.wire import fast_fetch_bytes
from engine.wire.codec import message_codec
from engine.wire.fast_fetch_bytes import (
    TAGS_AFTER_RECORDS,
    answer_without_news,
    encode_response_head,
    read_fetch_request,
)
from engine.wire.fetch_bytes import (
    FetchedPartition,
    FetchResponse,
    decode_fetch_request,
    encode_fetch_response,
)
from engine.wire.structs import message_class

TOPIC_ID = bytes(range(16))


def request_bytes(version: int, *indexes: int, **more: Any) -> bytes:
    """Return a request for partitions of one topic, no topic without any."""
    made = message_class("FetchRequest")
    name: dict[str, Any] = {"topic_id": TOPIC_ID} if version >= 13 else {"topic": "clicks"}
    requested = [
        made.FetchPartition(partition=index, fetch_offset=1 << 40, partition_max_bytes=99)
        for index in indexes
    ]
    topics = [made.FetchTopic(partitions=requested, **name)] if requested else []
    request = made(max_wait_ms=1, min_bytes=2, max_bytes=3, topics=topics, **more)
    return message_codec("FetchRequest", version).encode(request)


def read_by(reader: Any, body: bytes, version: int) -> Any:
    try:
        return reader(memoryview(body), version)
    except WireError as error:
        return str(error)


@pytest.mark.parametrize("version", range(11, 18))
@pytest.mark.parametrize("indexes", [(), (3,), (3, 4)])
def test_any_bytes_are_read_as_the_other_reads_them(version: int, indexes: tuple[int, ...]) -> None:
    bodies = [
        request_bytes(version, *indexes),
        request_bytes(version, *indexes, rack_id="rack-ä", session_id=7, session_epoch=8),
    ]
    for body in tuple(bodies):
        bodies += [body[:size] for size in range(len(body))]
        bodies += [body + b"\0", body + b"more"]
        for at in range(len(body)):
            for value in (0, 1, 2, 0x7F, 0x80, 0xFF):
                bodies.append(body[:at] + bytes((value,)) + body[at + 1 :])
    for body in bodies:
        expected = read_by(decode_fetch_request, body, version)
        assert expected == read_by(read_fetch_request, body, version)


@pytest.mark.parametrize(("version", "indexes"), [(11, (3,)), (15, (3,)), (17, (3,)), (17, ())])
def test_fast_requests_do_not_need_the_other(
    version: int, indexes: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    body = request_bytes(version, *indexes)
    expected = decode_fetch_request(memoryview(body), version)
    monkeypatch.setattr(fast_fetch_bytes, "decode_fetch_request", None)
    assert expected == read_fetch_request(memoryview(body), version)


@pytest.mark.parametrize("version", range(7, 18))
@pytest.mark.parametrize(
    "size", [0, 1, 126, 127, (1 << 14) - 2, (1 << 14) - 1, (1 << 21) - 1, (1 << 31) - 1]
)
@pytest.mark.parametrize("aborted", [None, ()])
def test_one_partition_is_written_as_the_other_writes_it(
    version: int, size: int, aborted: tuple[()] | None
) -> None:
    topic = TOPIC_ID if version >= 13 else "clicks"
    records = FileRegion(0, 0, size)
    found = FetchedPartition(3, 0, 1 << 40, 1 << 39, 7, records, aborted)
    parts = encode_fetch_response(version, FetchResponse([(topic, [found])], 0, 9))
    tags = TAGS_AFTER_RECORDS if version >= 12 else b""
    head = encode_response_head(
        version, 9, topic, (3, 1 << 40, 1 << 39, 7), size, has_aborted=aborted is not None
    )
    before, between, *behind = parts
    assert (head, records, tags) == (before, between, b"".join(bytes(part) for part in behind))


@pytest.mark.parametrize("version", range(7, 18))
def test_no_news_is_written_as_the_other_writes_it(version: int) -> None:
    (part,) = encode_fetch_response(version, FetchResponse([], 0, 0x1234))
    assert part == answer_without_news(version, 0x1234)
