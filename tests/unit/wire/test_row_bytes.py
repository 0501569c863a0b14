"""Rows that are encoded apart from their message are those of the whole."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from engine.wire.codec import message_codec
from engine.wire.row_bytes import encode_rows, insert_rows
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
    assert expected == b"".join(insert_rows("ListOffsets", version, empty, "topics", count, parts))


@pytest.mark.parametrize("version", range(13))
def test_fields_of_fixed_size_may_stand_behind_the_rows(version: int) -> None:
    made = message_class("MetadataResponse")
    node = made.MetadataResponseBroker(node_id=1, host="h", port=1)
    topics = [made.MetadataResponseTopic(name=f"t{n}") for n in range(200)]
    whole = made(brokers=[node], controller_id=1, topics=topics)
    if 8 <= version <= 10:
        whole.cluster_authorized_operations = 0x01020304
    empty = copy.copy(whole)
    empty.topics = []
    part = encode_rows("Metadata", version, whole, "topics")
    expected = message_codec("MetadataResponse", version).encode(whole)
    assert expected == b"".join(insert_rows("Metadata", version, empty, "topics", 200, [part]))


def test_fields_without_a_size_may_not_stand_behind_the_rows() -> None:
    response = message_class("MetadataResponse")()
    with pytest.raises(AssertionError):
        encode_rows("Metadata", 9, response, "brokers")
