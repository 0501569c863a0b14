"""Compression: every codec round trips, is bounded, and gives what precedes a fault."""

from __future__ import annotations

import pytest

from engine.errors import ConfigError
from engine.records.codec import Codec, CompressedDataCorrupt, DecompressedTooLarge
from engine.records.compression import (
    compress,
    decompress,
    decompress_into,
    decompress_prefix,
    select_fast_decompressor,
)
from tests.unit.records.samples import LONG_TEXT as TEXT

COMPRESSED = [codec for codec in Codec if codec is not Codec.NONE]


@pytest.mark.parametrize("codec", list(Codec), ids=lambda c: c.label)
@pytest.mark.parametrize("size", [0, 1, 65536, 65537, len(TEXT)])
def test_every_codec_gives_back_what_it_took(codec: Codec, size: int) -> None:
    packed = compress(codec, TEXT[:size])
    assert decompress(codec, packed) == TEXT[:size]
    assert decompress_prefix(codec, packed) == (TEXT[:size], None)


@pytest.mark.parametrize(
    ("codec", "level_low", "level_high"),
    [(Codec.GZIP, 1, 9), (Codec.LZ4, 9, 10), (Codec.LZ4, 1, 17), (Codec.ZSTD, -5, 19)],
)
def test_levels_change_the_size_and_not_the_content(
    codec: Codec, level_low: int, level_high: int
) -> None:
    low, high = compress(codec, TEXT, level_low), compress(codec, TEXT, level_high)
    assert len(high) < len(low)
    assert decompress(codec, low) == decompress(codec, high) == TEXT


@pytest.mark.parametrize("codec", list(Codec), ids=lambda c: c.label)
def test_the_limit_is_met_exactly(codec: Codec) -> None:
    packed = compress(codec, TEXT)
    assert decompress(codec, packed, limit_bytes=len(TEXT)) == TEXT
    with pytest.raises(DecompressedTooLarge):
        decompress(codec, packed, limit_bytes=len(TEXT) - 1)


@pytest.mark.parametrize("codec", COMPRESSED, ids=lambda c: c.label)
def test_a_bomb_is_refused_at_the_limit(codec: Codec) -> None:
    bomb = compress(codec, bytes(16 << 20))
    with pytest.raises(DecompressedTooLarge):
        decompress(codec, bomb, limit_bytes=1 << 20)


@pytest.mark.parametrize("codec", COMPRESSED, ids=lambda c: c.label)
def test_data_cut_short_gives_what_came_before_and_the_fault(codec: Codec) -> None:
    packed = compress(codec, TEXT)
    found, fault = decompress_prefix(codec, packed[: len(packed) // 2])
    assert isinstance(fault, CompressedDataCorrupt)
    assert len(TEXT) // 8 < len(found) < len(TEXT)
    assert TEXT.startswith(found)
    with pytest.raises(CompressedDataCorrupt):
        decompress(codec, packed[: len(packed) // 2])


@pytest.mark.parametrize("codec", COMPRESSED, ids=lambda c: c.label)
def test_nothing_at_all_is_corrupt_but_no_frames_of_zstd(codec: Codec) -> None:
    if codec is Codec.ZSTD:
        assert decompress(codec, b"") == b""
        return
    with pytest.raises(CompressedDataCorrupt):
        decompress(codec, b"")


@pytest.mark.parametrize("codec", list(Codec), ids=lambda c: c.label)
def test_an_arena_is_filled_from_its_start(codec: Codec) -> None:
    arena = bytearray(len(TEXT) + 3)
    assert decompress_into(codec, compress(codec, TEXT), arena) == len(TEXT)
    assert arena == TEXT + bytes(3)


@pytest.mark.parametrize("codec", list(Codec), ids=lambda c: c.label)
def test_an_arena_too_small_is_an_error(codec: Codec) -> None:
    with pytest.raises(DecompressedTooLarge):
        decompress_into(codec, compress(codec, TEXT), bytearray(len(TEXT) - 1))


def test_zstd_came_with_magic_2() -> None:
    with pytest.raises(ConfigError):
        compress(Codec.ZSTD, b"x", magic=1)
    with pytest.raises(CompressedDataCorrupt):
        decompress(Codec.ZSTD, compress(Codec.ZSTD, b"x"), magic=1)


FAST = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]


@pytest.mark.parametrize("codec", FAST, ids=lambda c: c.label)
@pytest.mark.parametrize("size", [0, 1, 32_769, 65_536, 65_537, len(TEXT)])
def test_fast_data_is_opened_into_an_arena(codec: Codec, size: int) -> None:
    arena = memoryview(bytearray(len(TEXT) + 65_536))
    packed = memoryview(compress(codec, TEXT[:size]))
    assert select_fast_decompressor(codec)(packed, arena) == size
    assert arena[:size] == TEXT[:size]


@pytest.mark.parametrize("codec", FAST, ids=lambda c: c.label)
def test_the_fast_decompressor_never_says_anything_else_than_the_other(codec: Codec) -> None:
    packed = compress(codec, TEXT[:40_000])
    for at in range(0, len(packed), 7):
        for damaged in (packed[:at], packed[:at] + b"\xff" + packed[at + 1 :]):
            arena = memoryview(bytearray(131_072))
            size = select_fast_decompressor(codec)(memoryview(damaged), arena)
            assert size is None or arena[:size] == decompress(codec, damaged)


def test_what_is_not_compressed_has_no_fast_decompressor() -> None:
    assert select_fast_decompressor(Codec.NONE)(memoryview(TEXT), memoryview(bytearray())) is None
