"""Batches for consumers of old formats."""

from __future__ import annotations

import pytest

from engine.log.conversion import (
    UnsupportedCompressionType,
    down_convert,
    down_convert_to_size,
)
from engine.records.batch import BatchView
from engine.records.builder import BatchBuilder, BatchSettings
from engine.records.codec import Codec
from engine.records.record import TimestampType
from engine.records.view import batches_in
from tests.unit.log.writing import NOW_MS, end_of_transaction, sent

LIMIT = 1 << 20


def at(offset: int, batch: memoryview) -> bytes:
    BatchView(batch).patch(base_offset=offset)
    return bytes(batch)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
def test_old_consumers_read_the_same_records(magic: int, codec: Codec) -> None:
    data = at(40, sent(3, codec=codec)) + at(43, sent(2, codec=codec))
    found = down_convert(memoryview(data), magic, limit_bytes=LIMIT)
    batches = list(batches_in(memoryview(found), allow_partial_tail=False))
    assert {magic} == {batch.magic for batch in batches}
    records = [record for batch in batches for record in batch.read_records()]
    assert [40, 41, 42, 43, 44] == [record.offset for record in records]
    assert [b"k0", b"k1", b"k2", b"k0", b"k1"] == [record.key for record in records]
    first_time = -1 if magic == 0 else NOW_MS
    assert first_time == records[0].timestamp_ms


def test_headers_and_markers_are_left_out() -> None:
    builder = BatchBuilder(BatchSettings())
    builder.append(NOW_MS, b"k", b"v", [("h", b"x")])
    data = at(0, memoryview(builder.build())) + at(1, end_of_transaction(1))
    found = down_convert(memoryview(data), 1, limit_bytes=LIMIT)
    (batch,) = batches_in(memoryview(found), allow_partial_tail=False)
    (record,) = batch.read_records()
    assert (0, b"v", ()) == (record.offset, record.value, record.headers)


def test_append_time_stays_append_time() -> None:
    batch = sent(2)
    view = BatchView(batch)
    view.patch(timestamp_type=TimestampType.LOG_APPEND_TIME, max_timestamp_ms=77)
    found = down_convert(batch, 1, limit_bytes=LIMIT)
    for message in batches_in(memoryview(found), allow_partial_tail=False):
        assert message.timestamp_type is TimestampType.LOG_APPEND_TIME
        assert message.max_timestamp_ms == 77


def test_uncompressed_records_below_the_asked_offset_are_left_out() -> None:
    data = at(10, sent(4))
    found = down_convert(memoryview(data), 1, first_offset=12, limit_bytes=LIMIT)
    offsets = [b.last_offset for b in batches_in(memoryview(found), allow_partial_tail=False)]
    assert [12, 13] == offsets


def test_zstd_has_no_old_form() -> None:
    with pytest.raises(UnsupportedCompressionType) as caught:
        down_convert(sent(codec=Codec.ZSTD), 1, limit_bytes=LIMIT)
    assert caught.value.code == 76


def test_batches_of_the_asked_format_and_a_cut_one_cost_nothing() -> None:
    old = down_convert(memoryview(at(0, sent(2))), 1, limit_bytes=LIMIT)
    data = bytes(old) + at(2, sent())[:-1]
    assert bytes(old) == down_convert(memoryview(data), 1, limit_bytes=LIMIT)


def as_sent(data: bytes | memoryview, magic: int = 1) -> bytes:
    return bytes(down_convert_to_size(memoryview(data), magic, limit_bytes=LIMIT))


def test_what_is_missing_claims_to_go_on() -> None:
    stored = bytes(at(0, sent(1))) + bytes(at(1, sent(1)))
    converted = bytes(down_convert(memoryview(stored), 1, limit_bytes=LIMIT))
    left = len(stored) - len(converted)
    head = (-1).to_bytes(8, "big", signed=True) + max(left + 1, 61).to_bytes(4, "big")
    assert converted + head + bytes(left - 12) == as_sent(stored)


def test_the_first_batch_is_whole_and_later_ones_are_cut() -> None:
    one = at(0, sent(9))
    grown = bytes(down_convert(memoryview(one), 1, limit_bytes=LIMIT))
    assert len(grown) > len(one)
    assert grown == as_sent(one)
    two = bytes(one) + bytes(at(9, sent(9)))
    whole = bytes(down_convert(memoryview(two), 1, limit_bytes=LIMIT))
    assert whole[: max(len(two), len(grown))] == as_sent(two)


def test_records_end_before_a_chunk_with_zstd() -> None:
    plain, zstd = bytes(at(0, sent(1))), bytes(at(1, sent(1, codec=Codec.ZSTD)))
    converted = bytes(down_convert(memoryview(plain), 1, limit_bytes=LIMIT))
    found = as_sent(plain + zstd)
    assert len(plain + zstd) == len(found)
    assert found.startswith(converted + b"\xff" * 8)
    with pytest.raises(UnsupportedCompressionType):
        as_sent(zstd + plain)


def test_nothing_but_markers_is_the_head_of_a_batch() -> None:
    marker = end_of_transaction(1)
    assert b"\xff" * 8 + (61).to_bytes(4, "big") == as_sent(marker)
    assert b"" == as_sent(b"")
