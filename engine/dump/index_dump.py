"""Dumps `.index` and `.timeindex` files and checks them against their log.

Source: DumpLogSegments.dumpIndex and dumpTimeIndex, OffsetIndex, TimeIndex, AbstractIndex.
Differs: a missing index is an error as in Kafka, but no empty file is left behind.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import closing

from engine.dump.batch_ends import BatchEnds
from engine.dump.file_names import base_offset_of, stem_of
from engine.dump.options import INT_MAX, DumpOptions
from engine.dump.output import Output
from engine.dump.problems import Problems
from engine.errors import CorruptFile, StorageError
from engine.host.ports import Files
from engine.records.view import batch_at

_OFFSET_ENTRY = struct.Struct(">ii")
_TIME_ENTRY = struct.Struct(">qi")

# Kafka searches the last 8 KiB of an index first, which stay in memory on a busy broker. In a
# damaged index that order decides which entry is found.
_WARM_BYTES = 8192


class BadIndexEntry(StorageError):
    """An index entry points to a position where no batch can be."""

    hint = "`kctl logs repair` rebuilds indexes from the log"

    def __init__(self, path: str, number: int, position: int, reason: str) -> None:
        super().__init__(f"{path}: entry {number} points to position {position}: {reason}")
        self.path = path
        self.number = number
        self.position = position


def _sibling(path: str, suffix: str) -> str:
    """Return the path of another file of the segment: the same stem with this suffix."""
    folder, slash, _ = path.rpartition("/")
    return f"{folder}{slash}{stem_of(path)}{suffix}"


class IndexEntries:
    """The complete entries of an index, each decoded when it is needed.

    Most of a preallocated index is after its last entry, and never needed.
    """

    def __init__(self, raw: bytes, layout: struct.Struct, first: int, second: int) -> None:
        """`first` and `second` are added to the two numbers of each entry."""
        self._raw = raw
        self._layout = layout
        self._first = first
        self._second = second
        #: An incomplete entry at the end is ignored.
        self._count = len(raw) // layout.size

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, slot: int) -> tuple[int, int]:
        first, second = self._layout.unpack_from(self._raw, slot * self._layout.size)
        return self._first + first, self._second + second

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return (self[slot] for slot in range(self._count))

    def last(self) -> tuple[int, int]:
        """Return the last entry; the index must not be empty."""
        return self[self._count - 1]


class IndexDump:
    """Dumps the offset and time indexes of segments."""

    def __init__(self, files: Files, options: DumpOptions, out: Output, problems: Problems):
        self._files = files
        self._options = options
        self._out = out
        self._problems = problems

    def dump_offset_index(self, path: str, shown_path: str) -> None:
        """Print an offset index's entries; note those whose batch ends at another offset.

        With `index_sanity_check` a broker's check takes the place of both.
        """
        base = base_offset_of(path)
        with closing(self._files.open(_sibling(path, ".log"))) as log:
            raw = self._files.read_bytes(path)
            entries = IndexEntries(raw, _OFFSET_ENTRY, base, 0)
            if not entries:
                self._out.line(f"{shown_path} is empty.")
            elif self._options.index_sanity_check:
                _check_offset_index(path, base, entries, len(raw))
                self._out.line(f"{shown_path} passed sanity check.")
            else:
                self._dump_offset_entries(path, base, entries, BatchEnds(log))

    def _dump_offset_entries(
        self, path: str, base: int, entries: IndexEntries, ends: BatchEnds
    ) -> None:
        """Print the entries, and note those whose batch ends at another offset.

        Raises BadIndexEntry if no batch starts at an entry's position.
        """
        for n, (offset, position) in enumerate(entries):
            # After a crash the rest of a preallocated index is zeros.
            if offset == base and n > 0:
                return
            _check_position(path, n, position, ends.size_bytes)
            last_offset = ends.last_offset_at(position, self._options.max_message_size_bytes)
            if last_offset is None:
                raise BadIndexEntry(path, n, position, "no whole batch starts there")
            if last_offset != offset:
                self._problems.index_mismatch(path, offset, last_offset)
            if not self._options.verify_index_only:
                self._out.line(f"offset: {offset} position: {position}")

    def dump_time_index(self, path: str, shown_path: str) -> None:
        """Print a time index's entries; note those that contradict the log.

        With `index_sanity_check` a broker's check takes the place of both.
        """
        base = base_offset_of(path)
        with closing(self._files.open(_sibling(path, ".log"))) as log:
            raw_offsets = self._files.read_bytes(_sibling(path, ".index"))
            raw = self._files.read_bytes(path)
            entries = IndexEntries(raw, _TIME_ENTRY, 0, base)
            if self._options.index_sanity_check:
                _check_time_index(path, base, entries, len(raw))
                self._out.line(f"{shown_path} passed sanity check.")
                return
            lookup = IndexEntries(raw_offsets, _OFFSET_ENTRY, base, 0)
            self._dump_time_entries(path, base, entries, lookup, BatchEnds(log))

    def _dump_time_entries(
        self,
        path: str,
        base: int,
        entries: IndexEntries,
        lookup: IndexEntries,
        ends: BatchEnds,
    ) -> None:
        """Print a time index's entries.

        Check each in the log, from where the offset index points.
        """
        previous_ms = -1
        for n, (timestamp_ms, offset) in enumerate(entries):
            if offset == base and n > 0:
                return
            slot = find_entry(lookup, offset)
            _, position = lookup[slot] if slot >= 0 else (base, 0)
            _check_position(path, n, position, ends.size_bytes)
            self._check_time(path, timestamp_ms, offset, previous_ms, ends, position)
            if not self._options.verify_index_only:
                self._out.line(f"timestamp: {timestamp_ms} offset: {offset}")
            previous_ms = timestamp_ms

    def _check_time(
        self,
        path: str,
        timestamp_ms: int,
        offset: int,
        previous_ms: int,
        ends: BatchEnds,
        position: int,
    ) -> None:
        """Note an entry with a wrong or falling timestamp, or whose offset ends no batch."""
        batch_end = ends.find_batch_end(position, offset, whole=self._options.is_four)
        if batch_end is None:
            self._problems.offset_not_found(path, offset, -1)
            return
        last_offset, batch_position = batch_end
        if last_offset != offset:
            self._problems.offset_not_found(path, offset, last_offset)
            return
        largest_ms = _find_largest_timestamp(ends, batch_position)
        if largest_ms != timestamp_ms:
            self._problems.time_mismatch(path, timestamp_ms, largest_ms)
        if previous_ms >= timestamp_ms:
            self._problems.time_out_of_order(path, timestamp_ms, previous_ms)


def _find_largest_timestamp(ends: BatchEnds, position: int) -> int:
    """Return the largest timestamp in ms of a batch's records, -1 for none."""
    largest_ms = -1
    for record in batch_at(ends.batch(position), 0).records():
        largest_ms = max(largest_ms, record.timestamp_ms)
    return largest_ms


