"""`<base offset>.timeindex`: the largest timestamps up to certain offsets of the segment.

```
entry (12 bytes)   int64 timestamp   int32 offset − base offset
```

An entry means: `timestamp` is the largest of the batches up to the one with last offset `offset`,
which is the first batch that has it. Both fields rise strictly. The active segment's file is
preallocated: entries end before the first all-zero entry except entry 0.

Source: Kafka's TimeIndex; LOG-5, L5.
"""

from __future__ import annotations

import struct
import sys
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from engine.host.ports import Buffer, Files
from engine.limits import SIDE_FILE_BYTES_MAX
from engine.log.directory.small_file import read_small_file
from engine.log.offset_index import IndexOrderBroken, swap_to_big_endian

#: Bytes of one entry.
ENTRY_BYTES = 12
#: The timestamp of records that have none.
NO_TIMESTAMP = -1

_ENTRY = struct.Struct(">qi")
_INT_MAX = (1 << 31) - 1


class TimestampOffset(NamedTuple):
    """A timestamp in ms, and the last offset of the first batch with that largest timestamp."""

    timestamp: int
    offset: int


class TimeIndex:
    """The entries of one time index, in memory; a parsed index may be wrong, see `find_problem`."""

    __slots__ = (
        "base_offset",
        "hides_entries",
        "leftover_bytes",
        "padding_bytes",
        "relative_offsets",
        "timestamps",
    )

    def __init__(self, base_offset: int) -> None:
        """Create an empty index."""
        self.base_offset = base_offset
        #: Largest timestamp up to each entry, and the relative offset of its batch.
        self.timestamps = array("q")
        self.relative_offsets = array("i")
        #: Preallocated space after the entries of a parsed file, in whole entries.
        self.padding_bytes = 0
        #: Whether the preallocated space is not zero throughout: an entry in it was zeroed, or its
        #: bytes are garbage.
        self.hides_entries = False
        #: Bytes after the last whole entry of a parsed file; any make the index corrupt.
        self.leftover_bytes = 0

    def __len__(self) -> int:
        return len(self.timestamps)

    def __iter__(self) -> Iterator[TimestampOffset]:
        """Yield the entries with absolute offsets, in their order."""
        base = self.base_offset
        for timestamp, relative in zip(self.timestamps, self.relative_offsets, strict=True):
            yield TimestampOffset(timestamp, base + relative)

    def entry(self, number: int) -> TimestampOffset:
        """Return the entry with this number, from 0; negative numbers count from the end."""
        return TimestampOffset(
            self.timestamps[number], self.base_offset + self.relative_offsets[number]
        )

    @property
    def last_entry(self) -> TimestampOffset:
        """Return the last entry, (NO_TIMESTAMP, base offset) without one."""
        return self.entry(-1) if len(self) else TimestampOffset(NO_TIMESTAMP, self.base_offset)

    def lookup(self, timestamp: int) -> TimestampOffset:
        """Return the greatest entry with a timestamp ≤ `timestamp`.

        (−1, base offset) without one: search from the start of the segment.
        """
        number = bisect_right(self.timestamps, timestamp) - 1
        return self.entry(number) if number >= 0 else TimestampOffset(-1, self.base_offset)

    def maybe_append(self, timestamp: int, offset: int) -> bool:
        """Add an entry if its timestamp is above the last one's; return True if added.

        Raises IndexOrderBroken if the timestamp or the offset is below the last entry's.
        """
        timestamps = self.timestamps
        relative = offset - self.base_offset
        last = NO_TIMESTAMP
        if timestamps:
            last = timestamps[-1]
            if relative < self.relative_offsets[-1]:
                last_offset = self.last_entry.offset
                raise IndexOrderBroken((timestamp, offset), f"offset below {last_offset}")
            if timestamp < last:
                raise IndexOrderBroken((timestamp, offset), f"timestamp below {last}")
        if timestamp <= last:
            return False
        if not 0 <= relative <= _INT_MAX:
            raise IndexOrderBroken((timestamp, offset), f"more than 2^31 above {self.base_offset}")
        timestamps.append(timestamp)
        self.relative_offsets.append(relative)
        return True

    def truncate_to(self, offset: int) -> None:
        """Remove every entry with an offset at or above `offset`."""
        count = bisect_right(self.relative_offsets, offset - self.base_offset - 1)
        del self.timestamps[count:]
        del self.relative_offsets[count:]

    def find_problem(self) -> str | None:
        """Return the problem that Kafka's sanity check finds, None for a sound index."""
        if self.leftover_bytes:
            return f"{self.leftover_bytes} bytes after the last whole entry"
        if not len(self):
            return None
        last = self.last_entry
        if last.timestamp < self.timestamps[0]:
            return f"last timestamp {last.timestamp} is below the first, {self.timestamps[0]}"
        if last.offset < self.base_offset:
            return f"last offset {last.offset} is below the base offset {self.base_offset}"
        return None

    def encode(self) -> bytes:
        """Return the entries in the file's form, without padding."""
        # Assembled from 4-byte words: `struct` would cache one format for all entries, which takes
        # five times as much memory as the entries.
        timestamps, relative_offsets = self.timestamps[:], self.relative_offsets[:]
        swap_to_big_endian(timestamps)
        swap_to_big_endian(relative_offsets)
        halves = array("i", timestamps.tobytes())
        content = array("i", bytes(len(self) * ENTRY_BYTES))
        content[0::3] = halves[0::2]
        content[1::3] = halves[1::2]
        content[2::3] = relative_offsets
        return content.tobytes()


