"""Building magic 2 batches: bytes, header rules, sizes, refusals."""

from __future__ import annotations

import pytest

from engine.records.batch import BatchView
from engine.records.builder import (
    BatchBuilder,
    BatchRefused,
    BatchSettings,
    batch_size_bytes_max,
    build_batch,
    build_empty_batch,
    record_size_bytes,
    settings_of,
    write_record,
)
from engine.records.codec import Codec
from engine.records.record import Record, TimestampType
from tests.unit.records.samples import NOW, simple_batch, view_of

PRODUCER = BatchSettings(producer_id=9, producer_epoch=0, base_sequence=0)


def test_a_record_has_these_bytes() -> None:
    out = bytearray(b"..")
    size = write_record(out, 1, 2, b"key", None, (("h", None), ("é", b"v")))
    assert size == len(out) - 2
    assert out.hex(" ") == "2e 2e 22 00 02 04 06 6b 65 79 01 04 02 68 01 04 c3 a9 02 76"


def test_a_batch_of_one_record_has_these_bytes() -> None:
    builder = BatchBuilder(BatchSettings(base_offset=5, leader_epoch=1))
    builder.append(1000, b"k", b"v")
    # Printed by Kafka 3.9.1's MemoryRecordsBuilder for the same calls.
    assert builder.build().hex(" ") == (
        "00 00 00 00 00 00 00 05 00 00 00 3a 00 00 00 01 02 71 6a 61 89 00 00 00 00 00 00 "
        "00 00 00 00 00 00 03 e8 00 00 00 00 00 00 03 e8 ff ff ff ff ff ff ff ff ff ff ff ff "
        "ff ff 00 00 00 01 10 00 00 00 02 6b 02 76 00"
    )


def test_the_header_follows_the_records() -> None:
    builder = BatchBuilder(BatchSettings(base_offset=10))
    builder.append(NOW, b"a", b"1")
    builder.append(NOW + 5, b"b", b"2", offset=14)
    builder.append(NOW - 3, b"c", b"3")
    batch = view_of(builder.build())
    assert (batch.base_offset, batch.last_offset, batch.record_count) == (10, 15, 3)
    assert (batch.base_timestamp_ms, batch.max_timestamp_ms) == (NOW, NOW + 5)
    assert [(r.offset, r.timestamp_ms) for r in batch.records()] == [
        (10, NOW),
        (14, NOW + 5),
        (15, NOW - 3),
    ]
    assert batch.is_crc_valid()


def test_append_time_is_the_maximum() -> None:
    settings = BatchSettings(timestamp_type=TimestampType.LOG_APPEND_TIME, append_time_ms=77)
    batch = view_of(simple_batch(3, settings))
    assert (batch.max_timestamp_ms, batch.base_timestamp_ms) == (77, NOW)


def test_deltas_count_from_a_delete_horizon() -> None:
    batch = view_of(simple_batch(1, BatchSettings(delete_horizon_ms=NOW + 9)))
    assert (batch.base_timestamp_ms, batch.max_timestamp_ms) == (NOW + 9, NOW)
    assert [record.timestamp_ms for record in batch.records()] == [NOW]


def test_the_last_offset_may_lie_beyond_the_last_record() -> None:
    builder = BatchBuilder()
    builder.append(NOW, b"a", b"1")
    assert view_of(builder.build(last_offset=9)).last_offset == 9


def test_settings_are_taken_from_a_batch() -> None:
    settings = PRODUCER._replace(base_offset=7, is_transactional=True, leader_epoch=3)
    batch = view_of(simple_batch(2, settings))
    assert settings_of(batch)._replace(append_time_ms=-1) == settings


def test_all_flags_reach_the_attributes() -> None:
    settings = PRODUCER._replace(
        codec=Codec.ZSTD,
        timestamp_type=TimestampType.LOG_APPEND_TIME,
        is_transactional=True,
        is_control=True,
        delete_horizon_ms=0,
    )
    assert settings.attributes == 0x7C
    assert view_of(simple_batch(1, settings)).attributes == 0x7C


