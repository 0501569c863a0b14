"""Where the batches of a log go on behind damage.

```
no length that a batch has       search every byte for the next whole batch: `resync`
a wrong CRC, so that the length  go on where it says the batch ends if a plausible header is
may be wrong, too                there, unless a chain of batches that the length covers ends
                                 exactly there as well; else search every byte: `after_bad_crc`
```

A whole batch has a header that makes sense, a length within the file and the right CRC. A batch
inside the value of a record is one, too, but what follows it there is no batch: that is why a
chain has to lead to the end of what covers it.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator
from heapq import merge

from engine.host.ports import File
from engine.limits import RESYNC_CHECKED_BYTES_FACTOR, SCAN_CHUNK_BYTES
from engine.log.batch_scan import zero_tail_start
from engine.records.batch_header import (
    CHECKED_FROM,
    CRC_AT,
    HEADER_BYTES,
    KNOWN_FLAGS,
    LENGTH_OVERHEAD_BYTES,
    MAGIC,
    MAGIC_AT,
    PROLOGUE_BYTES,
    read_header_start,
    read_length,
)
from engine.records.crc import crc32c

_V2_LENGTH_MIN = HEADER_BYTES - LENGTH_OVERHEAD_BYTES
#: From an offset below 2^48 to the attributes of a message of magic 0 or 1 below 16 MiB.
_LEGACY_START = re.compile(
    rb"(?=\x00\x00.{6}\x00(?!\x00\x00\x00).{3}.{4}[\x00\x01][\x00-\x0f])", re.S
)
_LEGACY_START_BYTES = 18
_LEGACY_BYTES_MIN = 26
_LEGACY_CHECKED_FROM = 16
#: Behind the fixed fields of a message, by its magic: where the size of its key is.
_LEGACY_KEY_AT = (18, 26)
_SIZE_BYTES = 4


def resync(
    file: File, position: int, *, end: int | None = None, chunk_bytes: int = SCAN_CHUNK_BYTES
) -> int | None:
    """Return where the first whole batch at or after `position` starts, or None.

    Bytes made to look like many nested batches would be read again and again, so at most
    RESYNC_CHECKED_BYTES_FACTOR times the searched bytes are put through the CRC.
    """
    end = file.size_bytes() if end is None else min(end, file.size_bytes())
    return next(_whole_batches(file, position, end, chunk_bytes), (None, 0))[0]


def after_bad_crc(
    file: File,
    position: int,
    stated_end: int,
    *,
    end: int | None = None,
    chunk_bytes: int = SCAN_CHUNK_BYTES,
) -> int:
    """Return where to go on after the batch at `position`, whose CRC is wrong.

    `stated_end` is where its length says that it ends. That is returned, too, where no whole
    batch follows at all.
    """
    end = file.size_bytes() if end is None else min(end, file.size_bytes())
    is_end = stated_end >= end or zero_tail_start(file, stated_end) is not None
    if not is_end and not plausible_size(file, stated_end, end):
        following = resync(file, position + 1, end=end, chunk_bytes=chunk_bytes)
        return stated_end if following is None else following
    for start, size in _whole_batches(file, position + 1, stated_end, chunk_bytes):
        if _leads_to(file, start + size, stated_end):
            return start
    return stated_end


def plausible_size(file: File, position: int, end: int) -> int:
    """Return the size of the batch whose header seems to be at a position, 0 if none can be."""
    header = file.read_at(position, min(HEADER_BYTES, end - position))
    if len(header) < PROLOGUE_BYTES:
        return 0
    if header[MAGIC_AT] == MAGIC and len(header) == HEADER_BYTES:
        return _size_in(header, 0, end - position)
    if header[MAGIC_AT] < MAGIC and _LEGACY_START.match(header):
        return _legacy_size(file.read_at, position, end)
    return 0


def is_whole(file: File, position: int, size: int, chunk_bytes: int = SCAN_CHUNK_BYTES) -> bool:
    """Tell whether the CRC of the batch of this size at a position is right."""
    start = file.read_at(position, CHECKED_FROM)
    if len(start) < CHECKED_FROM:
        return False
    if start[MAGIC_AT] < MAGIC:
        stored = int.from_bytes(start[12:16], "big")
        checksum: Callable[[bytes, int], int] = zlib.crc32
        done = _LEGACY_CHECKED_FROM
    else:
        stored = int.from_bytes(start[CRC_AT:CHECKED_FROM], "big")
        checksum, done = crc32c, CHECKED_FROM
    crc = 0
    while done < size:
        chunk = file.read_at(position + done, min(chunk_bytes, size - done))
        if not chunk:
            return False
        crc = checksum(chunk, crc)
        done += len(chunk)
    return crc == stored


def _leads_to(file: File, position: int, end: int) -> bool:
    """Tell whether batches follow each other from a position exactly to the end."""
    while position < end:
        size = plausible_size(file, position, end)
        if not size:
            return False
        position += size
    return position == end


def _whole_batches(file: File, start: int, end: int, chunk_bytes: int) -> Iterator[tuple[int, int]]:
    """Yield (position, size) of each whole batch that starts and ends in [start, end)."""
    budget = RESYNC_CHECKED_BYTES_FACTOR * max(end - start, 0)
    for position, size in _candidates(file, start, end, chunk_bytes):
        if size > budget:
            continue
        budget -= size
        if is_whole(file, position, size, chunk_bytes):
            yield position, size


def _candidates(file: File, start: int, end: int, chunk_bytes: int) -> Iterator[tuple[int, int]]:
    """Yield (position, whole size) wherever the bytes look like the start of a batch."""
    chunk_bytes = max(chunk_bytes, 2 * HEADER_BYTES)
    while end - start >= _LEGACY_BYTES_MIN:
        chunk = file.read_at(start, min(chunk_bytes, end - start))
        if len(chunk) < _LEGACY_BYTES_MIN:
            return
        is_final = start + len(chunk) >= end
        # What starts in the last bytes is looked at with the next chunk, where all of it is.
        searched = len(chunk) if is_final else len(chunk) - HEADER_BYTES + 1
        for at, size in merge(
            _starts_in(chunk, searched, end - start),
            _legacy_starts_in(file, start, chunk, searched, end),
        ):
            yield start + at, size
        start += searched


def _starts_in(chunk: bytes, searched: int, bytes_left: int) -> Iterator[tuple[int, int]]:
    """Yield (place in the chunk, whole size) of what looks like a header of magic 2."""
    last = min(searched - 1, len(chunk) - HEADER_BYTES)
    if last < 0:
        return
    magic_at = chunk.find(MAGIC, MAGIC_AT, last + MAGIC_AT + 1)
    while magic_at >= 0:
        at = magic_at - MAGIC_AT
        size = _size_in(chunk, at, bytes_left - at)
        if size:
            yield at, size
        magic_at = chunk.find(MAGIC, magic_at + 1, last + MAGIC_AT + 1)


def _legacy_starts_in(
    file: File, start: int, chunk: bytes, searched: int, end: int
) -> Iterator[tuple[int, int]]:
    """Yield the same of what looks like a message of magic 0 or 1."""

    def read(position: int, length: int) -> bytes:
        at = position - start
        fields = chunk[at : at + length]
        return fields if len(fields) == length else file.read_at(position, length)

    for match in _LEGACY_START.finditer(chunk):
        at = match.start()
        size = _legacy_size(read, start + at, end) if at < searched else 0
        if size:
            yield at, size


def _size_in(chunk: bytes, at: int, bytes_left: int) -> int:
    """Return the size of the batch of magic 2 whose header may be at `at`, 0 if none can be."""
    base_offset, length, epoch, _, _, attributes, last_delta = read_header_start(chunk, at)
    if length < _V2_LENGTH_MIN or length + LENGTH_OVERHEAD_BYTES > bytes_left:
        return 0
    if base_offset < 0 or epoch < -1 or last_delta < 0 or attributes & ~KNOWN_FLAGS:
        return 0
    return int(length) + LENGTH_OVERHEAD_BYTES


def _legacy_size(read: Callable[[int, int], bytes], position: int, end: int) -> int:
    """Return the size of the message that may be at a position, 0 if none can be.

    Its key and its value must fill it exactly.
    """
    fields = read(position, _LEGACY_KEY_AT[1] + _SIZE_BYTES)
    if len(fields) < _LEGACY_START_BYTES + _SIZE_BYTES or fields[MAGIC_AT] >= MAGIC:
        return 0
    size = read_length(fields, 0) + LENGTH_OVERHEAD_BYTES
    if size > end - position:
        return 0
    at = _LEGACY_KEY_AT[fields[MAGIC_AT]]
    for _ in ("key", "value"):
        raw = read(position + at, _SIZE_BYTES)
        if len(raw) < _SIZE_BYTES:
            return 0
        at += _SIZE_BYTES + max(int.from_bytes(raw, "big", signed=True), 0)
        if at > size:
            return 0
    return size if at == size else 0
