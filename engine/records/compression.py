"""Compress the records of a batch as Kafka does, and decompress them within a limit.

```
codec    framing             written                    also read
none     the records
gzip     members, gzip.py    one member                 many members; trailing data is ignored
snappy   xerial, snappy.py   blocks of 32 KiB           one raw block
lz4      frame, lz4.py       64 KiB blocks              the wrong header checksum of magic 0
zstd     frame, zstd.py      no size, no checksum       several frames
```

A codec's module is imported with its first batch: most runs of a tool need at most one. Sizes in
the data are not trusted: before memory is allocated they are checked against what the codec can
produce from the available bytes, and against the caller's limit.

Source: D16.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TypeAlias

from engine.errors import ConfigError, CorruptRecord
from engine.host.ports import Buffer
from engine.limits import DECOMPRESSED_BATCH_BYTES_MAX
from engine.records.codec import (
    Codec,
    CompressedDataCorrupt,
    DecompressedTooLarge,
    codec_of,
    default_level,
    parse_codec,
    resolve_level,
)

__all__ = [
    "Codec",
    "CompressedDataCorrupt",
    "DecompressedTooLarge",
    "codec_of",
    "compress",
    "decompress",
    "decompress_into",
    "decompress_prefix",
    "default_level",
    "parse_codec",
    "resolve_level",
    "select_fast_decompressor",
]

FastDecompressor: TypeAlias = Callable[[memoryview, memoryview], int | None]

_MAGIC = 2


def compress(codec: Codec, payload: Buffer, level: int | None = None, magic: int = 2) -> bytes:
    """Return the payload compressed as Kafka does for a batch of this magic.

    `level` None is Kafka's default. Raises ConfigError for a level out of Kafka's range, and for
    zstd below magic 2.
    """
    level_used = resolve_level(codec, level)
    if codec is Codec.GZIP:
        from engine.records import gzip

        return gzip.compress(payload, level_used)
    if codec is Codec.SNAPPY:
        from engine.records import snappy

        return snappy.compress(payload)
    if codec is Codec.LZ4:
        from engine.records import lz4

        thorough = None if level_used == default_level(Codec.LZ4) else level_used
        return lz4.compress(payload, thorough, wrong_checksum=magic == 0)
    if codec is Codec.ZSTD:
        if magic < 2:
            raise ConfigError("compression.type", codec.label, "needs record format 2")
        from engine.records import zstd

        return zstd.compress(payload, level_used)
    return bytes(payload)


def decompress(
    codec: Codec,
    data: Buffer,
    *,
    magic: int = 2,
    limit_bytes: int = DECOMPRESSED_BATCH_BYTES_MAX,
) -> bytes:
    """Return the decompressed data.

    Raises DecompressedTooLarge at the limit, CompressedDataCorrupt for damage; their positions
    count from the start of `data`.
    """
    pieces = [bytes(piece) for piece in _iter_pieces(codec, memoryview(data), magic, limit_bytes)]
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def decompress_prefix(
    codec: Codec,
    data: Buffer,
    *,
    magic: int = 2,
    limit_bytes: int = DECOMPRESSED_BATCH_BYTES_MAX,
) -> tuple[bytes, CorruptRecord | None]:
    """Return the data decompressed up to a fault, and the fault; None without one."""
    pieces: list[bytes] = []
    fault: CorruptRecord | None = None
    try:
        for piece in _iter_pieces(codec, memoryview(data), magic, limit_bytes, keep_prefix=True):
            pieces.append(bytes(piece))
    except CorruptRecord as error:
        fault = error
    return b"".join(pieces), fault


def decompress_into(
    codec: Codec, data: Buffer, arena: bytearray | memoryview, *, magic: int = 2
) -> int:
    """Decompress to the start of `arena` and return the size.

    Raises DecompressedTooLarge if the arena is too small, CompressedDataCorrupt for damage.
    """
    source, target = memoryview(data), memoryview(arena)
    typical_size = select_fast_decompressor(codec)(source, target) if magic == _MAGIC else None
    if typical_size is not None:
        return typical_size
    size = 0
    for piece in _iter_pieces(codec, source, magic, len(target), arena=target):
        end = size + len(piece)
        # Most pieces are at this place already: copying them onto themselves costs little.
        target[size:end] = piece
        size = end
    return size


@lru_cache
def select_fast_decompressor(codec: int) -> FastDecompressor:
    """Return the fast decompressor of a codec number of magic 2.

    It writes the content to an arena's start and returns its size; None if the data needs the
    general path, is damaged or does not fit. Then `decompress_into` raises the exact error.
    """
    if codec == Codec.GZIP:
        from engine.records import gzip

        return gzip.decompress_fast
    if codec == Codec.LZ4:
        from engine.records import lz4

        return lz4.decompress_fast
    if codec == Codec.SNAPPY:
        from engine.records import snappy

        return snappy.decompress_fast
    if codec == Codec.ZSTD:
        from engine.records import zstd

        return zstd.decompress_fast
    return _open_nothing


def _open_nothing(_data: memoryview, _arena: memoryview) -> int | None:
    """Return None, as the fast decompressor of a codec that has none."""
    return None


def _iter_pieces(
    codec: Codec,
    data: memoryview,
    magic: int,
    limit_bytes: int,
    *,
    keep_prefix: bool = False,
    arena: memoryview | None = None,
) -> Iterator[Buffer]:
    """Yield the content in pieces, at most `limit_bytes` in total.

    A piece is valid until the next one, which may overwrite it.
    """
    source = _open_pieces(codec, data, magic, limit_bytes, keep_prefix=keep_prefix, arena=arena)
    left = limit_bytes
    for piece in source:
        if len(piece) > left:
            raise DecompressedTooLarge(
                f"at most {limit_bytes} bytes of decompressed records", "more", position=0
            )
        left -= len(piece)
        yield piece


def _open_pieces(
    codec: Codec,
    data: memoryview,
    magic: int,
    limit_bytes: int,
    *,
    keep_prefix: bool,
    arena: memoryview | None,
) -> Iterator[Buffer]:
    """Return an iterator of the decompressed pieces; import the codec's module if necessary.

    With `keep_prefix` the pieces before a fault are yielded; `arena` is memory for the content.
    """
    if codec is Codec.GZIP:
        from engine.records import gzip

        return gzip.pieces(data, limit_bytes, keep_prefix=keep_prefix)
    if codec is Codec.SNAPPY:
        from engine.records import snappy

        return snappy.pieces(data, limit_bytes, arena=arena)
    if codec is Codec.LZ4:
        from engine.records import lz4

        return lz4.pieces(data, ignore_header_checksum=magic == 0, arena=arena)
    if codec is Codec.ZSTD:
        from engine.records import zstd

        if magic < 2:
            raise CompressedDataCorrupt("a codec of record formats 0 and 1", codec.label)
        return zstd.pieces(data, limit_bytes, keep_prefix=keep_prefix, arena=arena)
    return iter((data,))