def test_records_are_rebuilt_at_their_offsets() -> None:
    batch = view_of(simple_batch(4, BatchSettings(base_offset=30)))
    assert build_batch(batch.records()) == batch.raw
    assert build_batch(batch.records(), settings_of(batch)) == batch.raw


def test_no_records_make_no_bytes() -> None:
    assert BatchBuilder().build() == b""
    assert build_batch([]) == b""


def test_an_empty_batch_keeps_its_producers_state() -> None:
    settings = PRODUCER._replace(base_offset=4, codec=Codec.LZ4, delete_horizon_ms=5)
    batch = view_of(build_empty_batch(settings, last_offset=8, max_timestamp_ms=NOW))
    assert (batch.size_bytes, batch.record_count, batch.codec) == (61, 0, Codec.NONE)
    assert (batch.producer_id, batch.last_sequence, batch.delete_horizon_ms) == (9, 4, None)
    assert batch.is_crc_valid()


def test_sizes_are_known_before_writing() -> None:
    for delta in (0, 63, 64, -(1 << 40)):
        for key, value in ((None, None), (b"", b"x" * 64), (b"k" * 8192, None)):
            headers = (("h" * 70, None), ("日", b"v"))
            out = bytearray()
            size = write_record(out, delta, 5, key, value, headers)
            assert size == record_size_bytes(delta, 5, key, value, headers) == len(out)
            assert 61 + size <= batch_size_bytes_max(key, value, headers) <= 61 + size + 20


def test_room_is_counted_before_compression() -> None:
    builder = BatchBuilder()
    assert builder.has_room_for(NOW, b"k", b"v" * 1000, limit_bytes=10)
    builder.append(NOW, b"k", b"v")
    size = builder.uncompressed_size_bytes
    assert size == len(builder.build())
    assert builder.has_room_for(NOW, b"k", b"v", limit_bytes=size + 9)
    assert not builder.has_room_for(NOW, b"k", b"v", limit_bytes=size + 8)


def test_lone_surrogates_in_header_keys_become_question_marks() -> None:
    builder = BatchBuilder()
    builder.append(NOW, None, None, (("a\ud800", None),))
    (record,) = view_of(builder.build()).records()
    assert record.headers == (("a?", None),)


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        (BatchSettings(timestamp_type=TimestampType.NONE), "create or append time"),
        (BatchSettings(is_transactional=True), "a producer id"),
        (BatchSettings(producer_id=1), "needs an epoch"),
        (BatchSettings(producer_id=1, producer_epoch=0), "needs a sequence"),
    ],
)
def test_settings_that_contradict_are_refused(settings: BatchSettings, rule: str) -> None:
    with pytest.raises(BatchRefused, match=rule):
        BatchBuilder(settings)


@pytest.mark.parametrize(
    ("timestamp_ms", "offset", "rule"),
    [(-2, 1, "a time from 0"), (0, 0, "an offset from 1"), (0, 1 << 31, "2\\^31 at most")],
)
def test_records_that_do_not_fit_are_refused(timestamp_ms: int, offset: int, rule: str) -> None:
    builder = BatchBuilder()
    builder.append(NOW, b"a", b"1")
    before = builder.build()
    with pytest.raises(BatchRefused, match=rule):
        builder.append(timestamp_ms, b"b", b"2", offset=offset)
    assert builder.build() == before


def test_fields_beyond_their_widths_are_refused() -> None:
    builder = BatchBuilder(PRODUCER._replace(producer_epoch=1 << 15))
    builder.append(NOW, b"a", b"1")
    with pytest.raises(BatchRefused, match="within their widths"):
        builder.build()


def test_a_built_batch_can_be_patched() -> None:
    batch = BatchView(memoryview(simple_batch()))
    batch.patch(base_offset=9)
    assert batch.base_offset == 9


def test_append_record_takes_all_of_a_record() -> None:
    record = Record(3, NOW, TimestampType.CREATE_TIME, b"k", b"v", (("h", b"x"),))
    builder = BatchBuilder()
    builder.append_record(record)
    assert view_of(builder.build()).read_records() == [record]
