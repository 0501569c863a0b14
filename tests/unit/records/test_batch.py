"""The magic 2 view: fields, checksum, patches, and the two ways of reading records."""

from __future__ import annotations

import struct

import pytest

from engine.errors import CorruptRecord, InvariantBroken
from engine.records.batch import BatchView
from engine.records.batch_header import HEADER_BYTES
from engine.records.builder import BatchBuilder, BatchSettings, build_empty_batch
from engine.records.codec import Codec, CompressedDataCorrupt, DecompressedTooLarge
from engine.records.record import TimestampType
from tests.unit.records.samples import NOW, simple_batch, view_of

FULL = BatchSettings(
    base_offset=41,
    producer_id=7000,
    producer_epoch=3,
    base_sequence=2_147_483_646,
    is_transactional=True,
    leader_epoch=9,
)
INT64_MAX = (1 << 63) - 1

#: Enough for several blocks of each codec: what is damaged in a block is lost with it.
CUT_COUNT = 24_000


def damaged(at: int, form: str, value: int, batch: bytearray | None = None) -> BatchView:
    data = batch or simple_batch()
    struct.pack_into(form, data, at, value)
    return view_of(data)


def test_fields_are_read_from_the_header() -> None:
    batch = view_of(simple_batch(3, FULL))
    assert (batch.base_offset, batch.last_offset, batch.next_offset) == (41, 43, 44)
    assert (batch.magic, batch.leader_epoch, batch.last_offset_delta) == (2, 9, 2)
    assert (batch.base_timestamp_ms, batch.max_timestamp_ms) == (NOW, NOW + 2)
    assert (batch.producer_id, batch.producer_epoch, batch.has_producer_id) == (7000, 3, True)
    assert (batch.base_sequence, batch.last_sequence) == (2_147_483_646, 0)
    assert (batch.is_transactional, batch.is_control, batch.is_compressed) == (True, False, False)
    assert (batch.has_delete_horizon, batch.delete_horizon_ms) == (False, None)
    assert (batch.record_count, batch.codec, batch.attributes) == (3, Codec.NONE, 0x10)
    assert batch.size_bytes == batch.batch_length + 12 == len(batch.raw)


def test_a_batch_without_producer_has_no_sequence() -> None:
    batch = view_of(simple_batch())
    assert (batch.has_producer_id, batch.base_sequence, batch.last_sequence) == (False, -1, -1)


def test_the_delete_horizon_lies_in_the_base_timestamp() -> None:
    settings = BatchSettings(delete_horizon_ms=NOW + 60_000)
    batch = view_of(simple_batch(2, settings))
    assert batch.delete_horizon_ms == batch.base_timestamp_ms == NOW + 60_000
    assert [record.timestamp_ms for record in batch.records()] == [NOW, NOW + 1]


def test_the_checksum_covers_everything_from_the_attributes_on() -> None:
    good = simple_batch()
    assert view_of(good).is_crc_valid()
    for at in range(12, len(good)):
        changed = bytearray(good)
        changed[at] ^= 1
        is_covered = at >= 17
        assert view_of(changed).is_crc_valid() is not is_covered


def test_ensure_valid_reports_both_checksums() -> None:
    batch = damaged(17, ">I", 5)
    with pytest.raises(CorruptRecord, match=rf"CRC {batch.computed_crc()}, got 5") as error:
        batch.ensure_valid()
    assert error.value.position == 17
    view_of(simple_batch()).ensure_valid()


def test_a_view_reads_its_own_part_of_the_buffer() -> None:
    data = simple_batch()
    batch = BatchView(memoryview(b"xxx" + bytes(data) + b"yyy"), 3)
    assert batch.position == 3
    assert batch.raw == data
    assert batch.payload == data[HEADER_BYTES:]
    assert len(list(batch.records())) == 3


def test_a_header_alone_can_be_checked() -> None:
    batch = view_of(simple_batch()[:HEADER_BYTES])
    assert batch.last_offset == 2
    with pytest.raises(CorruptRecord, match="a batch of"):
        batch.is_crc_valid()
    with pytest.raises(CorruptRecord, match="a batch of"):
        list(batch.records())


def test_less_than_a_header_is_corrupt() -> None:
    with pytest.raises(CorruptRecord, match="a batch header of 61 bytes, got 60 bytes"):
        view_of(simple_batch()[:60])


def test_a_batch_shorter_than_its_header_shows_fields_but_no_records() -> None:
    batch = damaged(8, ">i", 14)
    assert (batch.size_bytes, batch.record_count, batch.is_crc_valid()) == (26, 3, False)
    for look in (batch.ensure_valid, batch.read_records):
        with pytest.raises(CorruptRecord, match="at least 61 bytes, got 26"):
            look()


def test_an_unknown_codec_is_reported_only_where_it_matters() -> None:
    batch = damaged(21, ">h", 5)
    assert batch.record_count == 3
    for look in (lambda: batch.codec, batch.read_records, lambda: next(batch.records())):
        with pytest.raises(CorruptRecord, match="codec from 0 to 4, got 5") as error:
            look()
        assert error.value.position == 21


def test_a_magic_above_2_is_read_as_2() -> None:
    batch = damaged(16, ">b", 9)
    assert (batch.magic, batch.is_crc_valid(), len(batch.read_records())) == (9, True, 3)


