"""The compiled tier of cleaning: how it comes to be used, and what it is held to before."""

from __future__ import annotations

from hashlib import md5

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.native import clean_records
from engine.native.clean_records import (
    CleanerTier,
    CompiledCleaner,
    KeptRecords,
    MapMemory,
    Noted,
    is_keep_right,
    is_note_right,
    load_or_compile_cleaner,
)
from engine.records.batch import BatchView
from engine.records.builder import BatchBuilder, BatchSettings
from tests.compiled_walk import compiled_cleaner_here

CODE = compiled_cleaner_here()
needs_code = pytest.mark.skipif(
    CODE is None,
    reason="compiled code runs on Linux, x86-64 and arm64, and is made by numba",
)
SLOTS = 64


@pytest.fixture(autouse=True)
def own_tier(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CleanerTier, "code", None)
    monkeypatch.setattr(CleanerTier, "is_requested", False)


def compiled(slots: int = SLOTS) -> tuple[CompiledCleaner, MapMemory]:
    assert CODE is not None
    offsets = memoryview(bytearray(8 * (slots + 1))).cast("q")
    memory = MapMemory(bytearray(16 * (slots + 1)), offsets, slots + 1)
    return CompiledCleaner(CODE, memory), memory


def noted(cleaner: CompiledCleaner, data: bytes, count: int, limit: int = SLOTS) -> Noted | None:
    return cleaner.note_keys(data, count, base_offset=0, start_offset=0, size=0, limit=limit)


def kept(cleaner: CompiledCleaner, data: bytes, count: int, latest: int = -1) -> KeptRecords | None:
    return cleaner.keep_records(
        data,
        count,
        base_offset=0,
        latest_offset=latest,
        base_ms=0,
        keeps_tombstones=True,
        horizon_ms=None,
        new_horizon_ms=5,
    )


def block(keys: list[bytes]) -> bytes:
    builder = BatchBuilder(BatchSettings())
    for number, key in enumerate(keys):
        builder.append(number, key, b"v" * (number % 300))
    return bytes(BatchView(memoryview(builder.build())).payload)


@needs_code
@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200), st.integers(1, 5))
def test_no_bytes_send_it_outside_of_them(data: bytes, count: int) -> None:
    cleaner, memory = compiled()
    found = noted(cleaner, data, count)
    assert (found is None) == (kept(cleaner, data, count) is None)
    if found is None:
        assert not any(memory.offsets)


@needs_code
def test_an_empty_block_and_a_count_that_lies_are_unfast() -> None:
    cleaner, _ = compiled()
    assert noted(cleaner, b"", 1) is None
    assert kept(cleaner, b"", 1) is None
    assert kept(cleaner, block([b"k"]), (1 << 31) - 1) is None


@needs_code
@pytest.mark.parametrize("size", [0, 1, 7, 8, 55, 56, 63, 64, 65, 119, 120, 128, 1000])
def test_keys_of_every_size_have_their_digest(size: int) -> None:
    cleaner, memory = compiled()
    key = bytes(range(256)) * 4
    noted(cleaner, block([key[:size]]), 1)
    (slot,) = [slot for slot in range(SLOTS + 1) if memory.offsets[slot]]
    assert md5(key[:size]).digest() == memory.digests[16 * slot : 16 * slot + 16]


@needs_code
def test_a_block_larger_than_the_room_at_hand_is_kept_whole() -> None:
    cleaner, _ = compiled()
    keys = [b"k%d" % number for number in range(5000)]
    data = block(keys)
    everything = kept(cleaner, data, 5000)
    assert everything == KeptRecords(5000, False, None, 0, 0)
    noted(cleaner, block([b"k0"]), 1)
    # The first record is hidden by nothing but itself: it stays, and all behind the map.
    assert everything == kept(cleaner, data, 5000, latest=0)


@needs_code
def test_a_map_that_is_full_of_others_still_finds_keys() -> None:
    cleaner, _ = compiled(slots=4)
    keys = [b"a", b"b", b"c", b"d"]
    assert Noted(False, 4, 3, 4) == noted(cleaner, block(keys), 4, limit=4)
    again = cleaner.note_keys(block(keys), 4, base_offset=10, start_offset=0, size=4, limit=5)
    assert Noted(False, 4, 13, 4) == again


@needs_code
def test_code_that_does_something_else_is_not_taken_up(monkeypatch: pytest.MonkeyPatch) -> None:
    assert CODE is not None
    assert is_note_right(CODE.note)
    assert is_keep_right(CODE.keep)
    monkeypatch.setattr(clean_records, "load_cleaner", lambda: CODE)
    monkeypatch.setattr(clean_records, "is_keep_right", lambda address: False)
    assert not load_or_compile_cleaner()
    assert CleanerTier.code is None


@needs_code
def test_kept_code_is_taken_up_at_once() -> None:
    assert load_or_compile_cleaner()
    assert CODE is not None
    assert CleanerTier.code is not None
    assert load_or_compile_cleaner()


def test_without_kept_code_a_compiler_is_started_once(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[bool] = []
    monkeypatch.setattr(clean_records, "kept_note_path", lambda: None)
    monkeypatch.setattr(clean_records, "start_compiler", lambda: started.append(True))
    assert not load_or_compile_cleaner()
    assert not load_or_compile_cleaner()
    assert [True] == started
