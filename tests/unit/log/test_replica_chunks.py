"""Fetch answers in chunks: what is taken, what is refused, where they are cut."""

from __future__ import annotations

import pytest

from engine.errors import EngineError
from engine.log.log_types import UnexpectedAppendOffset
from engine.log.replica_chunks import ReplicaChunk, split_replica_batches
from engine.log.validation import CorruptMessage
from engine.records.batch import BatchView
from engine.records.legacy_builder import LegacySettings, build_messages
from engine.records.record import Record, TimestampType
from tests.unit.log.logs import batch, data_of

BIG = 1 << 30
INT_MAX = (1 << 31) - 1


def chunks(data: bytes, end: int = 0, segment_bytes: int = BIG) -> list[ReplicaChunk]:
    return split_replica_batches(memoryview(data), log_end_offset=end, segment_bytes=segment_bytes)


def old(*offsets: int) -> bytes:
    records = [Record(n, 100 + n, TimestampType.CREATE_TIME, None, b"v") for n in offsets]
    return bytes(build_messages(records, LegacySettings(magic=1)))


def test_an_answer_is_one_chunk_with_its_largest_time() -> None:
    (chunk,) = chunks(batch(5, 2, at_ms=9) + batch(7, 2, at_ms=12) + data_of(1, 9)[:-1], 3)
    assert (5, 8, (12, 8)) == (chunk.first_offset, chunk.last_offset, chunk.largest)
    assert batch(5, 2, at_ms=9) + batch(7, 2, at_ms=12) == chunk.data
    assert [0, len(batch(5, 2))] == [found.position for found in chunk.batches]


def test_a_chunk_ends_where_a_segment_would() -> None:
    size = len(batch(0))
    data = b"".join(batch(n) for n in range(5))
    assert [2, 2, 1] == [len(c.batches) for c in chunks(data, segment_bytes=2 * size)]
    assert [1] * 5 == [len(c.batches) for c in chunks(data, segment_bytes=1)]


@pytest.mark.parametrize(("distance", "count"), [(INT_MAX, 1), (INT_MAX + 1, 2)])
def test_a_chunk_has_offsets_of_one_segment(distance: int, count: int) -> None:
    assert count == len(chunks(batch(0) + batch(distance)))


def test_old_messages_say_their_last_offset_alone() -> None:
    (chunk,) = chunks(old(3, 4), 2)
    assert (2, 4, (104, 4)) == (chunk.first_offset, chunk.last_offset, chunk.largest)
    assert [(3, -1, -1, 1), (4, -1, -1, 1)] == [
        (found.first_offset, found.leader_epoch, found.producer_id, found.magic)
        for found in chunk.batches
    ]
    (mixed,) = chunks(batch(0) + old(1) + batch(2))
    assert [2, 1, 2] == [found.magic for found in mixed.batches]


def changed(data: bytes, position: int, value: int) -> bytes:
    content = bytearray(data)
    content[position] = value
    return bytes(content)


def last_delta(data: bytes, delta: int) -> bytes:
    content = bytearray(data)
    content[23:27] = delta.to_bytes(4, "big", signed=True)
    view = BatchView(memoryview(content))
    content[17:21] = view.computed_crc().to_bytes(4, "big")
    return bytes(content)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (batch(0) + batch(0), UnexpectedAppendOffset),
        (batch(4, 2) + batch(5), UnexpectedAppendOffset),
        (old(2, 3) + old(3), UnexpectedAppendOffset),
        (last_delta(batch(0), -1), UnexpectedAppendOffset),
        (changed(batch(0), -1, 7), CorruptMessage),
        (batch(4, 2) + changed(batch(5), -1, 7), CorruptMessage),
        (changed(batch(0), 16, 3), CorruptMessage),
        (changed(batch(0), 11, 5), CorruptMessage),
        (batch(0) + bytes(80), CorruptMessage),
    ],
)
def test_an_answer_with_a_bad_batch_is_refused_whole(data: bytes, error: type[EngineError]) -> None:
    with pytest.raises(error):
        chunks(data)


def test_an_empty_answer_is_no_chunk() -> None:
    assert chunks(b"") == chunks(batch(0)[:40]) == []
