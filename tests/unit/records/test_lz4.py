"""LZ4 frames: Kafka's header, the wrong checksum of magic 0, optional fields, damage."""

from __future__ import annotations

import struct

import cramjam
import pytest
from xxhash import xxh32_intdigest

from engine.records import lz4
from engine.records.codec import CompressedDataCorrupt

TEXT = b"orders clicks ledger audit " * 6000
NOISE = bytes((i * 7919 + (i >> 3) * 104729) >> 4 & 0xFF for i in range(300))


def opened(data: bytes, *, ignore: bool = False) -> bytes:
    parts = lz4.pieces(memoryview(data), ignore_header_checksum=ignore)
    return b"".join(bytes(piece) for piece in parts)


def frame(flags: int, descriptor: int, extra: bytes, blocks: bytes) -> bytes:
    head = bytes((flags, descriptor)) + extra
    return b"\x04\x22\x4d\x18" + head + bytes((xxh32_intdigest(head) >> 8 & 0xFF,)) + blocks


def stored(content: bytes, checksum: bytes = b"") -> bytes:
    return struct.pack("<I", len(content) | 0x80000000) + content + checksum


END = bytes(4)


def test_the_header_is_kafkas() -> None:
    assert lz4.compress(TEXT, None, wrong_checksum=False)[:7].hex() == "04224d18604082"


def test_magic_0_has_the_wrong_header_checksum() -> None:
    data = lz4.compress(TEXT, None, wrong_checksum=True)
    assert data[:7].hex() == "04224d1860401a"
    assert opened(data, ignore=True) == TEXT
    with pytest.raises(CompressedDataCorrupt, match="header checksum 0x82, got 0x1a"):
        opened(data)


def test_a_reader_of_magic_0_takes_the_right_checksum_too() -> None:
    assert opened(lz4.compress(TEXT, None, wrong_checksum=False), ignore=True) == TEXT


def test_the_lz4_library_reads_what_is_written() -> None:
    for level in (None, 1, 12, 17):
        data = lz4.compress(TEXT, level, wrong_checksum=False)
        assert bytes(cramjam.lz4.decompress(data)) == TEXT


def test_blocks_that_do_not_shrink_are_stored() -> None:
    data = lz4.compress(NOISE, None, wrong_checksum=False)
    assert data[7:] == stored(NOISE) + END
    assert opened(data) == NOISE


def test_a_content_size_is_skipped() -> None:
    assert opened(frame(0x68, 0x40, bytes(8), stored(b"abc") + END)) == b"abc"


def test_a_content_checksum_is_not_verified() -> None:
    assert opened(frame(0x64, 0x40, b"", stored(b"abc") + END + b"\x00" * 4)) == b"abc"
    with pytest.raises(CompressedDataCorrupt):
        opened(frame(0x64, 0x40, b"", stored(b"abc") + END))


def test_block_checksums_are_verified() -> None:
    good = xxh32_intdigest(b"abc").to_bytes(4, "little")
    assert opened(frame(0x70, 0x40, b"", stored(b"abc", good) + END)) == b"abc"
    with pytest.raises(CompressedDataCorrupt, match="block checksum"):
        opened(frame(0x70, 0x40, b"", stored(b"abc", bytes(4)) + END))


def test_what_follows_the_end_is_ignored() -> None:
    assert opened(frame(0x60, 0x40, b"", stored(b"abc") + END + b"more")) == b"abc"


def test_a_frame_without_an_end_is_corrupt() -> None:
    with pytest.raises(CompressedDataCorrupt):
        opened(frame(0x60, 0x40, b"", stored(b"abc")))


@pytest.mark.parametrize("flags", [0x40, 0xA0, 0x61, 0x62, 0x20])
def test_only_independent_blocks_of_version_1_are_read(flags: int) -> None:
    with pytest.raises(CompressedDataCorrupt, match="independent blocks"):
        opened(frame(flags, 0x40, b"", END))


@pytest.mark.parametrize("descriptor", [0x30, 0x00, 0xC0, 0x41])
def test_block_sizes_are_64_kib_to_4_mib(descriptor: int) -> None:
    with pytest.raises(CompressedDataCorrupt, match="block size"):
        opened(frame(0x60, descriptor, b"", END))


def test_large_blocks_are_read() -> None:
    block = bytes(cramjam.lz4.compress_block(TEXT, store_size=False))
    data = frame(0x60, 0x50, b"", struct.pack("<I", len(block)) + block + END)
    assert opened(data) == TEXT


def test_a_block_may_not_be_larger_than_the_frame_says() -> None:
    block = bytes(cramjam.lz4.compress_block(TEXT, store_size=False))
    with pytest.raises(CompressedDataCorrupt):
        opened(frame(0x60, 0x40, b"", struct.pack("<I", len(block)) + block + END))
    with pytest.raises(CompressedDataCorrupt, match="at most 65536"):
        opened(frame(0x60, 0x40, b"", stored(TEXT[:65537]) + END))


@pytest.mark.parametrize("size", [0, 3, 6, 8, 13])
def test_a_header_cut_short_is_corrupt(size: int) -> None:
    with pytest.raises(CompressedDataCorrupt):
        opened(frame(0x68, 0x40, bytes(8), b"")[:size])


# Usual frames


@pytest.mark.parametrize(
    "content", [TEXT[:size] for size in (0, 1, 65_536, 65_537)] + [TEXT, NOISE, NOISE * 300]
)
def test_a_fast_frame_is_opened_into_an_arena(content: bytes) -> None:
    data = memoryview(lz4.compress(content, None, wrong_checksum=False))
    arena = memoryview(bytearray(262_144))
    assert len(content) == lz4.decompress_fast(data, arena)
    assert content == arena[: len(content)]


def test_all_else_is_left_to_who_looks_closely() -> None:
    data = lz4.compress(TEXT, None, wrong_checksum=False)
    damaged = bytearray(data)
    damaged[7:11] = struct.pack("<I", len(data))
    broken = bytearray(data)
    broken[-2000:-4] = bytes(1996)
    unusual = [
        b"", data[:7], data[:-1], data[:-4], data[: len(data) // 2], bytes(damaged), bytes(broken),
        lz4.compress(TEXT, None, wrong_checksum=True), frame(0x70, 0x40, b"", END),
        frame(0x60, 0x50, b"", END), frame(0x60, 0x40, b"", stored(bytes(65_537)) + END),
    ]  # fmt: skip
    for content in unusual:
        arena = memoryview(bytearray(262_144))
        assert lz4.decompress_fast(memoryview(content), arena) is None
    for room in (0, 65_535, len(TEXT) - 1):
        assert lz4.decompress_fast(memoryview(data), memoryview(bytearray(room))) is None
