"""`<base offset>.index`: the positions of offsets in the log.

```
entry (8 bytes)   int32 offset − base offset   int32 position in the .log
```

Both fields rise strictly. An entry means: among the batches from `position` to the next entry's
position, one has the last offset `offset`. It was written when the chunk that starts at `position`
was appended, with the chunk's last offset. The active segment's file is preallocated: entries end
before the first all-zero entry except entry 0.

Source: Kafka's OffsetIndex; LOG-2, LOG-3, L5.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from engine.errors import StorageError
from engine.host.ports import Buffer, Files
from engine.limits import SIDE_FILE_BYTES_MAX
from engine.log.directory.small_file import read_small_file

#: Bytes of one entry.
ENTRY_BYTES = 8

_INT_MAX = (1 << 31) - 1


class OffsetPosition(NamedTuple):
    """An offset and the byte position at which the search for it starts."""

    offset: int
    position: int


class IndexOrderBroken(StorageError):
    """An entry to be added is not above the index's last entry, or does not fit."""

    def __init__(self, index_entry: tuple[int, int], rule: str) -> None:
        super().__init__(f"index entry {index_entry}: {rule}")
        self.index_entry = index_entry
        self.rule = rule


class OffsetIndex:
    """The entries of one offset index, in memory.

    A parsed index may be wrong: `find_problem()` describes the fault. A search in a wrong index
    returns one of its entries.
    """

    __slots__ = (
        "base_offset",
        "hides_entries",
        "leftover_bytes",
        "padding_bytes",
        "positions",
        "relative_offsets",
    )

    def __init__(self, base_offset: int) -> None:
        """Create an empty index."""
        self.base_offset = base_offset
        #: Offsets less the base offset, and the batches' positions, one of each per entry.
        self.relative_offsets = array("i")
        self.positions = array("i")
        #: Preallocated space after the entries of a parsed file, in whole entries.
        self.padding_bytes = 0
        #: Whether the preallocated space is not zero throughout: an entry in it was zeroed, or its
        #: bytes are garbage.
        self.hides_entries = False
        #: Bytes after the last whole entry of a parsed file; any make the index corrupt.
        self.leftover_bytes = 0

    def __len__(self) -> int:
        return len(self.positions)

    def __iter__(self) -> Iterator[OffsetPosition]:
        """Yield the entries with absolute offsets, in their order."""
        base = self.base_offset
        for relative, position in zip(self.relative_offsets, self.positions, strict=True):
            yield OffsetPosition(base + relative, position)

    def entry(self, number: int) -> OffsetPosition:
        """Return the entry with this number, from 0; negative numbers count from the end."""
        return OffsetPosition(
            self.base_offset + self.relative_offsets[number], self.positions[number]
        )

    @property
    def last_offset(self) -> int:
        """Return the offset of the last entry, the base offset without one."""
        return self.base_offset + (self.relative_offsets[-1] if self.relative_offsets else 0)

    def lookup(self, offset: int) -> OffsetPosition:
        """Return the greatest entry with an offset ≤ `offset`, (base offset, 0) without one.

        Source: LOG-3.
        """
        number = bisect_right(self.relative_offsets, offset - self.base_offset) - 1
        return self.entry(number) if number >= 0 else OffsetPosition(self.base_offset, 0)

    def upper_bound(self, position: int) -> OffsetPosition | None:
        """Return the first entry at or after a position in the .log, None if there is none.

        The offset of the entry is above all offsets before `position`.

        Source: OffsetIndex.fetchUpperBoundOffset.
        """
        number = bisect_right(self.positions, position - 1)
        return self.entry(number) if number < len(self) else None

    def append(self, offset: int, position: int) -> None:
        """Add an entry; raises IndexOrderBroken unless its offset is above the last entry's."""
        relative = offset - self.base_offset
        if not 0 <= relative <= _INT_MAX:
            raise IndexOrderBroken((offset, position), f"more than 2^31 above {self.base_offset}")
        relative_offsets = self.relative_offsets
        if relative_offsets and relative <= relative_offsets[-1]:
            raise IndexOrderBroken((offset, position), f"not above offset {self.last_offset}")
        relative_offsets.append(relative)
        self.positions.append(position)

    def truncate_to(self, offset: int) -> None:
        """Remove every entry with an offset at or above `offset`."""
        count = bisect_right(self.relative_offsets, offset - self.base_offset - 1)
        del self.relative_offsets[count:]
        del self.positions[count:]

    def find_problem(self) -> str | None:
        """Return the problem that Kafka's sanity check finds, None for a sound index."""
        if self.leftover_bytes:
            return f"{self.leftover_bytes} bytes after the last whole entry"
        if self.relative_offsets and self.relative_offsets[-1] < 0:
            return f"last offset {self.last_offset} is below the base offset {self.base_offset}"
        return None

    def encode(self) -> bytes:
        """Return the entries in the file's form, without padding."""
        content = array("i", bytes(len(self) * ENTRY_BYTES))
        content[0::2] = self.relative_offsets
        content[1::2] = self.positions
        swap_to_big_endian(content)
        return content.tobytes()


def parse_offset_index(content: Buffer, base_offset: int) -> OffsetIndex:
    """Return the index in a file's content, with the sizes of what follows its entries.

    An incomplete last entry and the zeros of a preallocated file are counted, not parsed.
    """
    index = OffsetIndex(base_offset)
    whole = len(content) - len(content) % ENTRY_BYTES
    columns = array("i")
    columns.frombytes(memoryview(content)[:whole])
    swap_to_big_endian(columns)
    index.relative_offsets = columns[0::2]
    index.positions = columns[1::2]
    count = _count_before_padding(index.relative_offsets, index.positions)
    index.padding_bytes = whole - count * ENTRY_BYTES
    index.leftover_bytes = len(content) - whole
    index.hides_entries = bool(bytes(memoryview(content)[count * ENTRY_BYTES : whole]).strip(b"\0"))
    del index.relative_offsets[count:]
    del index.positions[count:]
    return index


def read_offset_index(files: Files, path: str, base_offset: int) -> OffsetIndex:
    """Return the offset index in the file at `path`; raises CorruptFile if it is too large."""
    return parse_offset_index(read_small_file(files, path, SIDE_FILE_BYTES_MAX), base_offset)


def _count_before_padding(relative_offsets: array[int], positions: array[int]) -> int:
    """Return the number of entries before the zeros of a preallocated file.

    Only the first entry may be all zeros; a later such entry is padding.
    """
    count = len(positions)
    number = 1
    while number < len(positions):
        try:
            number = positions.index(0, number)
        except ValueError:
            break
        if not relative_offsets[number]:
            count = number
            break
        number += 1
    # No entry points at position 0, so a lone first entry of zeros is padding as well.
    lone_zero = count == 1 and not relative_offsets[0] and not positions[0]
    return 0 if lone_zero else count


def swap_to_big_endian(column: array[int]) -> None:
    """Convert a column in place between the machine's byte order and big-endian."""
    if sys.byteorder == "little":
        column.byteswap()
