"""Finding batches in a buffer: formats, bounds, tails."""

from __future__ import annotations

import struct

import pytest

from engine.errors import CorruptRecord
from engine.records.batch import BatchView
from engine.records.legacy import LegacyBatch
from engine.records.legacy_builder import LegacySettings, build_messages
from engine.records.view import RecordBatch, batch_at, batches_in, size_at
from tests.unit.records.samples import simple_batch, simple_records

V0 = bytes(build_messages(simple_records(1, magic=0), LegacySettings(magic=0)))
V1 = bytes(build_messages(simple_records(1), LegacySettings()))
V2 = bytes(simple_batch(2))


def with_magic(batch: bytes, magic: int) -> bytes:
    return batch[:16] + struct.pack(">b", magic) + batch[17:]


def with_length(batch: bytes, length: int) -> bytes:
    return batch[:8] + struct.pack(">i", length) + batch[12:]


def walked(data: bytes, *, allow_partial_tail: bool = False) -> list[RecordBatch]:
    return list(batches_in(memoryview(data), allow_partial_tail=allow_partial_tail))


def test_the_magic_byte_chooses_the_view() -> None:
    kinds = [type(batch_at(memoryview(data), 0)) for data in (V0, V1, V2)]
    assert kinds == [LegacyBatch, LegacyBatch, BatchView]


def test_a_batch_is_found_at_its_position() -> None:
    data = memoryview(V1 + V2 + V0)
    batch = batch_at(data, len(V1))
    assert (batch.position, batch.size_bytes) == (len(V1), len(V2))


@pytest.mark.parametrize(("magic", "kind"), [(3, BatchView), (127, BatchView), (-1, LegacyBatch)])
def test_a_magic_of_no_format_is_read_as_kafka_reads_files(magic: int, kind: type) -> None:
    found = batch_at(memoryview(with_magic(V2, magic)), 0)
    assert type(found) is kind
    assert found.magic == magic


@pytest.mark.parametrize("length", [13, 0, -1, -(1 << 31)])
def test_a_length_below_the_smallest_message_is_corrupt(length: int) -> None:
    data = memoryview(b"xx" + with_length(V2, length))
    for look in (batch_at, size_at):
        with pytest.raises(CorruptRecord, match=f"at least 14, got {length}") as error:
            look(data, 2)
        assert error.value.position == 10


@pytest.mark.parametrize("size", [0, 16, 17, 60, len(V2) - 1])
def test_a_batch_beyond_the_buffer_is_corrupt(size: int) -> None:
    with pytest.raises(CorruptRecord, match=f"got {size} bytes"):
        batch_at(memoryview(V2[:size]), 0)


def test_sizes_need_the_bytes_up_to_the_magic() -> None:
    assert size_at(memoryview(V2[:16]), 0) is None
    assert size_at(memoryview(V2[:17]), 0) == len(V2)


def test_a_batch_claiming_less_than_its_header_reads_what_follows() -> None:
    data = with_length(V2, 14)
    assert batch_at(memoryview(data), 0).size_bytes == 26
    with pytest.raises(CorruptRecord, match="a batch header"):
        batch_at(memoryview(data[:26]), 0)


def test_batches_of_all_formats_are_walked() -> None:
    found = walked(V0 + V1 + V2 + V2)
    assert [batch.magic for batch in found] == [0, 1, 2, 2]
    assert [batch.position for batch in found][1:] == [
        len(V0),
        len(V0 + V1),
        len(V0 + V1 + V2),
    ]
    assert walked(b"") == []


def test_a_walk_may_start_inside() -> None:
    found = batches_in(memoryview(V0 + V1), allow_partial_tail=False, position=len(V0))
    assert [batch.magic for batch in found] == [1]


@pytest.mark.parametrize("tail", [V2[:1], V2[:11], V2[:16], V2[:17], V2[:-1]])
def test_a_partial_tail_is_the_callers_choice(tail: bytes) -> None:
    assert len(walked(V1 + tail, allow_partial_tail=True)) == 1
    with pytest.raises(CorruptRecord) as error:
        walked(V1 + tail)
    assert error.value.position == len(V1)


@pytest.mark.parametrize("magic", [-1, 3, 127])
def test_a_walk_refuses_a_magic_of_no_format(magic: int) -> None:
    for choice in (True, False):
        with pytest.raises(CorruptRecord, match=f"magic 0, 1 or 2, got {magic}") as error:
            walked(V1 + with_magic(V2, magic), allow_partial_tail=choice)
        assert error.value.position == len(V1) + 16
