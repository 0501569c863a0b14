"""LZ4 frames as Kafka writes and reads them.

```
magic       04 22 4d 18
FLG         bits 7–6 version 01, 5 independent blocks (always), 4 block checksums,
            3 content size, 2 content checksum, 1–0 zero
BD          bits 6–4 largest block: 4 = 64 KiB, 5 = 256 KiB, 6 = 1 MiB, 7 = 4 MiB
[size]      8 bytes, if FLG bit 3; ignored
HC          second byte of the xxHash32 of FLG…size; magic 0: of magic…size, which is wrong
block       uint32 little-endian length, high bit = uncompressed | bytes | [xxHash32]
end         length 0 | [content checksum, not verified]; later bytes are ignored
```

Written: FLG 60, BD 40, so `04224d18 60 40 82` (magic 0: `1a`). Linked blocks are refused.
Source: `Lz4BlockInputStream`, `Lz4BlockOutputStream`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

from engine.host.ports import Buffer
from engine.records.codec import CompressedDataCorrupt

_MAGIC = b"\x04\x22\x4d\x18"
_DESCRIPTOR = b"\x60\x40"
_WRITTEN_BLOCK_BYTES = 64 * 1024
_WORD = struct.Struct("<I")
_word_at = _WORD.unpack_from
#: The header of the frames that Kafka's clients and librdkafka write.
_FAST_HEAD = _MAGIC + _DESCRIPTOR + b"\x82"
_STORED = 0x80000000
_LENGTH_BITS = 0x7FFFFFFF
_HEADER_BYTES_MIN = 7

# Smallest level of LZ4 HC: below, the library uses the fast compressor.
_THOROUGH_LEVEL_MIN = 3

_FLAG_VERSION_MASK = 0xC0
_FLAG_VERSION = 0x40
_FLAG_INDEPENDENT = 0x20
_FLAG_BLOCK_CHECKSUM = 0x10
_FLAG_CONTENT_SIZE = 0x08
_FLAG_CONTENT_CHECKSUM = 0x04
_FLAG_RESERVED = 0x03


class _Frame(NamedTuple):
    """Block size and checksums from a frame's header."""

    first_block: int
    block_bytes_max: int
    has_block_checksums: bool
    has_content_checksum: bool


def compress(payload: Buffer, level: int | None, *, wrong_checksum: bool) -> bytes:
    """Return the payload as one LZ4 frame of independent 64 KiB blocks.

    `level` None uses LZ4 fast, a number LZ4 HC at that level. `wrong_checksum` writes the header
    checksum that clients of magic 0 write and expect.
    """
    hashed = _MAGIC + _DESCRIPTOR if wrong_checksum else _DESCRIPTOR
    parts = [_MAGIC, _DESCRIPTOR, bytes((_header_checksum(hashed),))]
    parts += _compress_by_default(payload) if level is None else _compress_high(payload, level)
    parts.append(_WORD.pack(0))
    return b"".join(parts)


def _compress_by_default(payload: Buffer) -> list[bytes]:
    """Compress with LZ4 fast; return the parts of a frame's body: each block after its length word.

    A block that does not shrink is stored uncompressed.
    """
    from cramjam import lz4

    parts: list[bytes] = []
    view = memoryview(payload)
    for start in range(0, len(view), _WRITTEN_BLOCK_BYTES):
        plain = view[start : start + _WRITTEN_BLOCK_BYTES]
        block = bytes(lz4.compress_block(plain, store_size=False))
        if len(block) >= len(plain):
            parts += (_WORD.pack(len(plain) | _STORED), bytes(plain))
        else:
            parts += (_WORD.pack(len(block)), block)
    return parts


def _compress_high(payload: Buffer, level: int) -> list[bytes]:
    """Compress with LZ4 HC at a level; return the blocks of a frame, each with its length word.

    The blocks are taken from a frame made by the library, whose block functions lack levels.
    """
    from cramjam import lz4

    compressor = lz4.Compressor(
        level=max(level, _THOROUGH_LEVEL_MIN), content_checksum=False, block_linked=False
    )
    compressor.compress(bytes(payload))
    data = memoryview(bytes(compressor.finish()))
    frame = _read_header(data, ignore_header_checksum=False)
    position, parts = frame.first_block, []
    while word := _read_word(data, position):
        end = position + _WORD.size + (word & ~_STORED)
        parts.append(bytes(data[position:end]))
        position = end + _WORD.size * frame.has_block_checksums
    return parts


def pieces(
    data: memoryview, *, ignore_header_checksum: bool, arena: memoryview | None = None
) -> Iterator[Buffer]:
    """Yield the decompressed blocks of a frame.

    Without an arena the next block overwrites each one. With an arena, blocks are written to it one
    after another as long as the largest block fits. Raises CompressedDataCorrupt.
    """
    frame = _read_header(data, ignore_header_checksum=ignore_header_checksum)
    scratch: memoryview | None = None
    position, size = frame.first_block, 0
    while True:
        word = _read_word(data, position)
        position += _WORD.size
        length = word & ~_STORED
        if length == 0:
            if frame.has_content_checksum:
                _read_word(data, position)
            return
        _check_length(length, frame.block_bytes_max, len(data) - position, position)
        block = data[position : position + length]
        piece = block
        if not word & _STORED:
            room = None if arena is None else arena[size : size + frame.block_bytes_max]
            if room is None or len(room) < frame.block_bytes_max:
                room = scratch = scratch or memoryview(bytearray(frame.block_bytes_max))
            piece = _decompress_block(block, room, position)
        position += length
        if frame.has_block_checksums:
            _check_block(block, _read_word(data, position), position)
            position += _WORD.size
        size += len(piece)
        yield piece


