"""The offsets of keys in bounded memory."""

from __future__ import annotations

import pytest

from engine.log.cleaner.offset_map import SLOT_BYTES, OffsetMap, entries_max


def test_the_last_offset_of_a_key_counts() -> None:
    offsets = OffsetMap(10 * SLOT_BYTES, 0.9)
    for offset, key in enumerate([b"a", b"b", b"a"]):
        offsets.put(key, offset)
    assert (2, 1, -1) == (offsets.get(b"a"), offsets.get(b"b"), offsets.get(b"c"))
    assert (2, 2) == (offsets.size, offsets.latest_offset)


def test_offset_zero_is_an_offset() -> None:
    offsets = OffsetMap(10 * SLOT_BYTES, 0.9)
    offsets.put(b"a", 0)
    assert 0 == offsets.get(b"a")


@pytest.mark.parametrize(("slots", "load", "count"), [(10, 0.9, 9), (10, 1.0, 10), (10, 2.0, 10)])
def test_a_map_is_full_at_its_load_factor(slots: int, load: float, count: int) -> None:
    offsets = OffsetMap(slots * SLOT_BYTES, load)
    assert count == offsets.limit == entries_max(slots * SLOT_BYTES, load)
    for number in range(count):
        assert not offsets.is_full
        offsets.put(b"%d" % number, number)
    assert offsets.is_full
    assert [*range(count), -1] == [offsets.get(b"%d" % number) for number in range(count + 1)]


def test_many_keys_find_their_own_offsets() -> None:
    offsets = OffsetMap(3000 * SLOT_BYTES, 0.99)
    for number in range(2900):
        offsets.put(b"key %d" % (number * 7 % 2900), number)
    assert all(offsets.get(b"key %d" % (n * 7 % 2900)) == n for n in range(2900))
    assert 2900 / 3000 == offsets.utilization


def test_fewer_slots_are_taken_where_there_cannot_be_as_many_keys() -> None:
    offsets = OffsetMap(1 << 30, 0.9, keys_max=3)
    for number, key in enumerate([b"a", b"b", b"c"]):
        offsets.put(key, number)
    assert not offsets.is_full
    assert (2, -1) == (offsets.get(b"c"), offsets.get(b"d"))


def test_seen_offsets_only_rise() -> None:
    offsets = OffsetMap(10 * SLOT_BYTES, 0.9)
    offsets.note_offset(7)
    offsets.note_offset(3)
    assert 7 == offsets.latest_offset


def test_a_map_with_fewer_slots_than_its_memory_allows_is_full_before_they_are() -> None:
    offsets = OffsetMap(1000 * SLOT_BYTES, 1.0, keys_max=2)
    while not offsets.is_full:
        offsets.put(b"%d" % offsets.size, offsets.size)
    assert -1 == offsets.get(b"another")


def test_offsets_of_records_beyond_their_batch_do_not_count() -> None:
    offsets = OffsetMap(10 * SLOT_BYTES, 0.9)
    offsets.put(b"a", 1_000_003)
    offsets.end_batch(3)
    assert (3, 1_000_003) == (offsets.latest_offset, offsets.get(b"a"))
