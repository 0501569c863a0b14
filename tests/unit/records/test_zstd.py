"""Zstandard: Kafka's frames, several frames, bounds from block headers, damage."""

from __future__ import annotations

import cramjam
import pytest

from engine.records import zstd
from engine.records.codec import CompressedDataCorrupt, DecompressedTooLarge
from tests.unit.records.samples import LONG_TEXT as TEXT

LIMIT = 1 << 22
SKIPPED = bytes.fromhex("502a4d18 05000000".replace(" ", "")) + b"bytes"


def opened(data: bytes, limit: int = LIMIT) -> bytes:
    return b"".join(bytes(piece) for piece in zstd.pieces(memoryview(data), limit))


def run_bomb(blocks: int) -> bytes:
    """Return a frame of runs of 128 KiB that take four bytes each."""
    header = bytes.fromhex("28b52ffd0058")
    run = (1 << 1 | 128 * 1024 << 3).to_bytes(3, "little") + b"z"
    last = (1 | 1 << 1 | 128 * 1024 << 3).to_bytes(3, "little") + b"z"
    return header + run * (blocks - 1) + last


def test_frames_have_no_content_size_and_end_with_an_empty_block() -> None:
    data = zstd.compress(TEXT, 3)
    assert data[:6].hex() == "28b52ffd0058"
    assert data[-3:].hex() == "010000"


def test_frames_of_any_writer_are_read() -> None:
    with_size = bytes(cramjam.zstd.compress(TEXT, level=19))
    assert opened(with_size) == TEXT


def test_frames_may_follow_each_other_and_be_skipped() -> None:
    assert opened(zstd.compress(b"one ", 3) + SKIPPED + zstd.compress(TEXT, 1)) == b"one " + TEXT


def test_bytes_after_the_last_frame_are_corrupt() -> None:
    with pytest.raises(CompressedDataCorrupt):
        opened(zstd.compress(TEXT, 3) + b"garbage!")


def test_a_bound_is_known_before_decompressing() -> None:
    for level in (-5, 1, 19):
        data = zstd.compress(TEXT, level)
        bound = zstd.size_bound(memoryview(data))
        assert len(TEXT) <= bound <= 16 * len(TEXT)
    assert zstd.size_bound(memoryview(run_bomb(10))) == 10 * 128 * 1024
    assert zstd.size_bound(memoryview(b"not a frame")) == 0


def test_a_bomb_stops_at_the_limit() -> None:
    assert opened(run_bomb(8)) == b"z" * (8 * 128 * 1024)
    with pytest.raises(DecompressedTooLarge):
        opened(run_bomb(30_000))


def test_what_was_written_before_a_fault_is_found() -> None:
    data = bytearray(zstd.compress(TEXT, 3))
    found = bytearray()
    with pytest.raises(CompressedDataCorrupt):
        for piece in zstd.pieces(memoryview(data)[:-9], LIMIT, keep_prefix=True):
            found += piece
    assert len(found) >= 128 * 1024
    assert TEXT.startswith(found)
