"""Check the index files of a closed segment without reading them completely.

```
size 0                        no entries
whole entries, the last one   sound if the last entry is not below the base offset and the first
not zero                      entry: wrong entries between only make lookups slower
anything else                 the file is read: preallocated space, bytes after the last entry
```

Retention trusts the last timestamp of a .timeindex, and a lookup the last offset of an .index.

A start checks every segment: 1,000 full ones have 5 GB of indexes.

Source: Kafka's OffsetIndex.sanityCheck, TimeIndex.sanityCheck, which a start leaves out.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

from engine.errors import CorruptFile
from engine.host.ports import Files
from engine.limits import SIDE_FILE_BYTES_MAX
from engine.log import offset_index, time_index
from engine.log.offset_index import OffsetIndex, read_offset_index
from engine.log.time_index import TimeIndex, check_ends, read_time_index

_RELATIVE_OFFSET = struct.Struct(">i")


class IndexState(NamedTuple):
    """The fault of an index file (None if it is sound), and whether it has entries."""

    problem: str | None
    has_entries: bool


def check_offset_index(files: Files, path: str, base_offset: int) -> IndexState:
    """Return the state of an .index file. Raises CorruptFile, FileMissing.

    Only the first and the last entry are read, unless they do not determine the state.
    """

    def problem(first: bytes, last: bytes) -> str | None:
        """Return why the first and the last entry contradict each other, None if they do not."""
        (first_relative,) = _RELATIVE_OFFSET.unpack_from(first)
        (relative,) = _RELATIVE_OFFSET.unpack_from(last)
        if relative < 0:
            return f"last offset {base_offset + relative} is below the base offset {base_offset}"
        if relative < first_relative:
            first_offset = base_offset + first_relative
            return f"last offset {base_offset + relative} is below the first, {first_offset}"
        return None

    state = _check_ends(files, path, offset_index.ENTRY_BYTES, problem)
    return state or check_whole_index(read_offset_index(files, path, base_offset))


def check_time_index(files: Files, path: str, base_offset: int) -> IndexState:
    """Return the state of a .timeindex file. Raises CorruptFile, FileMissing.

    Only the first and the last entry are read, unless they do not determine the state.
    """

    def problem(first: bytes, last: bytes) -> str | None:
        """Return why the first and the last entry contradict each other, None if they do not."""
        return check_ends(first, last, base_offset)

    state = _check_ends(files, path, time_index.ENTRY_BYTES, problem)
    return state or check_whole_index(read_time_index(files, path, base_offset))


def check_whole_index(index: OffsetIndex | TimeIndex) -> IndexState:
    """Return the state of an index that was read completely."""
    problem = index.find_problem()
    if problem is None and index.hides_entries:
        problem = "entries after the first one of zeros"
    return IndexState(problem, len(index) > 0)


def _check_ends(
    files: Files, path: str, entry_bytes: int, problem: Callable[[bytes, bytes], str | None]
) -> IndexState | None:
    """Return the index's state if size and end entries determine it, None if all must be read.

    All must be read if the size is not a multiple of an entry, or the last entry is zeros.
    `problem` takes the bytes of the first and the last entry. Raises CorruptFile if the file is too
    large.
    """
    handle = files.open(path)
    try:
        size = handle.size_bytes()
        if size > SIDE_FILE_BYTES_MAX:
            raise CorruptFile(path, f"at most {SIDE_FILE_BYTES_MAX} bytes", size)
        last = handle.read_at(max(size - entry_bytes, 0), entry_bytes)
        first = handle.read_at(0, entry_bytes)
    finally:
        handle.close()
    if not size:
        return IndexState(None, False)
    if size % entry_bytes or not any(last):
        return None
    return IndexState(problem(first, last), True)
