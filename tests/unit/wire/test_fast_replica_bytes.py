"""The fast path of Fetch between brokers by hand: its bytes, and what is not read so.

That they are those of the table codec is shown by `tests/property/fast_replication.py`.
"""

from __future__ import annotations

import pytest

from engine.wire.fast_fetch_bytes import TAGS_AFTER_RECORDS
from engine.wire.fast_replica_bytes import (
    ReplicaFetch,
    ReplicaFetched,
    ReplicaLimits,
    encode_replica_fetch_fast,
    encode_replica_response_head,
    read_replica_fetch_fast,
    read_replica_response_fast,
)

ID = bytes(range(16))
REQUEST = ReplicaFetch(
    7, ReplicaLimits(17, 500, 1, 10 << 20, 99, 2, 25), 3, ID, 1, 4, 1000, 4, 10, 1 << 20
)
FRAME = encode_replica_fetch_fast(b"broker-2-fetcher-0", REQUEST)
RESPONSE = (
    encode_replica_response_head(7, 99, ID, (1, 900, 900, 10), 3) + b"abc" + TAGS_AFTER_RECORDS
)
#: Where things stand in the frames.
VERSION, TOPICS, LAST = 3, 10 + 18 + 22, len(FRAME) - 1


def test_a_request_has_the_bytes_of_a_javas_follower() -> None:
    assert FRAME.hex() == (
        "0001001100000007" "0012" "62726f6b65722d322d666574636865722d30" "00"
        "000001f4" "00000001" "00a00000" "00" "00000063" "00000003"
        "02" "000102030405060708090a0b0c0d0e0f" "02"
        "00000001" "00000004" "00000000000003e8" "00000004" "000000000000000a" "00100000" "00"
        "00" "01" "01" "01" "01" "0d" "00000002" "0000000000000019" "00"
    )  # fmt: skip
    assert REQUEST == read_replica_fetch_fast(memoryview(FRAME))


def test_a_response_is_read_in_place() -> None:
    fetched = read_replica_response_fast(memoryview(RESPONSE))
    assert ReplicaFetched(99, ID, 1, 900, 10, memoryview(b"abc")) == fetched


@pytest.mark.parametrize(
    ("place", "value"),
    [(1, 0), (VERSION, 14), (VERSION, 18), (9, 17), (TOPICS, 3), (LAST, 1), (LAST - 13, 12)],
)
def test_requests_of_another_form_are_not_read(place: int, value: int) -> None:
    changed = bytearray(FRAME)
    changed[place] = value
    assert read_replica_fetch_fast(memoryview(changed)) is None


def test_what_is_cut_or_longer_is_not_read() -> None:
    for frame in (FRAME[:-1], FRAME + b"\0", FRAME[:9], b""):
        assert read_replica_fetch_fast(memoryview(frame)) is None
    for frame in (RESPONSE[:-1], RESPONSE + b"\0", RESPONSE[:60], b""):
        assert read_replica_response_fast(memoryview(frame)) is None


def test_a_client_id_of_other_letters_is_left_to_the_header() -> None:
    frame = encode_replica_fetch_fast(b"\xff" * 4, REQUEST)
    assert read_replica_fetch_fast(memoryview(frame)) is None
    long = encode_replica_fetch_fast(b"b" * 256, REQUEST)
    assert read_replica_fetch_fast(memoryview(long)) is None


@pytest.mark.parametrize("place", [4, 8, 10, 15, 32, 38, 64, 68])
def test_responses_with_more_to_them_are_not_read(place: int) -> None:
    changed = bytearray(RESPONSE)
    changed[place] ^= 1
    assert read_replica_response_fast(memoryview(changed)) is None


def test_a_response_without_records_is_not_read() -> None:
    head = encode_replica_response_head(7, 99, ID, (1, 900, 900, 10), 0)
    assert read_replica_response_fast(memoryview(head + TAGS_AFTER_RECORDS)) is None