def test_offsets_wrap_in_64_bits() -> None:
    batch = damaged(0, ">q", INT64_MAX)
    assert (batch.last_offset, batch.next_offset) == (-INT64_MAX, -INT64_MAX + 1)


def test_an_empty_batch_has_offsets_and_no_records() -> None:
    batch = view_of(build_empty_batch(FULL, last_offset=55, max_timestamp_ms=NOW))
    assert batch.is_crc_valid()
    assert (batch.base_offset, batch.last_offset, batch.record_count) == (41, 55, 0)
    assert (batch.base_timestamp_ms, batch.max_timestamp_ms) == (-1, NOW)
    assert list(batch.records()) == batch.read_records() == list(batch.salvage_records()) == []


def test_what_follows_a_count_of_zero_is_not_checked() -> None:
    assert damaged(57, ">i", 0).read_records() == []


def test_a_negative_count_is_corrupt() -> None:
    batch = damaged(57, ">i", -1)
    for look in (batch.read_records, lambda: next(batch.records())):
        with pytest.raises(CorruptRecord, match="a record count from 0, got -1"):
            look()


@pytest.mark.parametrize("codec", list(Codec), ids=lambda c: c.label)
def test_records_come_back_as_they_were_written(codec: Codec) -> None:
    batch = view_of(simple_batch(100, FULL._replace(codec=codec, base_sequence=5)))
    found = batch.read_records()
    assert [record.offset for record in found] == list(range(41, 141))
    assert [record.timestamp_ms for record in found] == list(range(NOW, NOW + 100))
    assert [record.sequence for record in found] == list(range(5, 105))
    assert found[7].key == b"key-7"
    assert found[7].headers == (("h", b"v"),)
    assert found == list(batch.records()) == list(batch.salvage_records())


def cut_batch(codec: Codec) -> BatchView:
    """Return a batch whose compressed records end in the middle, with its length set right."""
    builder = BatchBuilder(BatchSettings(codec=codec))
    for index in range(CUT_COUNT):
        builder.append(NOW, b"%d" % index, b"value %d" % (index * index))
    whole = builder.build()
    cut = whole[: len(whole) * 3 // 4]
    struct.pack_into(">i", cut, 8, len(cut) - 12)
    return view_of(cut)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4], ids=lambda c: c.label)
def test_a_damaged_compressed_batch_gives_none_of_its_records(codec: Codec) -> None:
    batch = cut_batch(codec)
    with pytest.raises(CompressedDataCorrupt) as error:
        next(batch.records())
    assert (error.value.position or 0) >= HEADER_BYTES


@pytest.mark.parametrize(
    "codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD], ids=lambda c: c.label
)
def test_salvage_gives_the_records_before_the_damage(codec: Codec) -> None:
    keys = []
    with pytest.raises(CompressedDataCorrupt):
        for record in cut_batch(codec).salvage_records():
            keys.append(record.key)
    assert keys == [b"%d" % index for index in range(len(keys))]
    assert CUT_COUNT // 2 < len(keys) < CUT_COUNT


def test_an_uncompressed_batch_gives_records_up_to_the_fault() -> None:
    data = simple_batch(5)
    data[-1] = 0x10
    keys = []
    with pytest.raises(CorruptRecord):
        for record in view_of(data).records():
            keys.append(record.key)
    assert keys == [b"key-0", b"key-1", b"key-2", b"key-3"]


def test_decompression_is_held_to_the_readers_limit() -> None:
    batch = view_of(simple_batch(1000, BatchSettings(codec=Codec.ZSTD)))
    for look in (batch.read_records, batch.records, batch.salvage_records):
        with pytest.raises(DecompressedTooLarge):
            list(look(limit_bytes=1000))


def test_offset_and_epoch_are_patched_outside_the_checksum() -> None:
    data = simple_batch(3)
    batch = view_of(data)
    before = batch.crc
    batch.patch(base_offset=1000, leader_epoch=12)
    assert (batch.base_offset, batch.last_offset, batch.leader_epoch) == (1000, 1002, 12)
    assert batch.crc == before
    assert batch.is_crc_valid()
    assert [record.offset for record in view_of(data).records()] == [1000, 1001, 1002]


def test_append_time_is_patched_with_a_new_checksum() -> None:
    data = simple_batch(3, FULL._replace(codec=Codec.LZ4))
    batch = view_of(data)
    before = batch.crc
    batch.patch(timestamp_type=TimestampType.LOG_APPEND_TIME, max_timestamp_ms=NOW + 99)
    assert batch.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert batch.crc != before
    assert batch.is_crc_valid()
    assert (batch.is_transactional, batch.codec) == (True, Codec.LZ4)
    assert {record.timestamp_ms for record in batch.records()} == {NOW + 99}
    batch.patch(timestamp_type=TimestampType.CREATE_TIME, max_timestamp_ms=NOW + 2)
    assert bytes(data) == bytes(simple_batch(3, FULL._replace(codec=Codec.LZ4)))


def test_an_unchanged_time_leaves_even_a_wrong_checksum_alone() -> None:
    batch = damaged(17, ">I", 5)
    batch.patch(timestamp_type=TimestampType.CREATE_TIME, max_timestamp_ms=NOW + 2)
    assert batch.crc == 5
    batch.patch(max_timestamp_ms=NOW + 3)
    assert batch.is_crc_valid()


def test_only_a_writable_buffer_is_patched() -> None:
    with pytest.raises(InvariantBroken):
        view_of(bytes(simple_batch())).patch(base_offset=1)
