"""Zstandard frames: written as Kafka does, read into a bounded arena.

```
frame    28 b5 2f fd | descriptor | [window] | [dictionary id] | [content size] | blocks
         | [checksum]
block    3 bytes little-endian: bit 0 last, bits 1–2 kind, bits 3–23 size
         0 stored (size bytes) · 1 run of one byte (size = its length) · 2 compressed
skip     50…5f 2a 4d 18 | uint32 length | ignored
```

A block decompresses to at most 128 KiB, so the block headers limit a frame's decompressed size
before anything is decompressed. Source: RFC 8878; Kafka writes no content size and no checksum.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache

from engine.host.ports import Buffer
from engine.records.codec import CompressedDataCorrupt, DecompressedTooLarge

_MAGIC = 0xFD2FB528
_SKIP_MAGIC = 0x184D2A50
_SKIP_MASK = 0xFFFFFFF0
_WORD = struct.Struct("<I")
_BLOCK_BYTES_MAX = 128 * 1024
_RUN, _COMPRESSED = 1, 2
_DICTIONARY_BYTES = (0, 1, 2, 4)
_CONTENT_SIZE_BYTES = (0, 2, 4, 8)

# The library's message for output that does not fit; a test checks it.
_ARENA_FULL = "whole buffer"


def compress(payload: Buffer, level: int) -> bytes:
    """Return the payload as one Zstandard frame without content size and checksum.

    Kafka flushes its stream before it closes it, so that each frame ends with an empty block.
    """
    from cramjam import zstd

    compressor = zstd.Compressor(level)
    compressor.compress(bytes(payload))
    return bytes(compressor.flush()) + bytes(compressor.finish())


def pieces(
    data: memoryview,
    limit_bytes: int,
    *,
    keep_prefix: bool = False,
    arena: memoryview | None = None,
) -> Iterator[Buffer]:
    """Yield the content of all Zstandard frames, in one piece.

    The content is written to the arena if one is given. Raises CompressedDataCorrupt, with
    `keep_prefix` after the content before the damage; DecompressedTooLarge if the content exceeds
    the limit or the arena.
    """
    if not data:
        # Empty data is valid, it has no frames; it is no truncated frame.
        return
    decompress_into, failure = _load_decompressor()
    target = arena
    if target is None:
        target = memoryview(bytearray(min(size_bound(data), limit_bytes)))
    try:
        size = decompress_into(data, target)
    except failure as error:
        if _ARENA_FULL in str(error):
            raise DecompressedTooLarge(
                f"at most {len(target)} bytes of decompressed records", "more", position=0
            ) from error
        if keep_prefix:
            yield _find_written(data, target)
        raise CompressedDataCorrupt("zstd frames", error, position=0) from error
    yield target[:size]


def decompress_fast(data: memoryview, arena: memoryview) -> int | None:
    """Decompress all Zstandard frames into `arena` and return the content's size in bytes.

    None for damage, and if the arena is too small: `pieces` then raises the exact error.
    """
    if not data:
        return 0
    decompress_into, failure = _load_decompressor()
    try:
        return decompress_into(data, arena)
    except failure:
        return None


@cache
def _load_decompressor() -> tuple[Callable[[memoryview, memoryview], int], type[Exception]]:
    """Import the function that decompresses frames into a buffer; also return the error it raises.

    The function returns the decompressed size in bytes. Imported at first use.
    """
    from cramjam import DecompressionError, zstd

    return zstd.decompress_into, DecompressionError


def size_bound(data: memoryview) -> int:
    """Return a size that the decompressed frames cannot exceed, from their block headers.

    The count ends where the structure ends early or is damaged, as does the decompressor.
    """
    bound = 0
    position = 0
    while position + 8 <= len(data):
        (magic,) = _WORD.unpack_from(data, position)
        if magic & _SKIP_MASK == _SKIP_MAGIC:
            (skipped_bytes,) = _WORD.unpack_from(data, position + 4)
            position += 8 + skipped_bytes
        elif magic == _MAGIC:
            frame_bound, position = _frame_bound(data, position + 4)
            bound += frame_bound
        else:
            break
    return bound


def _frame_bound(data: memoryview, position: int) -> tuple[int, int]:
    """Return the largest size in bytes that a frame can decompress to, and the position after it.

    `position` is that of the frame header's descriptor byte, after the magic number.
    """
    descriptor = data[position]
    single_segment = descriptor >> 5 & 1
    content_size_bytes = _CONTENT_SIZE_BYTES[descriptor >> 6] or single_segment
    position += 1 + (1 - single_segment) + _DICTIONARY_BYTES[descriptor & 3] + content_size_bytes
    bound = 0
    while position + 3 <= len(data):
        header = data[position] | data[position + 1] << 8 | data[position + 2] << 16
        kind, size = header >> 1 & 3, header >> 3
        bound += _BLOCK_BYTES_MAX if kind == _COMPRESSED else size
        position += 3 + (1 if kind == _RUN else size)
        if header & 1:
            break
    return bound, position + (4 if descriptor & 4 else 0)


def _find_written(data: memoryview, zeroes: memoryview) -> memoryview:
    """Return the bytes that a failing decompression has written into an arena of zeroes.

    The library does not return their number, so the decompression runs again over an arena of ones:
    the bytes that are equal in both arenas were written.
    """
    decompress_into, failure = _load_decompressor()
    ones = memoryview(bytearray(b"\xff") * len(zeroes))
    with suppress(failure):
        decompress_into(data, ones)
    agreed, end = 0, len(zeroes)
    while agreed < end:
        middle = (agreed + end + 1) // 2
        if zeroes[agreed:middle] == ones[agreed:middle]:
            agreed = middle
        else:
            end = middle - 1
    return zeroes[:agreed]
