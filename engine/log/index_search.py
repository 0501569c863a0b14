"""Look up one offset in an index file that is not in memory, by a few small reads.

```
last entry at or below the offset?  ── yes ─> the last entry
      no: binary search by 8-byte reads, until READ_ENTRIES are left ── one read ─> the entry
```

Reading a whole index costs thousands of times as much. If the file's end is not an entry, or the
entries that are read do not rise, the caller reads the whole file.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from engine.host.ports import File, FileMissing, Files
from engine.log.offset_index import ENTRY_BYTES, OffsetPosition, parse_offset_index

#: Number of entries that the last read of a search reads: a page, which the disk reads anyway.
READ_ENTRIES = 4096 // ENTRY_BYTES

_ENTRY = struct.Struct(">ii")


def search_offset_index(
    files: Files,
    path: str,
    base_offset: int,
    offset: int,
    *,
    is_read_whole: Callable[[int], bool],
) -> OffsetPosition | None:
    """Return the greatest index entry at or below `offset`, (base offset, 0) if there is none.

    Returns None if the whole index has to be read: the file is missing, preallocated or damaged at
    the bytes that were read, or `is_read_whole` returns True for its size in bytes.

    Source: LOG-3.
    """
    try:
        handle = files.open(path)
    except FileMissing:
        return None
    try:
        size = handle.size_bytes()
        if is_read_whole(size) or not size or size % ENTRY_BYTES:
            return None
        found = _search_entries(handle, size // ENTRY_BYTES, offset - base_offset)
    finally:
        handle.close()
    if found is None:
        return None
    relative, position = found
    return OffsetPosition(base_offset + relative, position)


def _search_entries(handle: File, count: int, relative: int) -> tuple[int, int] | None:
    """Return the last entry (relative offset, position) at or below `relative`, by binary search.

    (0, 0) if all `count` entries are above it. None if the entries that were read do not rise,
    which means damage or a preallocated tail.
    """
    low, high = -1, count - 1
    below, above = (0, 0), _entry(handle, high)
    if above[0] < 0 or above[1] <= 0:
        return None
    if above[0] <= relative:
        return above
    while high - low > READ_ENTRIES:
        middle = (low + high) // 2
        found = _entry(handle, middle)
        if not (below[0] <= found[0] < above[0] and below[1] < found[1] < above[1]):
            return None
        if found[0] <= relative:
            low, below = middle, found
        else:
            high, above = middle, found
    content = handle.read_at((low + 1) * ENTRY_BYTES, (high - low - 1) * ENTRY_BYTES)
    last = parse_offset_index(content, 0).lookup(relative)
    if not last.position:
        return below
    is_between = below[0] <= last.offset < above[0] and below[1] < last.position < above[1]
    return last if is_between else None


def _entry(handle: File, number: int) -> tuple[int, int]:
    """Return an entry's relative offset and byte position; (0, 0) after the end of the file."""
    content = handle.read_at(number * ENTRY_BYTES, ENTRY_BYTES)
    relative, position = _ENTRY.unpack(content) if len(content) == ENTRY_BYTES else (0, 0)
    return relative, position
