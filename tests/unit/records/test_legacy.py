"""Messages of magic 0 and 1: fields, wrappers, offsets, times, and damaged sizes."""

from __future__ import annotations

import struct
import zlib

import pytest

from engine.errors import CorruptRecord
from engine.records.codec import Codec, CompressedDataCorrupt, DecompressedTooLarge
from engine.records.compression import compress
from engine.records.legacy import LegacyBatch, LegacyMessage
from engine.records.legacy_builder import LegacySettings, build_messages, write_message
from engine.records.record import Record, TimestampType
from tests.unit.records.samples import NOW, legacy_view, simple_records

APPEND = TimestampType.LOG_APPEND_TIME
CREATE = TimestampType.CREATE_TIME
PACKED = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4]


def message(
    offset: int = 7,
    value: bytes | None = b"value",
    settings: LegacySettings | None = None,
    *,
    key: bytes | None = b"key",
    time: int = NOW,
) -> bytearray:
    out = bytearray()
    write_message(out, offset, key, value, time, settings or LegacySettings())
    return out


def batch(data: bytes | bytearray) -> LegacyBatch:
    return LegacyBatch(memoryview(data))


def wrapper(inner: bytes, offset: int, settings: LegacySettings, *, time: int = NOW) -> LegacyBatch:
    packed = compress(settings.codec, inner, magic=settings.magic)
    return batch(message(offset, packed, settings, key=None, time=time))


def patched(data: bytearray, at: int, form: str, value: int) -> LegacyBatch:
    struct.pack_into(form, data, at, value)
    return batch(data)


def test_magic_1_is_read_field_by_field() -> None:
    found = batch(message())
    assert (found.offset, found.magic, found.attributes, found.codec) == (7, 1, 0, Codec.NONE)
    assert (found.timestamp_type, found.timestamp_ms, found.max_timestamp_ms) == (CREATE, NOW, NOW)
    assert (found.key, found.value, found.key_size, found.value_size) == (b"key", b"value", 3, 5)
    assert (found.base_offset, found.last_offset, found.next_offset) == (7, 7, 8)
    assert found.size_bytes == len(found.raw) == 12 + 22 + 8
    assert found.is_crc_valid()
    assert found.crc == zlib.crc32(message()[16:])


def test_magic_0_has_no_time() -> None:
    found = batch(message(settings=LegacySettings(magic=0)))
    assert (found.timestamp_type, found.timestamp_ms) == (TimestampType.NONE, -1)
    assert (found.key, found.value, found.size_bytes) == (b"key", b"value", 12 + 14 + 8)


def test_what_came_with_magic_2_is_nothing() -> None:
    found = batch(message())
    assert (found.leader_epoch, found.producer_id, found.producer_epoch) == (-1, -1, -1)
    assert (found.base_sequence, found.last_sequence, found.record_count) == (-1, -1, None)
    assert not (found.is_transactional or found.is_control or found.has_producer_id)
    assert (found.has_delete_horizon, found.delete_horizon_ms) == (False, None)
    assert (found.headers, found.sequence) == ((), -1)


def test_a_plain_message_is_its_own_record() -> None:
    expected = Record(7, NOW, CREATE, b"key", b"value", crc=batch(message()).crc, is_crc_valid=True)
    assert batch(message()).read_records() == [expected]


def test_null_and_empty_are_distinguished() -> None:
    found = batch(message(value=b"", key=None))
    assert (found.key, found.value, found.key_size, found.value_size) == (None, b"", -1, 0)


@pytest.mark.parametrize("codec", PACKED, ids=lambda c: c.label)
@pytest.mark.parametrize("magic", [0, 1])
def test_a_wrapper_gives_its_records_at_their_offsets(magic: int, codec: Codec) -> None:
    records = simple_records(5, magic=magic, base_offset=100)
    data = build_messages(records, LegacySettings(magic, codec, base_offset=100))
    found = batch(data)
    assert (found.last_offset, found.base_offset, found.is_compressed) == (104, 100, True)
    assert [legacy_view(r) for r in found.records()] == [legacy_view(r) for r in records]
    assert all(record.is_crc_valid for record in found.records())
    assert list(found.salvage_records()) == found.read_records()


