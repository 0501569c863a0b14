"""Fetch by hand: which shapes it takes itself; for all others see test_fast_wire."""

from __future__ import annotations

from typing import Any

import pytest

from engine.host.ports import FileRegion
from engine.wire import fetch_bytes
from engine.wire.codec import message_codec
from engine.wire.fetch_bytes import (
    FetchedPartition,
    FetchResponse,
    decode_fetch_request,
    encode_fetch_response,
)
from engine.wire.structs import message_class

TOPIC_ID = bytes(range(16))


def request_bytes(version: int, replica_id: int = -1) -> memoryview:
    made = message_class("FetchRequest")
    name: dict[str, Any] = {"topic_id": TOPIC_ID} if version >= 13 else {"topic": "clicks"}
    requested = [made.FetchPartition(partition=3, fetch_offset=1 << 40, partition_max_bytes=99)]
    request = made(
        max_wait_ms=1, min_bytes=2, topics=[made.FetchTopic(partitions=requested, **name)]
    )
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
    (part,) = encode_fetch_response(17, FetchResponse([], 0, 0x1234))
    assert bytes.fromhex("00000000 0000 00001234 01 00") == part


def test_divergence_is_sent_in_tags() -> None:
    found = FetchedPartition(0, 0, diverging=(5, 6), current_leader=(7, 8))
    (part,) = encode_fetch_response(12, FetchResponse([("t", [found])]))
    tags = "02 00 0d 00000005 0000000000000006 00 01 09 00000007 00000008 00"
    assert bytes.fromhex(f"01 {tags} 00 00") == bytes(part)[-30:]


@pytest.mark.parametrize("version", range(4, 18))
@pytest.mark.parametrize("size", [0, 1, 126, 127, 40_000])
@pytest.mark.parametrize("error_code", [0, 1])
def test_an_answer_for_one_partition_is_what_the_table_writes(
    version: int, size: int, error_code: int
) -> None:
    topic = TOPIC_ID if version >= 13 else "clicks"
    found = FetchedPartition(3, error_code, 1 << 40, 1 << 39, 7, b"r" * size)
    parts = encode_fetch_response(version, FetchResponse([(topic, [found])], 0, 9))
    made = message_class("FetchResponse")
    partition = made.PartitionData(
        partition_index=3,
        error_code=error_code,
        high_watermark=1 << 40,
        last_stable_offset=1 << 39,
        log_start_offset=7 if version >= 5 else -1,
        aborted_transactions=None,
        records=b"r" * size,
    )
    name = {"topic_id": TOPIC_ID} if version >= 13 else {"topic": "clicks"}
    response = made(responses=[made.FetchableTopicResponse(partitions=[partition], **name)])
    if version >= 7:
        response.session_id = 9
    expected = message_codec("FetchResponse", version).encode(response)
    assert bytes(expected) == b"".join(bytes(part) for part in parts)  # type: ignore[arg-type]


@pytest.mark.parametrize("version", [7, 11, 17])
def test_a_region_of_a_file_stays_one(version: int) -> None:
    region = FileRegion(5, 100, 200_000)
    topic = TOPIC_ID if version >= 13 else "clicks"
    parts = encode_fetch_response(
        version, FetchResponse([(topic, [FetchedPartition(0, 0, records=region)])])
    )
    assert region is parts[1]
