"""Usual produce requests are read as the way around reads them, all others not at all."""

from __future__ import annotations

import random

import pytest

from engine.limits import KEPT_CLIENT_ID_BYTES_MAX
from engine.wire import fast_produce_bytes
from engine.wire.codec import message_codec
from engine.wire.errors import MalformedMessage
from engine.wire.fast_produce_bytes import read_produce_fast
from engine.wire.headers import encode_request_header, read_request_header, response_header_bytes
from engine.wire.produce_bytes import decode_produce_request, encode_produce_response_fast
from tests.unit.api.data_stage import produce_request

_KEY = 0


def frame_of(
    size: int = 10, *, version: int = 9, client_id: str | None = "c", **more: object
) -> bytes:
    """Return a request frame for partition 3 of topic `t`."""
    request = produce_request({"t": [(3, bytes(size))]}, acks=1)
    for name, value in more.items():
        setattr(request, name, value)
    head = encode_request_header(_KEY, version, 77, client_id)
    return head + message_codec("ProduceRequest", version).encode(request)


def read_by_the_way_around(frame: bytes) -> object:
    """Return version, correlation id, client id and request, or that it is malformed."""
    view = memoryview(frame)
    try:
        key, version, correlation_id, client_id, position = read_request_header(view)
        assert key == _KEY
        request = decode_produce_request(view[position:], version)
    except MalformedMessage:
        return None
    transactional_id, acks, _, topics = request
    found = [(name, index, bytes(data or b"")) for name, parts in topics for index, data in parts]
    return version, correlation_id, client_id, transactional_id, acks, found


def read_here(frame: bytes) -> object:
    """Return the same of a usual request."""
    found = read_produce_fast(memoryview(frame))
    if found is None:
        return None
    version, correlation_id, head, records = found
    topic, index = head.topic_partition
    requested = [(topic, index, bytes(records))]
    return version, correlation_id, head.client_id, None, head.acks, requested


@pytest.mark.parametrize("id_", ["x", "a transactional id of another length"])
def test_a_request_in_a_transaction_takes_no_place_among_the_heads(id_: str) -> None:
    before = fast_produce_bytes._parse_head.cache_info()
    assert read_here(frame_of(200, transactional_id=id_)) is None
    assert before == fast_produce_bytes._parse_head.cache_info()


@pytest.mark.parametrize("size", [1, 126, 127, 128, 16_382, 16_383, 16_384, 2_097_150, 2_097_151])
@pytest.mark.parametrize("version", [9, 10, 11])
def test_records_of_every_length_are_found(size: int, version: int) -> None:
    frame = frame_of(size, version=version)
    found = read_here(frame)
    # Three bytes of length go up to 2 MiB; requests above it are not those that steps count for.
    assert (read_by_the_way_around(frame) if size < 2_097_151 else None) == found


FAST = {
    "no client id": frame_of(client_id=""),
    "a client id of two bytes": frame_of(client_id="é"),
    "the longest client id": frame_of(client_id="c" * KEPT_CLIENT_ID_BYTES_MAX),
    "no records": frame_of(topic_data=produce_request({"a": [(0, b"")]}).topic_data),
    "no name": frame_of(topic_data=produce_request({"": [(0, b"x")]}).topic_data),
    "bytes behind": frame_of() + b"behind",
}
SLOW_PATH = {
    "an old version": frame_of(version=8),
    "null in place of a client id": frame_of(client_id=None),
    # What is remembered of a producer must stay small, with any client id.
    "a long client id": frame_of(client_id="c" * (KEPT_CLIENT_ID_BYTES_MAX + 1)),
    "the longest that there is": frame_of(client_id="c" * 32_767),
    "a transactional id": frame_of(transactional_id="x"),
    "an empty transactional id": frame_of(transactional_id=""),
    "no topic": frame_of(topic_data=[]),
    "two topics": frame_of(
        topic_data=produce_request({"a": [(0, b"x")], "b": [(0, b"y")]}).topic_data
    ),
    "two partitions": frame_of(
        topic_data=produce_request({"a": [(0, b"x"), (1, b"y")]}).topic_data
    ),
    "null in place of records": frame_of(topic_data=produce_request({"a": [(0, None)]}).topic_data),
    "a long name": frame_of(topic_data=produce_request({"n" * 200: [(0, b"x")]}).topic_data),
}


@pytest.mark.parametrize("name", FAST)
def test_fast_requests_are_read_as_the_way_around_reads_them(name: str) -> None:
    frame = FAST[name]
    assert read_by_the_way_around(frame) == read_here(frame)


@pytest.mark.parametrize("name", SLOW_PATH)
def test_unfast_requests_are_left_to_the_way_around(name: str) -> None:
    assert read_here(SLOW_PATH[name]) is None


def test_a_request_cut_short_anywhere_is_left_to_the_way_around() -> None:
    frame = frame_of(300)
    assert read_here(frame) is not None
    for size in range(len(frame)):
        assert read_here(frame[:size]) in (None, read_by_the_way_around(frame[:size]))


def test_a_request_with_any_wrong_bytes_is_read_alike_or_left() -> None:
    chosen = random.Random(11)
    whole = frame_of(40)
    for at in range(4, len(whole)):
        for byte in {0, 1, 2, 0x7F, 0x80, 0xFF, chosen.randrange(256)}:
            frame = whole[:at] + bytes((byte,)) + whole[at + 1 :]
            assert read_here(frame) in (None, read_by_the_way_around(frame)), (at, byte)


@pytest.mark.parametrize("version", [9, 10, 11])
def test_its_answer_is_that_of_the_way_around(version: int) -> None:
    found = read_produce_fast(memoryview(frame_of(version=version)))
    assert found is not None
    offsets = (5, -1, 2)
    expected = response_header_bytes(_KEY, version, 77) + encode_produce_response_fast(
        version, "t", 3, offsets
    )
    assert expected == found[2].answer(77, *offsets)
