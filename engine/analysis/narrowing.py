"""Restrict a split to the part that can have records of some offsets and times, by the indexes.

```
.index       … (offset, position) …      a batch starts at position; all before it are older
.timeindex   … (timestamp, offset) …     no batch up to offset has a later time
```

| wanted | read |
|---|---|
| offsets from X on | from the last entry of `.index` at or below X |
| offsets up to Y | up to the entry after the first entry at or above Y |
| times from T on | from the batch after the last entry of `.timeindex` below T, as offsets |
| times up to U | everything: a later segment, batch or record may have an earlier time |

Index entries are verified. A segment is cut only where a whole batch starts whose offsets fit
between its entry and the entry before; an entry of a time index is used only if its time is the
largest of the batch with its offset. Otherwise nothing is left out. So a wrong index entry makes a
query slower, but never loses rows, and a truncated index leaves more to read.

A batch is decoded only if its header allows wanted records (`can_have`), and only the wanted
records of it become rows.

Source: Kafka's LogSegment.translateOffset and findOffsetByTimestamp. Differs: the entries are
compared with the log. As in Kafka, the largest time in a batch's header is trusted if the CRC is
valid; and if a log repeats offsets, the records of one place are found.
"""

from __future__ import annotations

import operator
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import islice

from engine.analysis.pruning import ALL_RECORDS, RecordRange
from engine.analysis.splits import Split, starts_batch
from engine.errors import CorruptRecord, StorageError
from engine.host.ports import File, Files
from engine.limits import (
    NARROWED_SEGMENT_BYTES_MIN,
    SCAN_CHUNK_BYTES,
    SEARCH_CHUNK_BYTES,
    WRONG_INDEX_ENTRIES_MAX,
)
from engine.log.batch_scan import scan_batches
from engine.log.offset_index import OffsetIndex, read_offset_index
from engine.log.time_index import TimeIndex, read_time_index
from engine.naming import FileKind
from engine.records.batch import BatchView
from engine.records.record import NO_TIMESTAMP, TimestampType
from engine.records.view import RecordBatch


def can_have(batch: RecordBatch, wanted: RecordRange) -> bool:
    """Return True if a batch's header allows records of the wanted offsets and times.

    The header has the largest timestamp but not the smallest: its base timestamp is that of the
    first record. A single record, or LogAppendTime, means one timestamp for all. Of timestamps that
    are all negative, a leader writes -1 as the largest.
    """
    if batch.last_offset < wanted.first_offset:
        return False
    if not isinstance(batch, BatchView):
        # In the older formats a wrapper's time is what its producer wrote.
        return True
    if batch.base_offset > wanted.last_offset or batch.max_timestamp_ms < wanted.first_ms:
        return False
    is_append_time = batch.timestamp_type is TimestampType.LOG_APPEND_TIME
    has_one_time = is_append_time or (
        batch.record_count == 1 and batch.max_timestamp_ms != NO_TIMESTAMP
    )
    return not (has_one_time and batch.max_timestamp_ms > wanted.last_ms)


class Narrowing:
    """Restricts splits to wanted records.

    The byte range of a segment is computed once for its splits.
    """

    def __init__(
        self,
        files: Files,
        wanted: RecordRange,
        segment_bytes_min: int = NARROWED_SEGMENT_BYTES_MIN,
    ) -> None:
        """Prepare to limit splits to the parts that can have the records `wanted`.

        Segments below `segment_bytes_min` are read completely: their indexes would cost more.
        """
        self._files = files
        self._bytes_min = segment_bytes_min
        self._wanted = wanted
        #: The segment of the last split, and its byte range with wanted records, which is reused
        #: for the segment's other splits.
        self._path: str | None = None
        self._ends = (0, 0)

    def narrow(self, split: Split) -> Split | None:
        """Return the part of a split that can have the wanted records, None if there is none."""
        if self._wanted == ALL_RECORDS:
            return split
        if self._path != split.path:
            self._ends = self._read_range(split)
            self._path = split.path
        start, end = max(split.start, self._ends[0]), min(split.end, self._ends[1])
        if start >= end:
            return None
        is_last = split.is_last and end == split.end
        return split._replace(start=start, end=end, is_last=is_last)

    def _read_range(self, split: Split) -> tuple[int, int]:
        """Return the byte positions [start, end) of a segment between which the wanted records are.

        Found by its offset and time index; the whole segment if these are missing or doubtful.
        """
        everything = (0, 1 << 63)
        try:
            with closing(self._files.open(split.path)) as file:
                if file.size_bytes() < self._bytes_min:
                    return everything
                path = split.path.removesuffix(FileKind.LOG.value)
                index = read_offset_index(
                    self._files, f"{path}{FileKind.INDEX.value}", split.base_offset
                )
                if not len(index) or index.find_problem() is not None:
                    return everything
                segment = _Segment(file, index)
                if split.next_base is None and not segment.ends_without_gap():
                    return everything
                first = self._wanted.first_offset
                if self._wanted.first_ms > ALL_RECORDS.first_ms:
                    first = max(first, self._read_first_by_time(segment, path, split.base_offset))
                start = segment.start_of(first)
                end = segment.end_of(self._wanted.last_offset)
                return start, everything[1] if end is None else end
        except StorageError:
            return everything

    def _read_first_by_time(self, segment: _Segment, path: str, base_offset: int) -> int:
        """Return the first offset that can have a wanted time, by the time index; 0 without one."""
        try:
            times = read_time_index(self._files, f"{path}{FileKind.TIMEINDEX.value}", base_offset)
        except StorageError:
            return 0
        return segment.offset_after(times, self._wanted.first_ms - 1)


