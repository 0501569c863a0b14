"""A batch of one record has the bytes that the builder gives it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.records.batch import BatchView
from engine.records.builder import BatchBuilder, BatchSettings
from engine.records.one_record import batch_bytes, encode_record, one_record_batch


def built(time_ms: int, key: bytes, value: bytes | None, base_sequence: int) -> bytes:
    builder = BatchBuilder(BatchSettings(base_sequence=base_sequence))
    builder.append(time_ms, key, value)
    return bytes(builder.build())


def made(time_ms: int, key: bytes, value: bytes | None, base_sequence: int) -> bytes:
    record = encode_record(time_ms, key, value, base_sequence)
    batch = one_record_batch(0, -1, record)
    assert batch_bytes(record) == len(batch)
    return batch


@pytest.mark.parametrize("value_size", [None, 0, 1, 63, 64, 1017, 1023, 1024, 8191, 8192, 70_000])
@pytest.mark.parametrize("key_size", [0, 1, 58, 63, 64, 1023, 1024, 9_000])
def test_sizes_on_both_sides_of_a_varints_length(key_size: int, value_size: int | None) -> None:
    key, value = b"k" * key_size, None if value_size is None else b"v" * value_size
    assert built(1, key, value, 0) == made(1, key, value, 0)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.integers(0, (1 << 63) - 1),
    st.binary(max_size=1100),
    st.none() | st.binary(max_size=1100),
    st.integers(-1, (1 << 31) - 1),
)
def test_any_record(time_ms: int, key: bytes, value: bytes | None, base_sequence: int) -> None:
    expected = built(time_ms, key, value, base_sequence)
    assert expected == made(time_ms, key, value, base_sequence)


def test_a_batch_has_its_place_and_a_right_checksum() -> None:
    batch = one_record_batch(77, 3, encode_record(5, b"k", b"v", 0))
    view = BatchView(memoryview(batch))
    assert (77, 3, len(batch)) == (view.base_offset, view.leader_epoch, view.size_bytes)
    assert view.is_crc_valid()
