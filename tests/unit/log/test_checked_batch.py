"""What is found out of a batch: once, for batches of every codec, in memory that is used again."""

from __future__ import annotations

import pytest

from engine.errors import CorruptRecord
from engine.limits import OPENED_MEMORY_BYTES, OPENED_MEMORY_BYTES_MAX
from engine.log.checked_batch import CheckedBatch, OpenedMemory
from engine.native.record_walk import Walked
from engine.records.batch import BatchView
from engine.records.codec import Codec
from tests.unit.log.writing import sent

LIMIT = 1 << 30


@pytest.fixture(autouse=True)
def fresh_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OpenedMemory, "memory", memoryview(bytearray(OPENED_MEMORY_BYTES)))


def walk(data: memoryview, limit_bytes: int = LIMIT) -> Walked:
    return CheckedBatch(data).walk(limit_bytes)


def with_count(data: memoryview, count: int) -> memoryview:
    changed = bytearray(data)
    changed[57:61] = count.to_bytes(4)
    return memoryview(changed)


@pytest.mark.parametrize("codec", list(Codec), ids=lambda c: c.label)
def test_records_of_every_codec_are_walked(codec: Codec) -> None:
    assert walk(sent(300, codec=codec)) == (0, 299, False)
    assert walk(with_count(sent(300, codec=codec), 299)) is None


def test_memory_grows_to_what_batches_need_and_stays() -> None:
    large = sent(2, value=bytes(OPENED_MEMORY_BYTES), codec=Codec.LZ4)
    assert walk(large) is not None
    grown = OpenedMemory.memory
    assert OPENED_MEMORY_BYTES < len(grown) <= OPENED_MEMORY_BYTES_MAX
    assert walk(sent(codec=Codec.GZIP)) is not None
    assert OpenedMemory.memory is grown


@pytest.mark.parametrize("codec", [c for c in Codec if c], ids=lambda c: c.label)
def test_what_is_larger_than_that_is_walked_all_the_same(codec: Codec) -> None:
    larger = sent(1, value=bytes(OPENED_MEMORY_BYTES_MAX + 1), codec=codec)
    assert walk(larger) is not None
    assert len(OpenedMemory.memory) <= OPENED_MEMORY_BYTES_MAX
    assert walk(larger, OPENED_MEMORY_BYTES_MAX) is None


def test_what_cannot_be_opened_is_unfast() -> None:
    data = sent(3, codec=Codec.GZIP)
    data[-1] ^= 0xFF
    assert walk(data) is None


def test_a_checksum_that_is_known_is_not_computed_again() -> None:
    data = sent(3)
    checked = CheckedBatch(data)
    checked.ensure_valid(BatchView(data))
    assert checked.computed_crc == BatchView(data).crc
    data[-1] ^= 0xFF
    checked.ensure_valid(BatchView(data))
    with pytest.raises(CorruptRecord):
        CheckedBatch(data).ensure_valid(BatchView(data))
