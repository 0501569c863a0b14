"""The codecs of record batches: their numbers, names, levels and errors."""

from __future__ import annotations

from enum import IntEnum

from engine.errors import ConfigError, CorruptRecord


class Codec(IntEnum):
    """Compression of a batch's records: bits 0–2 of its attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @property
    def label(self) -> str:
        """Return the codec's name in settings and in the output of Kafka's tools."""
        return _LABELS[self]


class CompressedDataCorrupt(CorruptRecord):
    """Compressed records violate their codec's format."""


class DeflatedDataBroken(CompressedDataCorrupt):
    """Deflated data is corrupt before its end."""


class DecompressedTooLarge(CorruptRecord):
    """Compressed records decompress beyond the limit that their reader set."""


class UnknownCodec(CorruptRecord):
    """The attributes name a codec that does not exist."""


_CODECS = tuple(Codec)
_LABELS = {codec: codec.name.lower() for codec in Codec}
_BY_LABEL = {label: codec for codec, label in _LABELS.items()}

# Lowest, highest and default level; Source: `CompressionType`.
_LEVELS = {
    Codec.GZIP: (1, 9, -1),
    Codec.LZ4: (1, 17, 9),
    Codec.ZSTD: (-131072, 22, 3),
}


def codec_of(attributes: int) -> Codec:
    """Return the codec in a batch's or message's attributes; raises UnknownCodec for 5, 6, 7."""
    number = attributes & 7
    if number >= len(_CODECS):
        raise UnknownCodec("a compression codec from 0 to 4", number)
    return _CODECS[number]


def parse_codec(label: str) -> Codec:
    """Return the codec with Kafka's name (`none`, `gzip`, …); raises ConfigError if unknown."""
    codec = _BY_LABEL.get(label)
    if codec is None:
        raise ConfigError("compression.type", label, "must be one of " + ", ".join(_BY_LABEL))
    return codec


def resolve_level(codec: Codec, level: int | None) -> int:
    """Return the compression level, Kafka's default for None; raises ConfigError out of range.

    For codecs without levels only None is allowed, and 0 is returned.
    """
    key = f"compression.{codec.label}.level"
    if codec not in _LEVELS:
        if level is not None:
            raise ConfigError(key, level, f"{codec.label} has no levels")
        return 0
    lowest, highest, default = _LEVELS[codec]
    if level is None or level == default:
        return default
    if not lowest <= level <= highest:
        raise ConfigError(key, level, f"must be from {lowest} to {highest}")
    return level


def default_level(codec: Codec) -> int:
    """Return the compression level of Kafka's default settings, 0 for codecs without levels."""
    _, _, default = _LEVELS.get(codec, (0, 0, 0))
    return default
