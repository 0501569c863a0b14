"""Rows that are encoded apart from their message are those of the whole."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from engine.wire.codec import message_codec
from engine.wire.row_bytes import encode_rows, with_rows
from engine.wire.structs import message_class

_COUNTS = (0, 1, 127, 128, 300)


def _list_offsets(count: int) -> Any:
    made = message_class("ListOffsetsResponse")
    row = made.ListOffsetsPartitionResponse
    topics = [
        made.ListOffsetsTopicResponse(name=f"t{n}", partitions=[row(partition_index=n)])
        for n in range(count)
    ]
    return made(throttle_time_ms=7, topics=topics)


@pytest.mark.parametrize("version", range(2, 9))
@pytest.mark.parametrize("count", _COUNTS)
def test_the_parts_of_a_response_are_the_whole(version: int, count: int) -> None:
    whole = _list_offsets(count)
    parts, start = [], 0
    for size in (1, 126, 200):
        some = copy.copy(whole)
        some.topics = whole.topics[start : start + size]
        parts.append(encode_rows("ListOffsets", version, some, "topics"))
        start += size
    empty = copy.copy(whole)
    empty.topics = []
    expected = message_codec("ListOffsetsResponse", version).encode(whole)
    assert expected == b"".join(with_rows("ListOffsets", version, empty, count, parts))


def test_rows_that_are_not_the_last_field_are_refused() -> None:
    response = message_class("ProduceResponse")()
    with pytest.raises(AssertionError):
        encode_rows("Produce", 9, response, "responses")