def decompress_fast(data: memoryview, arena: memoryview) -> int | None:
    """Decompress a frame in the form of Kafka's clients into `arena`; return the content's size.

    None for any other form, for damage, and if the arena is too small: call `pieces` then.
    """
    if data[:_HEADER_BYTES_MIN] != _FAST_HEAD:
        return None
    decompress_into, failure = _load_decompressor()
    position, size = _HEADER_BYTES_MIN, 0
    end = len(data) - 4
    last_room = len(arena) - _WRITTEN_BLOCK_BYTES
    try:
        while position <= end:
            (word,) = _word_at(data, position)
            if not word & _LENGTH_BITS:
                return size
            start = position + 4
            position = start + (word & _LENGTH_BITS)
            if position > end or size > last_room:
                return None
            block, room = data[start:position], arena[size : size + _WRITTEN_BLOCK_BYTES]
            if word & _STORED:
                room[: len(block)] = block
                size += len(block)
            else:
                size += decompress_into(block, room)
    except (failure, ValueError):
        # A ValueError: an uncompressed block is larger than a block may be.
        return None
    return None


def _read_header(data: memoryview, *, ignore_header_checksum: bool) -> _Frame:
    """Return what the header of an LZ4 frame states; raises CompressedDataCorrupt.

    Kafka's messages of magic 0 have a wrong header checksum: `ignore_header_checksum` accepts it.
    """
    if len(data) < _HEADER_BYTES_MIN or data[:4] != _MAGIC:
        raise CompressedDataCorrupt("an lz4 frame", bytes(data[:7]).hex() or "nothing", position=0)
    flags, descriptor = data[4], data[5]
    wanted = _FLAG_VERSION | _FLAG_INDEPENDENT
    if flags & (_FLAG_VERSION_MASK | _FLAG_INDEPENDENT | _FLAG_RESERVED) != wanted:
        raise CompressedDataCorrupt("an lz4 frame of independent blocks", f"{flags:#x}", position=4)
    if descriptor & 0x8F or descriptor < 0x40:
        raise CompressedDataCorrupt("an lz4 block size from 4 to 7", f"{descriptor:#x}", position=5)
    checksum_at = 14 if flags & _FLAG_CONTENT_SIZE else 6
    if checksum_at >= len(data):
        raise CompressedDataCorrupt("an lz4 frame header", "the end of the data", position=4)
    expected = _header_checksum(bytes(data[4:checksum_at]))
    if data[checksum_at] != expected and not ignore_header_checksum:
        raise CompressedDataCorrupt(
            f"lz4 header checksum {expected:#x}", f"{data[checksum_at]:#x}", position=checksum_at
        )
    return _Frame(
        first_block=checksum_at + 1,
        block_bytes_max=1 << (2 * (descriptor >> 4) + 8),
        has_block_checksums=bool(flags & _FLAG_BLOCK_CHECKSUM),
        has_content_checksum=bool(flags & _FLAG_CONTENT_CHECKSUM),
    )


def _header_checksum(hashed: bytes) -> int:
    """Return the checksum byte of a frame header: the second lowest of its XXH32."""
    return (_load_xxh32()(hashed) >> 8) & 0xFF


@cache
def _load_xxh32() -> Callable[[Buffer], int]:
    """Import the function for xxHash32, the checksum inside LZ4 frames; imported at first use."""
    from xxhash import xxh32_intdigest

    return xxh32_intdigest


def _read_word(data: memoryview, position: int) -> int:
    """Return the little-endian uint32 at a position.

    Raise CompressedDataCorrupt if the data ends.
    """
    if position + _WORD.size > len(data):
        raise CompressedDataCorrupt("four more bytes of lz4", "the end", position=position)
    word: int
    (word,) = _WORD.unpack_from(data, position)
    return word


def _check_length(length: int, length_max: int, bytes_left: int, position: int) -> None:
    """Raise CorruptRecord's kind for compressed data if a block is too long."""
    bound = min(length_max, bytes_left)
    if length > bound:
        raise CompressedDataCorrupt(
            f"an lz4 block of at most {bound} bytes", length, position=position
        )


def _check_block(block: memoryview, stored: int, position: int) -> None:
    """Raise CompressedDataCorrupt if the block's checksum is not `stored`."""
    computed = _load_xxh32()(block)
    if computed != stored:
        raise CompressedDataCorrupt(
            f"lz4 block checksum {computed:#x}", f"{stored:#x}", position=position
        )


@cache
def _load_decompressor() -> tuple[Callable[[memoryview, memoryview], int], type[Exception]]:
    """Import the function that decompresses a block into a buffer; also return the error it raises.

    The function returns the decompressed size in bytes. Imported at first use.
    """
    from cramjam import DecompressionError, lz4

    return lz4.decompress_block_into, DecompressionError


def _decompress_block(block: memoryview, target: memoryview, position: int) -> memoryview:
    """Decompress a block into `target`; return the part of it that was filled."""
    decompress_into, failure = _load_decompressor()
    try:
        size = decompress_into(block, target)
    except failure as error:
        raise CompressedDataCorrupt("an lz4 block", error, position=position) from error
    return target[:size]
