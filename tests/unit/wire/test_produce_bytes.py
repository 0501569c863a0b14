"""Produce by hand: which shapes it takes itself; for all others see test_fast_wire."""

from __future__ import annotations

import pytest

from engine.wire import produce_bytes
from engine.wire.codec import message_codec
from engine.wire.produce_bytes import (
    ProducedPartition,
    decode_produce_request,
    encode_produce_response,
    encode_produce_response_fast,
    parse_request_head,
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
    assert [("clicks", [(0, memoryview(b"x" * 300)), (1, None)])] == request.topics
    answer = encode_produce_response(version, [("clicks", [ProducedPartition(0, 6, 7, 8, 9)])])
    assert b"clicks" in answer


@pytest.mark.parametrize("id_", ["x", "a transactional id of another length"])
def test_a_request_in_a_transaction_needs_no_table_and_no_place_among_the_heads(
    id_: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = message_class("ProduceRequest")
    data = made.PartitionProduceData(index=3, records=bytes(120))
    topic = made.TopicProduceData(name="t", partition_data=[data])
    body = message_codec("ProduceRequest", 9).encode(
        made(transactional_id=id_, acks=-1, timeout_ms=5, topic_data=[topic])
    )
    monkeypatch.setattr(produce_bytes, "message_codec", None)
    before = parse_request_head.cache_info()
    request = decode_produce_request(memoryview(body), 9)
    assert (id_, -1, 5, [("t", [(3, bytes(120))])]) == request
    assert before == parse_request_head.cache_info()


def test_records_are_a_view_of_the_request() -> None:
    body = request_bytes(11)
    records = decode_produce_request(body, 11).topics[0][1][0][1]
    assert records is not None
    records[0:2] = b"!!"
    assert b"!!xx" in bytes(body)


def test_an_answer_of_version_9_is_compact() -> None:
    answer = encode_produce_response(9, [("t", [ProducedPartition(1, 0, 2, -1, 0)])])
    partition = "00000001 0000 0000000000000002 ffffffffffffffff 0000000000000000 010000"
    assert bytes.fromhex(f"02 0274 02 {partition} 00 00000000 00") == answer


@pytest.mark.parametrize("version", range(5, 12))
@pytest.mark.parametrize("topic", ["t", "clicks", "x" * 126, "x" * 127, "x" * 249, "ÿþ", ""])
@pytest.mark.parametrize("numbers", [(0, -1, -1, -1), (7, 1 << 40, 1_700_000_000_000, 5)])
def test_the_answer_for_one_partition_is_the_same_by_its_short_way(
    version: int, topic: str, numbers: tuple[int, int, int, int]
) -> None:
    index, *offsets = numbers
    answered = [(topic, [ProducedPartition(index, 0, *offsets)])]
    short = encode_produce_response_fast(
        version, topic, index, (offsets[0], offsets[1], offsets[2])
    )
    assert encode_produce_response(version, answered) == short


def test_a_length_of_two_bytes_is_read_like_one_of_one() -> None:
    body = bytes(request_bytes(9))
    at = body.index(b"\x07clicks")
    longer = body[:at] + b"\x87\x00" + body[at + 1 :]
    assert decode_produce_request(memoryview(body), 9) == (
        decode_produce_request(memoryview(longer), 9)
    )


@pytest.mark.parametrize("version", [9, 10, 11])
@pytest.mark.parametrize("name_size", [1, 126, 127, 128, 249])
@pytest.mark.parametrize("size", [None, 0, 1, 126, 127, 20_000])
def test_requests_for_one_partition_are_read_as_the_table_reads_them(
    version: int, name_size: int, size: int | None
) -> None:
    made = message_class("ProduceRequest")
    records = None if size is None else b"r" * size
    partition = made.PartitionProduceData(index=3, records=records)
    topic = made.TopicProduceData(name="n" * name_size, partition_data=[partition])
    codec = message_codec("ProduceRequest", version)
    body = codec.encode(made(acks=1, timeout_ms=5, topic_data=[topic]))
    expected = (None, 1, 5, [("n" * name_size, [(3, records)])])
    assert expected == decode_produce_request(memoryview(body), version)
    assert expected == decode_produce_request(memoryview(body + b"more"), version)


@pytest.mark.parametrize("behind", [1, 2, 3])
def test_tags_behind_one_partition_are_passed_over(behind: int) -> None:
    made = message_class("ProduceRequest")
    partition = made.PartitionProduceData(index=3, records=b"rr")
    topic = made.TopicProduceData(name="n", partition_data=[partition])
    body = message_codec("ProduceRequest", 9).encode(made(acks=1, topic_data=[topic]))
    at = len(body) - behind
    tagged = body[:at] + b"\x01\x07\x02!!" + body[at + 1 :]
    request = decode_produce_request(memoryview(tagged), 9)
    assert [("n", [(3, b"rr")])] == request.topics