#: Larger than every offset.
_NO_OFFSET = 1 << 62


class _Segment:
    """A segment's log file and its offset index."""

    def __init__(self, file: File, index: OffsetIndex) -> None:
        self._file = file
        self._index = index
        self._size_bytes = file.size_bytes()

    def ends_without_gap(self) -> bool:
        """Return True if the last batch follows the batch before it without a gap.

        The offset of a last batch after a gap may be damaged, which only a read of the segment
        shows.
        """
        for start in islice(self._cuts_before(_NO_OFFSET), 2):
            if self._size_bytes - start > SCAN_CHUNK_BYTES:
                return False
            spans = [(0, 0), (0, -1)]
            scan = scan_batches(self._file, start=start, chunk_bytes=SEARCH_CHUNK_BYTES)
            with suppress(CorruptRecord):
                for _, batch in scan:
                    spans = [spans[1], (batch.base_offset, batch.next_offset)]
                if spans[0][1] == spans[1][0]:
                    return True
        return False

    def start_of(self, offset: int) -> int:
        """Return the last byte position from which a read includes all records from `offset` on.

        It is 0 if the index has no verified entry below.
        """
        return next(self._cuts_before(offset), 0)

    def _cuts_before(self, offset: int) -> Iterator[int]:
        """Yield byte positions of batches before which all offsets are below `offset`.

        They are index entries, the last first, each verified in the log.
        """
        # The batch at a cut may contain only records that are not wanted.
        for number in islice(
            reversed(range(self._count_up_to(offset - 1))), WRONG_INDEX_ENTRIES_MAX
        ):
            if self._index.entry(number).offset < offset:
                position = self._cut_at(number)
                yield from () if position is None else (position,)

    def _count_up_to(self, offset: int) -> int:
        """Return the number of index entries with offsets up to `offset`, by binary search."""
        return bisect_right(self._index.relative_offsets, offset - self._index.base_offset)

    def end_of(self, offset: int) -> int | None:
        """Return the first verified byte position before which all records up to `offset` are.

        None if the index has no such position: then the segment is read to its end.
        """
        # The entry after an entry at or above this offset starts above it.
        first = self._count_up_to(offset - 1) + 1
        for number in islice(range(first, len(self._index)), WRONG_INDEX_ENTRIES_MAX):
            if self._index.entry(number - 1).offset >= offset:
                position = self._cut_at(number)
                if position is not None:
                    return position
        return None

    def _cut_at(self, number: int) -> int | None:
        """Return the position of an index entry if a batch that fits it starts there, else None.

        Without this comparison with the log a damaged index would hide records.
        """
        entry = self._index.entry(number)
        before = self._index.base_offset - 1
        if number > 0:
            before = self._index.entry(number - 1).offset
        is_right = 0 < entry.position < self._size_bytes and starts_batch(
            self._file, entry.position, self._size_bytes, before, entry.offset, is_dense=True
        )
        return entry.position if is_right else None

    def offset_after(self, times: TimeIndex, time_ms: int) -> int:
        """Return an offset below which no timestamp exceeds `time_ms`, by the time index.

        A read of later times can start there. 0, which means the complete segment, if the time
        index has no such entry, is damaged, or contradicts the batch of its entry.
        """
        stamps, offsets = times.timestamps, times.relative_offsets
        rises = all(map(operator.lt, stamps, stamps[1:])) and all(
            map(operator.lt, offsets, offsets[1:])
        )
        entry = times.lookup(time_ms)
        if times.find_problem() is not None or not rises or entry.timestamp < 0:
            return 0
        batch = self._batch_with(entry.offset)
        if not isinstance(batch, BatchView) or batch.max_timestamp_ms != entry.timestamp:
            return 0
        return batch.next_offset

    def _batch_with(self, offset: int) -> RecordBatch | None:
        """Return the batch that contains an offset; None if there is none, or its CRC is wrong."""
        start = self.start_of(offset)
        end = min(start + SCAN_CHUNK_BYTES, self._size_bytes)
        with suppress(CorruptRecord):
            for _, batch in scan_batches(
                self._file, start=start, end=end, chunk_bytes=SEARCH_CHUNK_BYTES
            ):
                if batch.last_offset >= offset:
                    is_it = batch.is_crc_valid() and batch.base_offset <= offset
                    return batch if is_it else None
        return None