def parse_time_index(content: Buffer, base_offset: int) -> TimeIndex:
    """Return the index in a file's content, with the sizes of what follows its entries.

    An incomplete last entry and the zeros of a preallocated file are counted, not parsed.
    """
    index = TimeIndex(base_offset)
    whole = len(content) - len(content) % ENTRY_BYTES
    # Most of a preallocated file is zero: skip that part before entries are decoded.
    filled = len(bytes(memoryview(content)[:whole]).rstrip(b"\0"))
    words = array("i")
    words.frombytes(memoryview(content)[: -(-filled // ENTRY_BYTES) * ENTRY_BYTES])
    swap_to_big_endian(words)
    index.timestamps, index.relative_offsets = _timestamps_of(words), words[2::3]
    count = _count_before_zeros(index)
    del index.timestamps[count:]
    del index.relative_offsets[count:]
    if not len(index) and whole == ENTRY_BYTES:
        # A file of one entry holds one, even if its time is 1970; a larger one of zeros is padding.
        index.timestamps.append(0)
        index.relative_offsets.append(0)
    index.padding_bytes = whole - len(index) * ENTRY_BYTES
    index.hides_entries = filled > len(index) * ENTRY_BYTES
    index.leftover_bytes = len(content) - whole
    return index


def _timestamps_of(words: array[int]) -> array[int]:
    """Return the timestamps of entries given as 4-byte words in the machine's byte order."""
    high_at = 1 if sys.byteorder == "little" else 0
    halves = array("i", bytes(len(words) // 3 * 8))
    halves[high_at::2] = words[0::3]
    halves[1 - high_at :: 2] = words[1::3]
    return array("q", halves.tobytes())


def _count_before_zeros(index: TimeIndex) -> int:
    """Return the number of entries before the zeros of a preallocated file.

    Only the first entry may be all zeros; a later such entry is padding.
    """
    timestamps, number = index.timestamps, 1
    while number < len(timestamps):
        try:
            number = timestamps.index(0, number)
        except ValueError:
            break
        if not index.relative_offsets[number]:
            return number
        number += 1
    return len(timestamps)


def read_last_entry(files: Files, path: str, base_offset: int) -> TimestampOffset | None:
    """Return the last entry of a time index by reading only its first and last entry.

    Avoids loading whole indexes when a broker starts. None if the file has to be read completely:
    it is preallocated or damaged, or the last entry contradicts the first.
    """
    handle = files.open(path)
    try:
        size = handle.size_bytes()
        if not size:
            return TimestampOffset(NO_TIMESTAMP, base_offset)
        last = handle.read_at(max(size - ENTRY_BYTES, 0), ENTRY_BYTES)
        first = handle.read_at(0, ENTRY_BYTES)
    finally:
        handle.close()
    if size % ENTRY_BYTES or not any(last) or check_ends(first, last, base_offset):
        return None
    timestamp, relative = _ENTRY.unpack(last)
    return TimestampOffset(timestamp, base_offset + relative)


def check_ends(first: bytes, last: bytes, base_offset: int) -> str | None:
    """Return why the first and last entry of a time index contradict each other, None if not.

    Source: Kafka's TimeIndex.sanityCheck. Differs: it does not compare the offsets.
    """
    first_timestamp, first_relative = _ENTRY.unpack(first)
    timestamp, relative = _ENTRY.unpack(last)
    if timestamp < first_timestamp:
        return f"last timestamp {timestamp} is below the first, {first_timestamp}"
    if relative < 0:
        return f"last offset {base_offset + relative} is below the base offset {base_offset}"
    if relative < first_relative:
        first_offset = base_offset + first_relative
        return f"last offset {base_offset + relative} is below the first, {first_offset}"
    return None


def read_time_index(files: Files, path: str, base_offset: int) -> TimeIndex:
    """Return the time index in the file at `path`; raises CorruptFile if the file is too large."""
    return parse_time_index(read_small_file(files, path, SIDE_FILE_BYTES_MAX), base_offset)
