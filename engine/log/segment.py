"""One segment of a log: its .log and its indexes, open for reading and appending.

```
append  chunk of batches → end of .log
        more than index.interval.bytes since the last entry?
            .index      (largest offset of this chunk, position of its start)
            .timeindex  (largest timestamp up to now, its offset)
close   a last entry of .timeindex, then both indexes are written without padding
```

The indexes of the active segment are in memory; their files are empty until the segment is closed
or flushed. Nothing is lost by that: a log that was not stopped cleanly rebuilds the indexes of
every segment above the recovery point. Differs: Kafka maps preallocated files.

A segment rolls if the next chunk would make it larger than segment.bytes, if that chunk is
segment.ms (less a jitter) newer than the first one (without timestamps: if the segment is older
than that by the clock), if an index is full, and if an offset is 2^31 or more above the base.

Source: D6, LOG-2 … LOG-6; Kafka's LogSegment.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from threading import Lock

from engine.errors import CorruptFile, CorruptRecord
from engine.host.ports import Buffer, File, FileMissing, Files
from engine.limits import HEADER_WALK_BYTES, INDEX_SEARCHES_MAX, LOOKUP_CHUNK_BYTES
from engine.log import offset_index, time_index
from engine.log.batch_scan import scan_batches
from engine.log.index_memory import LOADED_INDEXES
from engine.log.index_search import search_offset_index
from engine.log.log_config import LogConfig
from engine.log.offset_index import OffsetIndex, read_offset_index
from engine.log.segment_lookup import (
    BatchPlace,
    find_offset_by_headers,
    find_timestamp,
)
from engine.log.time_index import (
    NO_TIMESTAMP,
    TimeIndex,
    TimestampOffset,
    read_last_entry,
    read_time_index,
)
from engine.log.truncation_point import find_first_truncated
from engine.log.txn_index import AbortedTransaction, encode_txn_index, read_txn_index
from engine.model import new_tuple
from engine.naming import FileKind, FileState, SegmentFileName
from engine.records.view import RecordBatch

_INT_MAX = (1 << 31) - 1
_NOTHING_SURE = -1
#: Guards `has_unwritten_index` while indexes are dropped.
_DROPPING = Lock()

#: The kinds of a segment's files in the order of their removal: the .log last.
KINDS = (FileKind.TXNINDEX, FileKind.TIMEINDEX, FileKind.INDEX, FileKind.LOG)


class Segment:
    """One segment; all offsets in it are at or above `base_offset`."""

    __slots__ = (
        "__weakref__",
        "_bytes_since_entry",
        "_file",
        "_files",
        "_index",
        "_index_entries_max",
        "_interval_bytes",
        "_largest",
        "_last_base",
        "_last_position",
        "_log_borrows",
        "_rolling_timestamp_ms",
        "_searches",
        "_sure_bytes",
        "_sure_ms",
        "_sure_offset",
        "_time_entries_max",
        "_time_index",
        "_translated",
        "_translated_offset",
        "_txn_entries",
        "base_offset",
        "config",
        "created_ms",
        "directory",
        "has_unwritten_index",
        "is_gone",
        "roll_jitter_ms",
        "size_bytes",
        "state",
    )

    def __init__(
        self,
        files: Files,
        directory: str,
        base_offset: int,
        config: LogConfig,
        *,
        now_ms: int,
        state: FileState = FileState.LIVE,
    ) -> None:
        """Open a segment whose .log exists; `create_segment` creates one."""
        self._files = files
        self.directory = directory
        self.base_offset = base_offset
        self.config = config
        #: Time of creation or opening, from which segment.ms counts if no batch has a timestamp.
        self.created_ms = now_ms
        #: Subtracted from segment.ms, so that partitions created together do not all roll at the
        #: same time.
        self.roll_jitter_ms = 0
        self.state = state
        #: Whether the segment was deleted or replaced. The file closes with the last borrow.
        self.is_gone = False
        #: The .log, open as long as the segment exists; borrowed by slices that are being sent.
        self._file: File = files.open(self.path(FileKind.LOG), write=True)
        self.size_bytes = self._file.size_bytes()
        #: None until first used after an open, and again after the memory was released: small
        #: searches then read the file.
        self._index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None
        #: The aborted transactions of the segment, None until first needed.
        self._txn_entries: list[AbortedTransaction] | None = None
        #: Number of lookups in the offset index's file; at INDEX_SEARCHES_MAX the index is loaded.
        self._searches = 0
        #: Largest timestamp and its offset. None: those of the last entry of the time index.
        self._largest: TimestampOffset | None = None
        #: Timestamp of the first batch, from which segment.ms counts. None until read.
        self._rolling_timestamp_ms: int | None = None
        #: Size, time and last offset up to which `should_roll` needs no further check, set by
        #: `_store_roll_bounds`; a change of the rules resets the size to _NOTHING_SURE.
        self._sure_bytes = _NOTHING_SURE
        self._sure_ms = self._sure_offset = 0
        #: Bytes appended since the last index entry; the next is due after `_interval_bytes`.
        self._bytes_since_entry = 0
        #: Index settings at the time of opening: a change applies from the next segment on, as in
        #: Kafka's LogSegment.
        self._interval_bytes = config.index_interval_bytes
        self._index_entries_max = config.segment_index_bytes // offset_index.ENTRY_BYTES
        self._time_entries_max = config.segment_index_bytes // time_index.ENTRY_BYTES
        #: Base offset and position of the newest chunk, which most readers fetch next. −1: none.
        self._last_base = -1
        self._last_position = 0
        #: Offset and result of the last lookup: several readers often look up the same offset.
        self._translated_offset: int | None = None
        self._translated: BatchPlace | None = None
        #: Whether the indexes in memory have entries that their files lack.
        self.has_unwritten_index = False
        #: Number of slices that use the file; see `borrow`.
        self._log_borrows = 0

    # Files

    def path(self, kind: FileKind) -> str:
        """Return the path of the segment's file of this kind, which need not exist."""
        name = SegmentFileName(self.base_offset, kind, self.state).name
        return f"{self.directory}/{name}"

    @property
    def file(self) -> File:
        """Return the open .log."""
        return self._file

    @property
    def index(self) -> OffsetIndex:
        """Return the offset index, loaded when needed; a missing or damaged one counts as empty."""
        index = self._index
        if index is None:
            index = OffsetIndex(self.base_offset)
            with suppress(CorruptFile, FileMissing):
                path = self.path(FileKind.INDEX)
                index = read_offset_index(self._files, path, self.base_offset)
            index = self._index = OffsetIndex(self.base_offset) if index.find_problem() else index
            self._report_index_bytes()
        return index

    @property
    def time_index(self) -> TimeIndex:
        """Return the time index, loaded when needed; a missing or damaged one counts as empty."""
        times = self._time_index
        if times is None:
            times = TimeIndex(self.base_offset)
            with suppress(CorruptFile, FileMissing):
                path = self.path(FileKind.TIMEINDEX)
                times = read_time_index(self._files, path, self.base_offset)
            times = self._time_index = (
                TimeIndex(self.base_offset) if times.find_problem() else times
            )
            self._report_index_bytes()
        return times

    def _report_index_bytes(self) -> None:
        """Report the bytes of the loaded indexes to the limit of the process (IndexMemory)."""
        index, times = self._index, self._time_index
        entry_count = 0 if index is None else len(index)
        time_entry_count = 0 if times is None else len(times)
        LOADED_INDEXES.count_segment(
            self,
            entry_count * offset_index.ENTRY_BYTES + time_entry_count * time_index.ENTRY_BYTES,
        )

    def drop_indexes(self) -> None:
        """Drop the indexes from memory unless they have more entries than their files.

        May run on any thread: a running lookup keeps its index alive.
        """
        with _DROPPING:
            if not self.has_unwritten_index:
                self._index = self._time_index = None
                self._searches = 0

    def _keep_indexes(self) -> None:
        """Prevent `drop_indexes`, before the indexes get more entries than their files."""
        if not self.has_unwritten_index:
            with _DROPPING:
                self.has_unwritten_index = True

    @property
    def aborted(self) -> list[AbortedTransaction]:
        """Return the aborted transactions whose marker is in the segment."""
        if self._txn_entries is None:
            try:
                transactions = read_txn_index(self._files, self.path(FileKind.TXNINDEX)).entries
            except FileMissing:
                transactions = ()
            self._txn_entries = list(transactions)
        return self._txn_entries

    def replace_indexes(self, index: OffsetIndex, times: TimeIndex) -> None:
        """Set indexes that were rebuilt; the next flush or close writes them to the files."""
        self._keep_indexes()
        self._index, self._time_index = index, times
        self._sure_bytes = _NOTHING_SURE
        self._largest = None

    def replace_aborted(self, entries: Sequence[AbortedTransaction]) -> None:
        """Replace the transaction index by these entries, in memory and on disk."""
        path = self.path(FileKind.TXNINDEX)
        self._txn_entries = list(entries)
        if entries or self._files.exists(path):
            self._rewrite(path, encode_txn_index(entries))

    def borrow(self) -> None:
        """Keep the .log open until `give_back`, even if the segment is removed."""
        self._log_borrows += 1

    def give_back(self) -> None:
        """End a `borrow`; close the .log if the segment was removed and no borrow remains."""
        self._log_borrows -= 1
        if self.is_gone and not self._log_borrows:
            self._file.close()

    def close_file(self) -> None:
        """Close the .log now, or when the last `borrow` ends."""
        self.is_gone = True
        LOADED_INDEXES.forget(self)
        if not self._log_borrows:
            self._file.close()

    def change_state(self, state: FileState) -> None:
        """Rename all files of the segment to the names of a new state, the .log first.

        The order matters after a crash: the loader removes an index without a .log.
        """
        for kind in reversed(KINDS):
            old = self.path(kind)
            if self._files.exists(old):
                name = SegmentFileName(self.base_offset, kind, state).name
                self._files.rename(old, f"{self.directory}/{name}")
        self.state = state

    def remove_files(self) -> None:
        """Remove the segment's existing files, after the delay of a deletion."""
        for kind in KINDS:
            path = self.path(kind)
            if self._files.exists(path):
                self._files.remove(path)

    # Writing

    def append(
        self,
        buffers: Sequence[Buffer],
        size_bytes: int,
        last_offset: int,
        largest: TimestampOffset | tuple[int, int],
        *,
        first_offset: int = -1,
    ) -> int:
        """Append one chunk of batches and return its position.

        `largest` is the largest timestamp in the chunk and the last offset of the first batch with
        that timestamp. The caller ensures that offsets rise and fit (`should_roll`). `first_offset`
        is remembered if given, because most readers want the newest chunk next.

        Source: LOG-2.
        """
        self._last_position = position = self._file.append(buffers)
        self._last_base = first_offset
        self.size_bytes = position + size_bytes
        largest_ms, _ = largest
        if position == 0:
            self._rolling_timestamp_ms = largest_ms
        if largest_ms > (self._largest or self.largest).timestamp:
            self._largest = new_tuple(TimestampOffset, largest)
        if self._bytes_since_entry > self._interval_bytes:
            self._add_entry(last_offset, position)
        self._bytes_since_entry += size_bytes
        return position

    def append_batches(
        self, contents: Sequence[Buffer], batches: Sequence[tuple[int, int, int]]
    ) -> None:
        """Append batches in one write, each with an index entry if one is due.

        `batches` has for each batch its size in bytes, last offset (inclusive) and largest
        timestamp.
        """
        position = self._file.append(contents)
        for size_bytes, last_offset, largest_ms in batches:
            if largest_ms > (self._largest or self.largest).timestamp:
                self._largest = TimestampOffset(largest_ms, last_offset)
            if self._bytes_since_entry > self._interval_bytes:
                self._add_entry(last_offset, position)
            self._bytes_since_entry += size_bytes
            position += size_bytes
        self.size_bytes = position

    def _add_entry(self, last_offset: int, position: int) -> None:
        """Add an offset index entry, and a time index entry if the largest timestamp has risen.

        Called for the first chunk after each index.interval.bytes.
        """
        if not self.has_unwritten_index:
            self._keep_indexes()
        self.index.append(last_offset, position)
        timestamp_ms, offset = self._largest or self.largest
        self.time_index.maybe_append(timestamp_ms, offset)
        if self._has_full_index():
            self._sure_bytes = _NOTHING_SURE
        self._bytes_since_entry = 0

    def truncate_to_bytes(self, size_bytes: int) -> None:
        """Truncate the .log to a size; the caller must replace the indexes afterwards."""
        self._file.truncate(size_bytes)
        self.size_bytes = size_bytes
        self._translated_offset = None

    def configure(self, config: LogConfig) -> None:
        """Apply new topic settings; the settings of indexes apply from the next segment on."""
        self.config = config
        self._sure_bytes = _NOTHING_SURE

    def add_aborted(self, transaction: AbortedTransaction) -> None:
        """Append a transaction to the .txnindex, which is created with its first entry."""
        self.aborted.append(transaction)
        handle = self._files.open(self.path(FileKind.TXNINDEX), write=True, create=True)
        try:
            handle.append((encode_txn_index((transaction,)),))
        finally:
            handle.close()

    def should_roll(
        self, size_bytes: int, last_offset: int, max_timestamp_ms: int, now_ms: int
    ) -> bool:
        """Return True if a chunk of batches must go to a new segment: see the module's rules.

        `last_offset` and `max_timestamp_ms` are the chunk's; `now_ms` is wall time.

        Source: LOG-6.
        """
        size = self.size_bytes
        if (
            size + size_bytes <= self._sure_bytes
            and max_timestamp_ms <= self._sure_ms
            and last_offset <= self._sure_offset
        ):
            return False
        config = self.config
        if size > config.segment_bytes - size_bytes:
            return True
        if not 0 <= last_offset - self.base_offset <= _INT_MAX:
            return True
        if size:
            rolling = self._rolling_timestamp_ms
            if rolling is None or rolling < 0:
                waited_ms = self._ms_since_first_batch(max_timestamp_ms, now_ms)
            else:
                waited_ms = max_timestamp_ms - rolling
            if waited_ms > config.segment_ms - self.roll_jitter_ms:
                return True
        if self._has_full_index():
            return True
        self._store_roll_bounds()
        return False

    def _has_full_index(self) -> bool:
        """Return True if an index has no room; the time index keeps one entry for the roll."""
        return (
            len(self.index.positions) >= self._index_entries_max
            or len(self.time_index.timestamps) >= self._time_entries_max - 1
        )

    def _store_roll_bounds(self) -> None:
        """Store the size, time and offset up to which `should_roll` needs no full check.

        Below these bounds no rule applies, as long as the indexes have room.
        """
        rolling = self._rolling_timestamp_ms
        if self.size_bytes and rolling is not None and rolling >= 0:
            self._sure_bytes = self.config.segment_bytes
            self._sure_ms = rolling + self.config.segment_ms - self.roll_jitter_ms
            self._sure_offset = self.base_offset + _INT_MAX

    def _ms_since_first_batch(self, max_timestamp_ms: int, now_ms: int) -> int:
        """Return ms from the first batch's timestamp to `max_timestamp_ms`, for segment.ms.

        Without a timestamp, ms from the segment's creation to `now_ms`.
        """
        rolling = self.first_timestamp_ms()
        if rolling >= 0:
            return max_timestamp_ms - rolling
        return now_ms - self.created_ms

    def _first_timestamp_ms(self) -> int:
        """Read the first batch's largest timestamp, by which segment.ms rolls; −1 if empty."""
        for _, batch in scan_batches(self._file, chunk_bytes=HEADER_WALK_BYTES):
            return batch.max_timestamp_ms
        return NO_TIMESTAMP

    def find_first_truncated(self, offset: int) -> BatchPlace | None:
        """Return the first batch that a truncation to `offset` removes, None if it removes none.

        Raises CorruptRecord for damage before that batch. At the base offset all batches are
        removed, damaged or not.
        """
        base_offset, end = self.base_offset, self.size_bytes
        if offset <= base_offset:
            return BatchPlace(0, end, base_offset) if end else None
        place = self.locate_offset(offset)
        start = self._search_start(offset)
        return find_first_truncated(
            self._file, place, offset, base_offset=base_offset, start=start, end=end
        )

    def truncate_to(self, offset: int, now_ms: int) -> int:
        """Remove every batch with an offset at or above `offset`; return the bytes removed.

        At the base offset the batch is found by headers alone, as for a segment whose offsets do
        not rise. Raises the errors of `find_first_truncated`, with nothing changed.
        """
        by_headers = offset <= self.base_offset
        place = self.locate_offset(offset) if by_headers else self.find_first_truncated(offset)
        return self.truncate_at(place, offset, now_ms)

    def truncate_at(self, place: BatchPlace | None, offset: int, now_ms: int) -> int:
        """Remove the batch at `place`, as `find_first_truncated` found it, and all later ones.

        None removes no batch. Index entries from `offset` on are removed. Returns the bytes
        removed.
        """
        self._keep_indexes()
        self.index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        if self.aborted and self.aborted[-1].last_offset >= offset:
            self.replace_aborted(
                [transaction for transaction in self.aborted if transaction.last_offset < offset]
            )
        removed = 0
        if place is not None:
            removed = self.size_bytes - place.position
            self._file.truncate(place.position)
            self.size_bytes = place.position
        if self.size_bytes == 0:
            self.created_ms = now_ms
            self._rolling_timestamp_ms = None
            self._sure_bytes = _NOTHING_SURE
        self._bytes_since_entry = 0
        self._last_base = -1
        self._translated_offset = None
        self._largest = self._find_largest()
        # The files of a segment that was closed have its old entries.
        self.write_indexes()
        return removed

    def _find_largest(self) -> TimestampOffset:
        """Return the largest timestamp, including batches after the last entry of the time index.

        The cached one may be of a batch that a truncation has removed.

        Differs: batches after damage are ignored; in Kafka damage fails a truncation half-way.
        """
        largest = self.time_index.last_entry
        start = self.index.lookup(largest.offset).position
        with suppress(CorruptRecord):
            for _, batch in scan_batches(self._file, start=start, chunk_bytes=LOOKUP_CHUNK_BYTES):
                if batch.max_timestamp_ms > largest.timestamp:
                    largest = TimestampOffset(batch.max_timestamp_ms, batch.last_offset)
        return largest

    def become_inactive(self) -> None:
        """Complete the time index and write both indexes; no append may follow."""
        if self.config.preallocate:
            self._file.truncate(self.size_bytes)
        self._keep_indexes()
        if self.largest.timestamp >= 0 and self.largest.offset >= self.time_index.last_entry.offset:
            self.time_index.maybe_append(*self.largest)
        self.write_indexes()

    def write_indexes(self) -> None:
        """Write both indexes to their files, without padding; `sync` makes them durable.

        Then they may be dropped from memory.
        """
        self._rewrite(self.path(FileKind.INDEX), self.index.encode())
        self._rewrite(self.path(FileKind.TIMEINDEX), self.time_index.encode())
        self.has_unwritten_index = False
        self._report_index_bytes()

    def _rewrite(self, path: str, content: bytes) -> None:
        """Replace a file's content in place; not atomic, and durable only after a sync."""
        handle = self._files.open(path, write=True, create=True)
        try:
            handle.truncate(0)
            if content:
                handle.append((content,))
        finally:
            handle.close()

    def sync(self, *, with_indexes: bool) -> None:
        """Sync the .log, and with `with_indexes` the indexes. May run on a worker thread."""
        self._file.sync()
        if not with_indexes:
            return
        for kind in (FileKind.INDEX, FileKind.TIMEINDEX, FileKind.TXNINDEX):
            try:
                handle = self._files.open(self.path(kind), write=True)
            except FileMissing:
                continue
            try:
                handle.sync()
            finally:
                handle.close()

    # Reading

    @property
    def largest(self) -> TimestampOffset:
        """Return the largest timestamp and its offset, (−1, base offset) without a timestamp.

        For a closed segment only the last entry of the time index is read.
        """
        largest = self._largest
        if largest is None:
            if self._time_index is None:
                with suppress(FileMissing):
                    path = self.path(FileKind.TIMEINDEX)
                    largest = read_last_entry(self._files, path, self.base_offset)
            largest = self._largest = largest or self.time_index.last_entry
        return largest

    @property
    def largest_timestamp_ms(self) -> int:
        """Return the time by which retention.ms deletes the segment.

        That is the largest timestamp, or the file's modification time without one.
        """
        timestamp = self.largest.timestamp
        return timestamp if timestamp >= 0 else self.modified_ms()

    def modified_ms(self) -> int:
        """Return the modification time of the .log, in ms since the epoch."""
        return self._files.modified_ms(self.path(FileKind.LOG))

    def keep_modified_ms(self, modified_ms: int) -> None:
        """Set the .log's modification time to that of the segments that a cleaning replaces."""
        self._files.set_modified_ms(self.path(FileKind.LOG), modified_ms)

    def first_timestamp_ms(self) -> int:
        """Return the largest timestamp of the first batch, −1 without one."""
        if self._rolling_timestamp_ms is None:
            self._rolling_timestamp_ms = self._first_timestamp_ms()
        return self._rolling_timestamp_ms

    def locate_offset(self, offset: int) -> BatchPlace | None:
        """Return the first batch that ends at or after `offset`, None after the last one.

        Raises CorruptRecord at damage. The result is cached only if its batch ends before the
        newest one begins: a header that was misread may lead anywhere, and the next read may be
        right.
        """
        if offset == self._translated_offset:
            return self._translated
        if offset == self._last_base:
            position = self._last_position
        else:
            position = self._search_start(offset)
        batch_at = find_offset_by_headers(self._file, offset, position, self.size_bytes)
        if batch_at is not None and batch_at.last_offset < self._last_base:
            self._translated_offset, self._translated = offset, batch_at
        return batch_at

    def _search_start(self, offset: int) -> int:
        """Return the position in the .log at which a search for an offset starts.

        An index that is not in memory is loaded only if there is room for it or it is searched
        often; otherwise readers of many segments would load all indexes again and again.
        """
        if self._index is None and self._searches < INDEX_SEARCHES_MAX:
            path = self.path(FileKind.INDEX)
            found = search_offset_index(
                self._files, path, self.base_offset, offset, is_read_whole=LOADED_INDEXES.has_room
            )
            if found is not None:
                self._searches += 1
                return found.position
        position = self.index.lookup(offset).position
        LOADED_INDEXES.mark_used(self)
        return position

    def locate_batches(self, offset: int, max_bytes: int, end: int) -> tuple[int, int] | None:
        """Return position and size of a reader's batches, from the batch with `offset` on.

        That batch is complete even if it exceeds `max_bytes`, and no batch begins at or after the
        position `end`. None if there is no batch before `end`. Raises CorruptRecord as
        `locate_offset` does.
        """
        if offset == self._last_base:
            position = self._last_position
            size = end - position
            if 0 < size <= max_bytes:
                # The newest chunk fits: its headers need no scan.
                return position, size
        place = self.locate_offset(offset)
        if place is None:
            return None
        position, first_bytes, _ = place
        size = max_bytes if max_bytes > first_bytes else first_bytes
        size = min(size, end - position)
        return (position, size) if size >= first_bytes else None

    def iter_batches_from(self, offset: int) -> Iterator[RecordBatch]:
        """Yield the batches from the first one on that ends at or after `offset`.

        Batches are views of a reused buffer. Later batches with lower offsets are yielded too.
        """
        start = self._search_start(offset)
        is_there = False
        for _, batch in scan_batches(self._file, start=start):
            is_there = is_there or batch.last_offset >= offset
            if is_there:
                yield batch

    def find_timestamp(self, timestamp_ms: int, start_offset: int) -> TimestampOffset | None:
        """Return the first record at or after `start_offset` with this timestamp or later.

        Raises CorruptRecord, also for a batch that is too large when decompressed.
        """
        return find_timestamp(
            self._file,
            self.index,
            self.time_index,
            timestamp_ms,
            start_offset=start_offset,
            limit_bytes=self.config.opened_batch_bytes_max,
        )
