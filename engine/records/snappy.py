"""Snappy as Kafka frames it: the stream of the xerial library, or one raw block.

```
header    82 53 4e 41 50 50 59 00 | int32 version 1 | int32 compatible with 1
block     int32 length | that many bytes of raw snappy (32 KiB of input when written)
```

A raw block starts with its uncompressed length. Data without the header is one raw block. Headers
may also occur between blocks (joined streams). Source: `SnappyInputStream` of snappy-java.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import cache

from engine.host.ports import Buffer
from engine.records.codec import CompressedDataCorrupt, DecompressedTooLarge

_MAGIC = b"\x82SNAPPY\x00"
_HEADER = _MAGIC + struct.pack(">ii", 1, 1)
_LENGTH = struct.Struct(">i")
_length_at = _LENGTH.unpack_from
(_MAGIC_AS_LENGTH,) = _LENGTH.unpack_from(_MAGIC)
_BLOCK_INPUT_BYTES = 32 * 1024

# The densest element of raw snappy has 3 bytes and copies 64: no block can grow more.
_GROWTH_OUT, _GROWTH_IN = 64, 3


def compress(payload: Buffer) -> bytes:
    """Return the payload as snappy-java's (xerial) stream: a header, then blocks with lengths."""
    from cramjam import snappy

    view = memoryview(payload)
    parts = [_HEADER]
    for start in range(0, len(view), _BLOCK_INPUT_BYTES):
        block = bytes(snappy.compress_raw(view[start : start + _BLOCK_INPUT_BYTES]))
        parts += (_LENGTH.pack(len(block)), block)
    return b"".join(parts)


def pieces(
    data: memoryview, limit_bytes: int, *, arena: memoryview | None = None
) -> Iterator[Buffer]:
    """Yield the decompressed blocks of a xerial stream, or the content of one raw snappy block.

    With an arena, the blocks are written into it one after another. Raises CompressedDataCorrupt,
    and DecompressedTooLarge if the blocks together exceed the limit.
    """
    if len(data) < len(_HEADER) or data[: len(_MAGIC)] != _MAGIC:
        yield _decompress_block(data, 0, limit_bytes, arena)
        return
    position, size = len(_HEADER), 0
    # Fewer than four bytes at the end are no length: the library ignores them.
    while position + _LENGTH.size <= len(data):
        (length,) = _LENGTH.unpack_from(data, position)
        if length == _MAGIC_AS_LENGTH:
            _check_joined_header(data, position)
            position += len(_HEADER)
            continue
        start = position + _LENGTH.size
        if not 0 <= length <= len(data) - start:
            raise CompressedDataCorrupt(
                f"a snappy block of at most {len(data) - start} bytes", length, position=position
            )
        position = start + length
        room = None if arena is None else arena[size:]
        piece = _decompress_block(data[start:position], start, limit_bytes - size, room)
        size += len(piece)
        yield piece


def decompress_fast(data: memoryview, arena: memoryview) -> int | None:
    """Decompress a stream in the form that `compress` writes into `arena`.

    Return the content's size. None for any other form, for damage, and if the arena is too small:
    call `pieces` then.
    """
    if data[: len(_HEADER)] != _HEADER:
        return None
    decompress_into, failure = _load_decompressor()
    position, size, end = len(_HEADER), 0, len(data)
    try:
        while position + 4 <= end:
            (length,) = _length_at(data, position)
            start = position + 4
            position = start + length
            if not start < position <= end:
                return None
            size += decompress_into(data[start:position], arena[size:])
    except failure:
        return None
    return size


@cache
def _load_decompressor() -> tuple[Callable[[memoryview, memoryview], int], type[Exception]]:
    """Import the function that decompresses a block into a buffer; also return the error it raises.

    The function returns the decompressed size in bytes. Imported at first use.
    """
    from cramjam import DecompressionError, snappy

    return snappy.decompress_raw_into, DecompressionError


def _check_joined_header(data: memoryview, position: int) -> None:
    """Raise CompressedDataCorrupt unless the header of a joined xerial stream begins here."""
    header = bytes(data[position : position + len(_HEADER)])
    if len(header) < len(_HEADER) or not header.startswith(_MAGIC):
        raise CompressedDataCorrupt("a snappy stream header", header.hex(), position=position)
    (version,) = _LENGTH.unpack_from(header, len(_MAGIC))
    if version < 1:
        raise CompressedDataCorrupt("snappy stream version 1 or later", version, position=position)


def _decompress_block(
    block: memoryview, position: int, limit_bytes: int, arena: memoryview | None
) -> memoryview:
    """Decompress one raw block, whose declared size is checked first.

    Raises CompressedDataCorrupt, or DecompressedTooLarge beyond `limit_bytes`.
    """
    from cramjam import DecompressionError, snappy

    try:
        declared = snappy.decompress_raw_len(block) if block else None
    except DecompressionError:
        declared = None
    if declared is None or declared * _GROWTH_IN > len(block) * _GROWTH_OUT:
        raise CompressedDataCorrupt(
            "a snappy block", f"{len(block)} bytes that declare {declared}", position=position
        )
    if declared > limit_bytes:
        raise DecompressedTooLarge(
            f"at most {limit_bytes} more bytes of decompressed records", declared, position=position
        )
    piece = memoryview(bytearray(declared)) if arena is None else arena[:declared]
    try:
        # The library itself holds the block to its declared size.
        snappy.decompress_raw_into(block, piece)
    except DecompressionError as error:
        raise CompressedDataCorrupt("a snappy block", error, position=position) from error
    return piece
