"""Snappy: the xerial stream, raw blocks, joined streams, and lengths that lie."""

from __future__ import annotations

import struct

import cramjam
import pytest

from engine.records import snappy
from engine.records.codec import CompressedDataCorrupt, DecompressedTooLarge

LIMIT = 1 << 20
TEXT = b"orders clicks ledger audit " * 3000
HEADER = bytes.fromhex("82534e415050590000000001 00000001".replace(" ", ""))


def opened(data: bytes, limit: int = LIMIT) -> bytes:
    return b"".join(bytes(piece) for piece in snappy.pieces(memoryview(data), limit))


def raw(content: bytes) -> bytes:
    return bytes(cramjam.snappy.compress_raw(content))


def test_the_stream_has_xerials_header_and_32_kib_blocks() -> None:
    data = snappy.compress(TEXT)
    assert data.startswith(HEADER)
    position, sizes = len(HEADER), []
    while position < len(data):
        (length,) = struct.unpack_from(">i", data, position)
        block = data[position + 4 : position + 4 + length]
        sizes.append(cramjam.snappy.decompress_raw_len(block))
        position += 4 + length
    assert sizes == [32768, 32768, len(TEXT) - 65536]


def test_one_raw_block_is_read_too() -> None:
    assert opened(raw(TEXT)) == TEXT
    assert opened(raw(b"")) == b""


def test_streams_may_be_joined() -> None:
    assert opened(snappy.compress(b"one ") + snappy.compress(TEXT)) == b"one " + TEXT


def test_fewer_than_four_bytes_at_the_end_are_ignored() -> None:
    assert opened(snappy.compress(TEXT) + b"\x00\x00\x00") == TEXT


@pytest.mark.parametrize("header", [HEADER[:12], b"\x82SNAPPZ\x00" + HEADER[8:]])
def test_a_second_header_must_be_whole(header: bytes) -> None:
    with pytest.raises(CompressedDataCorrupt, match="a snappy stream header"):
        opened(snappy.compress(TEXT) + header)


def test_a_second_header_must_have_a_known_version() -> None:
    with pytest.raises(CompressedDataCorrupt, match="version"):
        opened(snappy.compress(TEXT) + HEADER[:8] + bytes(8))


@pytest.mark.parametrize("length", [-1, 100])
def test_a_block_length_is_held_to_the_bytes(length: int) -> None:
    with pytest.raises(CompressedDataCorrupt, match="a snappy block of at most 3 bytes"):
        opened(HEADER + struct.pack(">i", length) + b"abc")


def test_a_declared_size_beyond_what_snappy_can_reach_is_corrupt() -> None:
    with pytest.raises(CompressedDataCorrupt, match="declare"):
        opened(b"\xff\xff\xff\xff\x0f" + b"abc")


def test_a_declared_size_above_the_limit_is_refused() -> None:
    with pytest.raises(DecompressedTooLarge):
        opened(raw(TEXT), limit=len(TEXT) - 1)


def test_a_damaged_block_is_corrupt() -> None:
    block = bytearray(raw(TEXT[:1000]))
    block[-2:] = b"\xff\xff"
    with pytest.raises(CompressedDataCorrupt, match="a snappy block"):
        opened(bytes(block))