def test_inner_offsets_of_magic_1_count_from_the_last() -> None:
    inner = message(0) + message(3) + message(5)
    found = wrapper(inner, 105, LegacySettings(codec=Codec.GZIP))
    assert [record.offset for record in found.records()] == [100, 103, 105]


def test_inner_offsets_of_magic_0_are_absolute() -> None:
    old = LegacySettings(magic=0)
    found = wrapper(message(100, settings=old), 999, old._replace(codec=Codec.GZIP))
    assert [record.offset for record in found.records()] == [100]


def test_a_wrapper_at_0_has_its_messages_from_0() -> None:
    inner = message(0) + message(1) + message(2)
    found = wrapper(inner, 0, LegacySettings(codec=Codec.GZIP))
    assert [record.offset for record in found.records()] == [0, 1, 2]


def test_a_wrapper_below_its_last_message_is_corrupt() -> None:
    found = wrapper(message(5), 4, LegacySettings(codec=Codec.GZIP))
    with pytest.raises(CorruptRecord, match="at least 5, its last message's, got 4"):
        next(found.records())


def test_append_time_of_the_wrapper_counts_for_all() -> None:
    settings = LegacySettings(codec=Codec.GZIP, timestamp_type=APPEND)
    found = wrapper(message(0, time=5) + message(1, time=9), 1, settings, time=NOW)
    times = [(record.timestamp_type, record.timestamp_ms) for record in found.records()]
    assert times == [(APPEND, NOW), (APPEND, NOW)]


def test_with_create_time_the_inner_times_count_and_the_wrappers_type() -> None:
    inner = message(0, settings=LegacySettings(timestamp_type=APPEND), time=5)
    found = wrapper(inner, 0, LegacySettings(codec=Codec.GZIP), time=NOW)
    times = [(record.timestamp_type, record.timestamp_ms) for record in found.records()]
    assert times == [(CREATE, 5)]


def test_messages_of_both_magics_may_be_wrapped_together() -> None:
    inner = message(0, settings=LegacySettings(magic=0)) + message(1)
    found = wrapper(inner, 11, LegacySettings(codec=Codec.GZIP))
    kinds = [(r.offset, r.timestamp_type, r.timestamp_ms) for r in found.records()]
    assert kinds == [(10, TimestampType.NONE, -1), (11, CREATE, NOW)]
    found = wrapper(inner, 11, LegacySettings(magic=0, codec=Codec.GZIP))
    kinds = [(r.offset, r.timestamp_type, r.timestamp_ms) for r in found.records()]
    assert kinds == [(0, TimestampType.NONE, -1), (1, TimestampType.NONE, NOW)]


def test_each_inner_message_has_its_own_checksum() -> None:
    inner = message(0) + message(1)
    inner[-1] ^= 1
    found = wrapper(inner, 1, LegacySettings(codec=Codec.LZ4)).read_records()
    assert [record.is_crc_valid for record in found] == [True, False]


def test_bytes_after_the_last_whole_message_are_ignored() -> None:
    for tail in (b"\x00" * 11, bytes(message())[:-1]):
        found = wrapper(message(0) + tail, 0, LegacySettings(codec=Codec.SNAPPY))
        assert len(found.read_records()) == 1


def test_compressed_inner_messages_are_refused_after_those_before() -> None:
    inner = message(0) + message(1, settings=LegacySettings(codec=Codec.GZIP)) + message(2)
    reader = wrapper(inner, 2, LegacySettings(codec=Codec.GZIP)).records()
    assert next(reader).offset == 0
    with pytest.raises(CorruptRecord, match="without compression, got gzip"):
        next(reader)


BROKEN_WRAPPERS = {
    "no messages": (b"", "inner messages, got none"),
    "too few bytes": (bytes(message())[:-1], "inner messages, got none"),
    "a size too small": (
        bytes(message(0)) + struct.pack(">qi", 1, 13) + bytes(20),
        "inner messages of at least 14 bytes, got 13",
    ),
}


@pytest.mark.parametrize("name", BROKEN_WRAPPERS)
def test_a_broken_wrapper_gives_none_of_its_messages(name: str) -> None:
    inner, expected = BROKEN_WRAPPERS[name]
    with pytest.raises(CorruptRecord, match=expected):
        next(wrapper(inner, 0, LegacySettings(codec=Codec.GZIP)).records())