def _check_position(path: str, n: int, position: int, size_bytes: int) -> None:
    """Raise BadIndexEntry if an entry's position is outside the log."""
    if position < 0:
        raise BadIndexEntry(path, n, position, "it is negative")
    if position > min(size_bytes, INT_MAX):
        raise BadIndexEntry(path, n, position, f"the log has {size_bytes} bytes")


def find_entry(entries: IndexEntries, target: int) -> int:
    """Return the index of the entry with the largest offset at or below `target`, -1 for none.

    Source: AbstractIndex.indexSlotRangeFor, step by step: the offsets of a damaged index may be
    unsorted, and then the steps decide the result.
    """
    if not entries:
        return -1
    first_hot = max(0, len(entries) - 1 - _WARM_BYTES // _OFFSET_ENTRY.size)
    hot_offset, _ = entries[first_hot]
    if hot_offset < target:
        return _search_range(entries, target, first_hot, len(entries) - 1)
    first_offset, _ = entries[0]
    if first_offset > target:
        return -1
    return _search_range(entries, target, 0, first_hot)


def _search_range(entries: IndexEntries, target: int, low: int, high: int) -> int:
    """Return the index of the last entry not above `target`, from `low` to `high` (inclusive)."""
    while low < high:
        middle = (low + high + 1) >> 1
        offset, _ = entries[middle]
        if offset == target:
            return middle
        if offset > target:
            high = middle - 1
        else:
            low = middle
    return low


def _check_offset_index(path: str, base: int, entries: IndexEntries, size_bytes: int) -> None:
    """Raise CorruptFile for a last offset below the base, or for an incomplete entry."""
    last_offset, _ = entries.last()
    if last_offset < base:
        raise CorruptFile(path, f"a last offset of at least {base}", last_offset)
    if size_bytes % _OFFSET_ENTRY.size:
        raise CorruptFile(path, "a multiple of 8 bytes", size_bytes)


def _check_time_index(path: str, base: int, entries: IndexEntries, size_bytes: int) -> None:
    """Raise CorruptFile if a broker's check would reject the time index."""
    if entries:
        first_ms, _ = entries[0]
        last_ms, last_offset = entries.last()
        if last_ms < first_ms:
            raise CorruptFile(path, f"a last timestamp of at least {first_ms}", last_ms)
        if last_offset < base:
            raise CorruptFile(path, f"a last offset of at least {base}", last_offset)
    if size_bytes % _TIME_ENTRY.size:
        raise CorruptFile(path, "a multiple of 12 bytes", size_bytes)
