"""Codecs: numbers, Kafka's names, levels."""

from __future__ import annotations

import pytest

from engine.errors import ConfigError, CorruptRecord
from engine.records.codec import Codec, codec_of, default_level, parse_codec, resolve_level


def test_labels_are_kafkas_names() -> None:
    assert [codec.label for codec in Codec] == ["none", "gzip", "snappy", "lz4", "zstd"]
    assert all(parse_codec(codec.label) is codec for codec in Codec)


def test_the_low_three_bits_are_the_codec() -> None:
    assert codec_of(0b0110_1011) is Codec.LZ4
    assert codec_of(-1 & ~7) is Codec.NONE


@pytest.mark.parametrize("number", [5, 6, 7])
def test_unassigned_numbers_are_corrupt(number: int) -> None:
    with pytest.raises(CorruptRecord, match=f"got {number}"):
        codec_of(number)


def test_an_unknown_name_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match="must be one of none, gzip"):
        parse_codec("brotli")


def test_defaults_are_kafkas() -> None:
    assert [default_level(codec) for codec in Codec] == [0, -1, 0, 9, 3]
    assert [resolve_level(codec, None) for codec in Codec] == [0, -1, 0, 9, 3]


@pytest.mark.parametrize(
    ("codec", "allowed", "refused"),
    [
        (Codec.GZIP, (-1, 1, 9), (-2, 0, 10)),
        (Codec.LZ4, (1, 17), (0, 18)),
        (Codec.ZSTD, (-131072, 0, 22), (-131073, 23)),
    ],
)
def test_levels_have_kafkas_bounds(
    codec: Codec, allowed: tuple[int, ...], refused: tuple[int, ...]
) -> None:
    assert [resolve_level(codec, level) for level in allowed] == list(allowed)
    for level in refused:
        with pytest.raises(ConfigError):
            resolve_level(codec, level)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.SNAPPY])
def test_codecs_without_levels_take_none(codec: Codec) -> None:
    with pytest.raises(ConfigError, match="has no levels"):
        resolve_level(codec, 1)