def test_a_wrapper_without_value_is_corrupt() -> None:
    empty = batch(message(0, None, LegacySettings(codec=Codec.GZIP), key=None))
    with pytest.raises(CorruptRecord, match="a null value"):
        next(empty.records())


def test_damaged_compressed_data_is_placed_at_the_wrapper() -> None:
    data = b"xx" + bytes(message(0, b"not gzip", LegacySettings(codec=Codec.GZIP)))
    with pytest.raises(CompressedDataCorrupt) as error:
        next(LegacyBatch(memoryview(data), 2).records())
    assert error.value.position == 2


def test_zstd_is_refused() -> None:
    packed = compress(Codec.ZSTD, bytes(message(0)))
    found = patched(message(0, packed, key=None), 17, ">b", 4)
    with pytest.raises(CorruptRecord, match="zstd"):
        next(found.records())


def test_decompression_is_held_to_the_readers_limit() -> None:
    inner = b"".join(bytes(message(i)) for i in range(100))
    found = wrapper(inner, 99, LegacySettings(codec=Codec.LZ4))
    with pytest.raises(DecompressedTooLarge):
        found.read_records(limit_bytes=len(inner) - 1)


def test_an_unknown_codec_is_corrupt() -> None:
    found = patched(message(), 17, ">b", 7)
    with pytest.raises(CorruptRecord, match="codec from 0 to 4, got 7"):
        next(found.records())


def test_another_magic_is_refused_when_fields_are_requested() -> None:
    found = patched(message(), 16, ">b", -1)
    assert (found.last_offset, found.magic) == (7, -1)
    for look in (
        lambda: found.timestamp_type,
        lambda: found.max_timestamp_ms,
        lambda: next(found.records()),
    ):
        with pytest.raises(CorruptRecord, match="magic 0 or 1, got -1"):
            look()


def test_a_size_beyond_the_message_is_shown_and_its_bytes_are_refused() -> None:
    found = patched(message(), 26 + 4 + 3, ">i", 6)
    (shown,) = found.iter_messages()
    assert (shown.key_size, shown.value_size) == (3, 6)
    assert not shown.is_crc_valid()
    with pytest.raises(CorruptRecord, match="at most 5 bytes, got 6"):
        _ = shown.value
    with pytest.raises(CorruptRecord):
        found.read_records()


def test_negative_sizes_are_shown_as_they_are() -> None:
    found = patched(message(key=None), 26, ">i", -1_666_389_846)
    assert (found.key_size, found.key, found.value) == (-1_666_389_846, None, b"value")


def test_a_key_size_beyond_the_message_hides_the_value() -> None:
    found = patched(message(), 26, ">i", 1 << 30)
    assert found.key_size == 1 << 30
    for look in (lambda: found.key, lambda: found.value_size, lambda: found.value):
        with pytest.raises(CorruptRecord):
            look()


def test_a_message_too_short_for_its_fields_is_corrupt() -> None:
    found = patched(message(), 8, ">i", 14)
    assert found.size_bytes == 26
    for look in (lambda: found.key_size, lambda: found.value_size):
        with pytest.raises(CorruptRecord, match="more bytes of the message"):
            look()


@pytest.mark.parametrize("size", [13, 1 << 20])
def test_a_size_that_does_not_fit_the_buffer_is_corrupt(size: int) -> None:
    found = patched(message(), 8, ">i", size)
    with pytest.raises(CorruptRecord, match="a message of 26 to"):
        found.is_crc_valid()


def test_less_than_the_smallest_message_is_corrupt() -> None:
    with pytest.raises(CorruptRecord, match="at least 26 bytes, got 25 bytes"):
        LegacyMessage(memoryview(bytes(25)))


def test_ensure_valid_reports_both_checksums() -> None:
    batch(message()).ensure_valid()
    found = patched(message(), 12, ">I", 5)
    with pytest.raises(CorruptRecord, match="got 5") as error:
        found.ensure_valid()
    assert error.value.position == 12


def test_a_view_reads_its_own_part_of_the_buffer() -> None:
    data = b"xxx" + bytes(message()) + b"yyy"
    found = LegacyBatch(memoryview(data), 3)
    assert (found.position, bytes(found.raw)) == (3, bytes(message()))
    assert found.is_crc_valid()
    assert found.read_records() == batch(message()).read_records()
