"""Round trips over generated records, for every format and codec."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from engine.errors import CorruptRecord
from engine.records.batch import BatchView
from engine.records.builder import (
    BatchBuilder,
    BatchSettings,
    batch_size_bytes_max,
    record_size_bytes,
    settings_of,
)
from engine.records.codec import Codec
from engine.records.compression import compress, decompress, decompress_into, decompress_prefix
from engine.records.decode import Origin, decode_records, read_record
from engine.records.legacy import LegacyBatch
from engine.records.legacy_builder import LegacySettings, build_messages
from engine.records.record import Record, TimestampType, increment_sequence
from engine.records.varint import read_varint, read_varlong, size_of_varint, write_varint
from engine.records.view import batches_in
from tests.unit.records.samples import (
    LEGACY_CODECS,
    contents,
    gaps,
    int64s,
    legacy_view,
    record_fields,
    times,
)

codecs = st.sampled_from(list(Codec))
settings_choices = st.builds(
    BatchSettings,
    base_offset=st.integers(0, 1 << 62),
    codec=codecs,
    level=st.none(),
    timestamp_type=st.sampled_from([TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME]),
    append_time_ms=st.integers(0, 1 << 60),
    producer_id=st.integers(0, 1 << 62),
    producer_epoch=st.integers(0, 32767),
    base_sequence=st.integers(0, 2_147_483_647),
    is_transactional=st.booleans(),
    is_control=st.booleans(),
    delete_horizon_ms=st.none() | st.integers(0, 1 << 60),
    leader_epoch=st.integers(-1, 2_147_483_647),
)


@given(int64s)
def test_integers_come_back(value: int) -> None:
    out = bytearray()
    write_varint(out, value)
    assert size_of_varint(value) == len(out)
    assert read_varlong(out, 0) == (value, len(out))
    if -(1 << 31) <= value < 1 << 31:
        assert read_varint(out, 0) == (value, len(out))


@given(codecs, st.binary(max_size=3000), st.integers(1, 80))
def test_data_comes_back_from_every_codec(codec: Codec, seed: bytes, times_over: int) -> None:
    data = seed * times_over
    packed = compress(codec, data)
    assert decompress(codec, packed, limit_bytes=len(data)) == data
    assert decompress_prefix(codec, packed) == (data, None)
    arena = bytearray(len(data))
    assert decompress_into(codec, packed, arena) == len(data)
    assert arena == data


@given(settings_choices, st.lists(record_fields, min_size=1, max_size=12))
def test_batches_give_back_their_records(settings: BatchSettings, rows: list[tuple]) -> None:
    builder, expected = BatchBuilder(settings), []
    is_append_time = settings.timestamp_type is TimestampType.LOG_APPEND_TIME
    for gap, time, key, value, headers in rows:
        offset = builder.next_offset + gap - 1
        builder.append(time, key, value, headers, offset=offset)
        expected.append(
            Record(
                offset=offset,
                timestamp_ms=settings.append_time_ms if is_append_time else time,
                timestamp_type=settings.timestamp_type,
                key=key,
                value=value,
                headers=headers,
                sequence=increment_sequence(settings.base_sequence, offset - settings.base_offset),
            )
        )
    data = builder.build()
    batch = BatchView(memoryview(data))
    assert batch.is_crc_valid()
    assert batch.read_records() == list(batch.records()) == list(batch.salvage_records())
    assert batch.read_records() == expected
    assert settings_of(batch)._replace(append_time_ms=settings.append_time_ms) == settings
    assert batch.last_offset == expected[-1].offset
    if settings.codec is Codec.NONE:
        assert builder.uncompressed_size_bytes == len(data)


@given(
    st.sampled_from(LEGACY_CODECS),
    st.sampled_from([0, 1]),
    st.booleans(),
    st.integers(0, 1 << 40),
    st.lists(st.tuples(gaps, times, contents, contents), min_size=1, max_size=12),
)
def test_messages_give_back_their_records(
    codec: Codec, magic: int, has_append_time: bool, base: int, rows: list[tuple]
) -> None:
    kind = TimestampType.LOG_APPEND_TIME if has_append_time else TimestampType.CREATE_TIME
    settings = LegacySettings(magic, codec, None, kind, 1234, base)
    records, expected, offset = [], [], base - 1
    for gap, time, key, value in rows:
        offset += gap
        records.append(Record(offset, time, kind, key, value))
        if magic == 0:
            expected.append((offset, -1, TimestampType.NONE, key, value))
        else:
            expected.append((offset, 1234 if has_append_time else time, kind, key, value))
    data = memoryview(build_messages(records, settings))
    found = []
    for batch in batches_in(data, allow_partial_tail=False):
        assert isinstance(batch, LegacyBatch)
        assert batch.is_crc_valid()
        found += batch.read_records()
    assert [legacy_view(record) for record in found] == expected
    assert all(record.is_crc_valid for record in found)


@given(record_fields)
def test_sizes_are_known_before_writing(row: tuple) -> None:
    _, time, key, value, headers = row
    builder = BatchBuilder()
    builder.append(time, key, value, headers)
    size = builder.uncompressed_size_bytes
    assert 61 + record_size_bytes(0, 0, key, value, headers) == size
    assert size <= batch_size_bytes_max(key, value, headers)


@given(
    st.lists(st.sampled_from([0, 1, 2, 3, 5, 8, 0x7F, 0x80, 0x81, 0xFF]), max_size=40),
    st.integers(0, 4),
    st.sampled_from([-1, 0, 2_147_483_647]),
    st.sampled_from([0, (1 << 63) - 1, -(1 << 63)]),
)
def test_the_quick_reader_takes_only_what_the_strict_one_takes(
    numbers: list[int], count: int, sequence: int, base: int
) -> None:
    data = bytes(numbers)
    origin = Origin(count, base, base, sequence, None, 0, False)
    assert outcome(decode_records(data, origin)) == outcome(strictly(data, origin))


def strictly(data: bytes, origin: Origin) -> Iterator[Record]:
    """Yield what the strict reader finds, the last record only if nothing is left."""
    position = 0
    for index in range(origin.record_count):
        record, position = read_record(data, position, origin)
        if index == origin.record_count - 1 and position != len(data):
            raise CorruptRecord("the end", len(data) - position)
        yield record


def outcome(reader: Iterator[Record]) -> tuple[list[Record], bool]:
    """Return the records and whether all of them came."""
    found = []
    try:
        for record in reader:
            found.append(record)
    except CorruptRecord:
        return found, False
    return found, True
