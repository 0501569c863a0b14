"""Produce by hand: which shapes it takes itself; for all others see test_fast_wire."""

from __future__ import annotations

import pytest

from engine.wire import produce_bytes
from engine.wire.codec import message_codec
from engine.wire.produce_bytes import (
    ProducedPartition,
    ProducedRecords,
    decode_produce_request,
    encode_produce_response,
)
from engine.wire.structs import message_class


def request_bytes(version: int) -> memoryview:
    made = message_class("ProduceRequest")
    partitions = [
        made.PartitionProduceData(index=0, records=b"x" * 300),
        made.PartitionProduceData(index=1, records=None),
    ]
    topics = [made.TopicProduceData(name="clicks", partition_data=partitions)]
    request = made(acks=-1, timeout_ms=5, topic_data=topics)
    return memoryview(bytearray(message_codec("ProduceRequest", version).encode(request)))


@pytest.mark.parametrize("version", range(12))
def test_ordinary_messages_do_not_need_the_table(
    version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = request_bytes(version)
    monkeypatch.setattr(produce_bytes, "message_codec", None)
    request = decode_produce_request(body, version)
    assert (None, -1, 5) == request[:3]
    assert [("clicks", [ProducedRecords(0, memoryview(b"x" * 300)), ProducedRecords(1, None)])] == (
        request.topics
    )
    answer = encode_produce_response(version, [("clicks", [ProducedPartition(0, 6, 7, 8, 9)])])
    assert b"clicks" in answer


def test_records_are_a_view_of_the_request() -> None:
    body = request_bytes(11)
    records = decode_produce_request(body, 11).topics[0][1][0].records
    assert records is not None
    records[0:2] = b"!!"
    assert b"!!xx" in bytes(body)


def test_an_answer_of_version_9_is_compact() -> None:
    answer = encode_produce_response(9, [("t", [ProducedPartition(1, 0, 2, -1, 0)])])
    partition = "00000001 0000 0000000000000002 ffffffffffffffff 0000000000000000 010000"
    assert bytes.fromhex(f"02 0274 02 {partition} 00 00000000 00") == answer
