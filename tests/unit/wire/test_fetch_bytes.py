"""Fetch by hand: which shapes it takes itself; for all others see test_fast_wire."""

from __future__ import annotations

from typing import Any

import pytest

from engine.wire import fetch_bytes
from engine.wire.codec import message_codec
from engine.wire.fetch_bytes import (
    FetchAnswer,
    FetchedPartition,
    decode_fetch_request,
    encode_fetch_response,
)
from engine.wire.structs import message_class

TOPIC_ID = bytes(range(16))


def request_bytes(version: int, replica_id: int = -1) -> memoryview:
    made = message_class("FetchRequest")
    name: dict[str, Any] = {"topic_id": TOPIC_ID} if version >= 13 else {"topic": "clicks"}
    asked = [made.FetchPartition(partition=3, fetch_offset=1 << 40, partition_max_bytes=99)]
    request = made(max_wait_ms=1, min_bytes=2, topics=[made.FetchTopic(partitions=asked, **name)])
    if version >= 7:
        request.forgotten_topics_data = [made.ForgottenTopic(partitions=[4, 5], **name)]
    if version >= 15:
        request.replica_state.replica_id = replica_id
    else:
        request.replica_id = replica_id
    return memoryview(message_codec("FetchRequest", version).encode(request))


@pytest.mark.parametrize("version", range(18))
@pytest.mark.parametrize("replica_id", [-1, 2])
def test_ordinary_requests_do_not_need_the_table(
    version: int, replica_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = request_bytes(version, replica_id)
    monkeypatch.setattr(fetch_bytes, "message_codec", None)
    request = decode_fetch_request(body, version)
    topic = TOPIC_ID if version >= 13 else "clicks"
    assert (replica_id, 1, 2) == request[:3]
    assert [(topic, [(3, -1, 1 << 40, -1, -1, 99)])] == request.topics
    assert ([(topic, [4, 5])] if version >= 7 else []) == request.forgotten


def test_an_answer_without_news_is_its_head() -> None:
    (part,) = encode_fetch_response(17, FetchAnswer([], 0, 0x1234))
    assert bytes.fromhex("00000000 0000 00001234 01 00") == part


def test_what_parted_is_told_in_tags() -> None:
    found = FetchedPartition(0, 0, diverging=(5, 6), current_leader=(7, 8))
    (part,) = encode_fetch_response(12, FetchAnswer([("t", [found])]))
    tags = "02 00 0d 00000005 0000000000000006 00 01 09 00000007 00000008 00"
    assert bytes.fromhex(f"01 {tags} 00 00") == bytes(part)[-30:]
