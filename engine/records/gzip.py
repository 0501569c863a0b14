"""Gzip members as Java writes and reads them.

```
header    1f 8b | method 08 | flags | time (4) | extra flags | operating system
          flags: bit 1 header checksum, 2 extra field, 3 name, 4 comment
body      deflate
trailer   uint32 little-endian CRC-32 of the content | uint32 its size mod 2^32
```

Written: no flags, no time, operating system ff. Bytes after a member are ignored if they are too
few for another member or do not start with a member's header. Source: `GZIPInputStream`, RFC 1952.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

from engine.host.ports import Buffer
from engine.limits import DECOMPRESS_CHUNK_BYTES
from engine.records.codec import CompressedDataCorrupt, DeflatedDataBroken

if TYPE_CHECKING:
    from zlib import _Decompress

_DEFLATE_WBITS = -15
_MAGIC = b"\x1f\x8b\x08"
_HEADER = bytes.fromhex("1f8b08000000000000ff")
# Method 8 and no flags: no optional fields between header and body.
_FAST_START = _MAGIC + b"\x00"
_FAST_START_BYTES = len(_FAST_START)
_TRAILER = struct.Struct("<II")
_FLAG_CHECKSUM, _FLAG_EXTRA, _FLAG_NAME, _FLAG_COMMENT = 0x02, 0x04, 0x08, 0x10
_SHORT = struct.Struct("<H")

# Java reads another member only if this many bytes are left: a header (10) and a trailer (8).
_MEMBER_BYTES_MIN = 18

# zlib copies unused input on every call: small feeds keep the total cost linear.
_FEED_BYTES = 64 * 1024
# First feed of the second and later members: data of several members has small ones.
_NEXT_FEED_BYTES = 512
_NAME_CHUNK_BYTES = 256


def compress(payload: Buffer, level: int) -> bytes:
    """Return the payload as one gzip member (header, deflated data, trailer), as Java writes it.

    `level` −1 is zlib's default.
    """
    compressor = zlib.compressobj(level, zlib.DEFLATED, _DEFLATE_WBITS)
    body = compressor.compress(payload) + compressor.flush()
    trailer = _TRAILER.pack(zlib.crc32(payload), len(payload) & 0xFFFFFFFF)
    return _HEADER + body + trailer


def pieces(data: memoryview, limit_bytes: int, *, keep_prefix: bool = False) -> Iterator[bytes]:
    """Yield the decompressed content of all gzip members, piece by piece.

    The last piece may exceed `limit_bytes` by one byte. Raises CompressedDataCorrupt; with
    `keep_prefix` the content before the damage is yielded first.
    """
    position = _header_end(data, 0)
    if position is None:
        raise CompressedDataCorrupt(
            "a gzip header", bytes(data[:10]).hex() or "nothing", position=0
        )
    piece_bytes = min(DECOMPRESS_CHUNK_BYTES, limit_bytes + 1)
    feed_bytes = _FEED_BYTES
    while position is not None:
        member_end = yield from _iter_member(data, position, feed_bytes, piece_bytes, keep_prefix)
        feed_bytes = _NEXT_FEED_BYTES
        left = len(data) - member_end
        position = _header_end(data, member_end) if left > _MEMBER_BYTES_MIN else None


def decompress_fast(data: memoryview, arena: memoryview) -> int | None:
    """Decompress one gzip member in Java's form into `arena`; return the content's size.

    None for any other form, for damage, and if the arena is too small: call `pieces` then.
    """
    if data[:_FAST_START_BYTES] != _FAST_START:
        return None
    inflater = zlib.decompressobj(_DEFLATE_WBITS)
    try:
        content = inflater.decompress(data[len(_HEADER) :], len(arena) + 1)
    except zlib.error:
        return None
    trailer, size = inflater.unused_data, len(content)
    if not inflater.eof or size > len(arena) or len(trailer) != _TRAILER.size:
        return None
    if _TRAILER.unpack(trailer) != (zlib.crc32(content), size & 0xFFFFFFFF):
        return None
    arena[:size] = content
    return size


def _header_end(data: memoryview, start: int) -> int | None:
    """Return the position after the gzip header at `start`, None without a valid one."""
    if len(data) - start < len(_HEADER) or data[start : start + len(_MAGIC)] != _MAGIC:
        return None
    flags = data[start + 3]
    end = start + len(_HEADER)
    if flags & _FLAG_EXTRA:
        if end + _SHORT.size > len(data):
            return None
        (extra_bytes,) = _SHORT.unpack_from(data, end)
        end += _SHORT.size + extra_bytes
    for flag in (_FLAG_NAME, _FLAG_COMMENT):
        if flags & flag:
            after_text = _after_zero(data, end)
            if after_text is None:
                return None
            end = after_text
    if flags & _FLAG_CHECKSUM:
        if end + _SHORT.size > len(data):
            return None
        (checksum,) = _SHORT.unpack_from(data, end)
        if checksum != zlib.crc32(data[start:end]) & 0xFFFF:
            return None
        end += _SHORT.size
    return end if end <= len(data) else None


def _after_zero(data: memoryview, start: int) -> int | None:
    """Return the position after the next zero byte, None if there is none.

    The data is searched in small parts: otherwise each of many members would copy all bytes after
    it.
    """
    for at in range(start, len(data), _NAME_CHUNK_BYTES):
        zero_at = bytes(data[at : at + _NAME_CHUNK_BYTES]).find(0)
        if zero_at >= 0:
            return at + zero_at + 1
    return None


def _iter_member(
    data: memoryview, start: int, feed_bytes: int, piece_bytes: int, keep_prefix: bool
) -> Generator[bytes, None, int]:
    """Yield the content of the gzip member whose deflated data begins at `start`.

    Check its trailer. The generator returns the position after the trailer. Raises
    CompressedDataCorrupt for damage.
    """
    inflater = zlib.decompressobj(_DEFLATE_WBITS)
    position, checksum, size = start, 0, 0
    while not inflater.eof:
        feed = data[position : position + feed_bytes]
        feed_bytes = min(4 * feed_bytes, _FEED_BYTES)
        before = inflater.copy() if keep_prefix else None
        try:
            piece = inflater.decompress(feed, piece_bytes)
        except zlib.error as error:
            if before is not None:
                yield _inflate_before_fault(before, feed, piece_bytes)
            raise DeflatedDataBroken("deflated data", error, position=position) from error
        if not piece and not feed:
            raise CompressedDataCorrupt("more deflated data", "the end", position=position)
        # At the end of the deflated data both tails may have the same bytes.
        left = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
        position += len(feed) - len(left)
        checksum = zlib.crc32(piece, checksum)
        size += len(piece)
        if piece:
            yield piece
    _check_trailer(data, position, checksum, size)
    return position + _TRAILER.size


def _inflate_before_fault(inflater: _Decompress, feed: memoryview, piece_bytes: int) -> bytes:
    """Return the content before damage in `feed`: the longest prefix that can be inflated."""
    good, bad = 0, len(feed)
    while bad - good > 1:
        middle = (good + bad) // 2
        try:
            inflater.copy().decompress(feed[:middle], piece_bytes)
        except zlib.error:
            bad = middle
        else:
            good = middle
    return inflater.decompress(feed[:good], piece_bytes)


def _check_trailer(data: memoryview, position: int, checksum: int, size: int) -> None:
    """Raise CompressedDataCorrupt unless CRC-32 and size (mod 2^32) match the trailer."""
    if position + _TRAILER.size > len(data):
        raise CompressedDataCorrupt("a gzip trailer", "the end", position=position)
    expected = (checksum, size & 0xFFFFFFFF)
    stored = _TRAILER.unpack_from(data, position)
    if stored != expected:
        raise CompressedDataCorrupt(f"gzip checksum and size {expected}", stored, position=position)
