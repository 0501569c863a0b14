"""Read one log: slices by offset, offsets by time, aborted transactions.

```
start offset → segment with the greatest base ≤ it → index → scan of headers → position
             → next segment, if this one has nothing at or after it
upper bound  → likewise; the log end offset is known without a search
```

Source: REPL-15; Kafka's LocalLog.read, UnifiedLog.fetchOffsetByTimestamp; FET-3, FET-5, FET-6, L5.
Differs: if only records below the log start offset have a time, later segments are searched too,
and likewise after a segment without timestamps, for which its file's modification time counts;
Kafka stops after the first segment that could have it.
"""

from __future__ import annotations

from engine.limits import LOOKUP_CHUNK_BYTES, SENDFILE_BYTES_MIN
from engine.log.batch_scan import scan_batches
from engine.log.epoch_cache import EpochCache
from engine.log.log_types import (
    FetchSlice,
    NegativeReadSize,
    OffsetAndTimestamp,
    OffsetMetadata,
    OffsetOutOfRange,
)
from engine.log.segment import Segment
from engine.log.segment_list import SegmentList
from engine.log.txn_index import AbortedTransaction, find_aborted
from engine.records.record import NO_TIMESTAMP

#: The negative numbers that ListOffsets uses in place of a timestamp.
LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5


class ReadBounds:
    """The bounds of a read: log start and end offset, and an exclusive upper bound."""

    __slots__ = ("log_end_offset", "log_start_offset", "upper_bound")

    def __init__(self, log_start_offset: int, log_end_offset: int, upper_bound: int) -> None:
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset
        self.upper_bound = upper_bound


def read_slice(
    segments: SegmentList,
    start_offset: int,
    max_bytes: int,
    bounds: ReadBounds,
    *,
    at_least_one_batch: bool,
    with_aborted: bool,
) -> FetchSlice:
    """Return batches of one segment, from the batch that contains `start_offset` on.

    With `at_least_one_batch` the first batch is complete even if it exceeds `max_bytes`. Empty at
    and above the upper bound. Raises OffsetOutOfRange outside of the log, NegativeReadSize, and
    CorruptRecord at damage.
    """
    end = bounds.log_end_offset
    if start_offset == end >= bounds.upper_bound:
        # The most frequent read: a consumer at the end of the log.
        fetch_slice = FetchSlice(end_of(segments, end))
        if with_aborted:
            fetch_slice.aborted_transactions = ()
        return fetch_slice
    segment = segments.floor(start_offset)
    if not bounds.log_start_offset <= start_offset <= end or segment is None:
        raise OffsetOutOfRange(start_offset, bounds.log_start_offset, end)
    if start_offset >= bounds.upper_bound:
        fetch_slice = FetchSlice(offset_metadata(segments, start_offset, end))
    else:
        fetch_slice = _slice_from(
            segments, segment, start_offset, max_bytes, bounds, at_least_one_batch
        )
    if with_aborted:
        try:
            upper = _offset_above(segments, fetch_slice, bounds)
            fetch_slice.aborted_transactions = (
                collect_aborted(segments, start_offset, upper) if fetch_slice.size_bytes else ()
            )
        except BaseException:
            # No reader has the region that it was found for.
            fetch_slice.release()
            raise
    return fetch_slice


def _slice_from(
    segments: SegmentList,
    segment: Segment,
    start_offset: int,
    max_bytes: int,
    bounds: ReadBounds,
    at_least_one_batch: bool,
) -> FetchSlice:
    """Return the batches from an offset on, from the first segment at or after `segment` with any.

    Compaction may have removed all records at and above the offset in the segments before.
    """
    if max_bytes < 0:
        raise NegativeReadSize(max_bytes)
    following: Segment | None = segment
    while following is not None:
        segment = following
        place = segment.locate_offset(start_offset)
        if place is not None:
            limit = end_position(segments, segment, bounds)
            start = OffsetMetadata(start_offset, segment.base_offset, place.position)
            size = max(max_bytes, place.size_bytes) if at_least_one_batch else max_bytes
            size = min(limit - place.position, size)
            if size <= 0:
                return FetchSlice(start)
            if size < SENDFILE_BYTES_MIN:
                fetch_slice = FetchSlice(start, segment.file.read_at(place.position, size))
            else:
                fetch_slice = FetchSlice(start)
                fetch_slice.set_region(segment, size)
            fetch_slice.is_first_batch_incomplete = size < place.size_bytes
            return fetch_slice
        following = segments.higher(segment.base_offset)
    # Everything at or after the offset was compacted away.
    return FetchSlice(end_of(segments, bounds.log_end_offset))


def end_position(segments: SegmentList, segment: Segment, bounds: ReadBounds) -> int:
    """Return the byte position in a segment where a read must end (exclusive).

    The upper bound of the read is an offset; the position is the start of the batch that contains
    it.
    """
    upper = bounds.upper_bound
    if upper >= bounds.log_end_offset:
        return segment.size_bytes
    following = segments.higher(segment.base_offset)
    if following is not None and following.base_offset <= upper:
        return segment.size_bytes
    place = segment.locate_offset(upper)
    return segment.size_bytes if place is None else place.position


def _offset_above(segments: SegmentList, fetch_slice: FetchSlice, bounds: ReadBounds) -> int:
    """Return an offset above all records of a slice, to select its aborted transactions.

    An offset that is too high only adds a few needless entries.
    """
    segment = segments.floor(fetch_slice.start.segment_base_offset)
    if segment is not None:
        index_entry = segment.index.upper_bound(fetch_slice.start.position + fetch_slice.size_bytes)
        if index_entry is not None:
            return index_entry.offset
        following = segments.higher(segment.base_offset)
        if following is not None:
            return following.base_offset
    return bounds.log_end_offset


def collect_aborted(
    segments: SegmentList, start_offset: int, upper_bound: int
) -> list[AbortedTransaction]:
    """Return the aborted transactions that overlap [start_offset, upper_bound), in log order."""
    aborted: list[AbortedTransaction] = []
    segment = segments.floor(start_offset)
    while segment is not None:
        entries, is_complete = find_aborted(segment.aborted, start_offset, upper_bound)
        aborted += entries
        if is_complete:
            break
        segment = segments.higher(segment.base_offset)
    return aborted


def end_of(segments: SegmentList, log_end_offset: int) -> OffsetMetadata:
    """Return the log end offset with the active segment's base offset and its size as position."""
    active = segments.active
    return OffsetMetadata(log_end_offset, active.base_offset, active.size_bytes)


def offset_metadata(segments: SegmentList, offset: int, log_end_offset: int) -> OffsetMetadata:
    """Return an offset with its segment's base offset and its position in the segment's .log.

    Two such offsets in a segment give the bytes between them, as the minimum bytes of a Fetch need.
    """
    if offset >= log_end_offset:
        return end_of(segments, log_end_offset)
    segment = segments.floor(offset)
    while segment is not None:
        place = segment.locate_offset(offset)
        if place is not None:
            return OffsetMetadata(offset, segment.base_offset, place.position)
        segment = segments.higher(segment.base_offset)
    return end_of(segments, log_end_offset)


def find_offset_for_timestamp(
    segments: SegmentList,
    timestamp_ms: int,
    epochs: EpochCache,
    *,
    log_start_offset: int,
    log_end_offset: int,
) -> OffsetAndTimestamp | None:
    """Return the first record with this timestamp or a later one, None without one.

    Negative times have the meanings of ListOffsets: LATEST (the log end offset; the caller applies
    its own bound), EARLIEST, MAX_TIMESTAMP (the first record with the largest timestamp),
    EARLIEST_LOCAL, LATEST_TIERED (always offset −1).
    """
    if timestamp_ms == EARLIEST:
        first = epochs.entries[0] if epochs.entries else None
        is_known = first is not None and first.start_offset <= log_start_offset
        epoch = first.epoch if first is not None and is_known else None
        return OffsetAndTimestamp(NO_TIMESTAMP, log_start_offset, epoch)
    if timestamp_ms == EARLIEST_LOCAL:
        epoch = epochs.epoch_for_offset(log_start_offset)
        return OffsetAndTimestamp(NO_TIMESTAMP, log_start_offset, epoch)
    if timestamp_ms == LATEST:
        epoch = epochs.latest_epoch if epochs.entries else None
        return OffsetAndTimestamp(NO_TIMESTAMP, log_end_offset, epoch)
    if timestamp_ms == LATEST_TIERED:
        return OffsetAndTimestamp(NO_TIMESTAMP, -1, -1)
    if timestamp_ms == MAX_TIMESTAMP:
        return _find_max_timestamp(segments)
    for segment in segments:
        if segment.largest_timestamp_ms < timestamp_ms:
            continue
        timestamp_offset = segment.find_timestamp(timestamp_ms, log_start_offset)
        if timestamp_offset is not None:
            epoch = epochs.epoch_for_offset(timestamp_offset.offset)
            return OffsetAndTimestamp(timestamp_offset.timestamp, timestamp_offset.offset, epoch)
    return None


def _find_max_timestamp(segments: SegmentList) -> OffsetAndTimestamp | None:
    """Return the first record with the log's largest timestamp; None if none has a timestamp.

    For ListOffsets with MAX_TIMESTAMP.
    """
    segment = max(segments, key=lambda candidate: candidate.largest.timestamp)
    largest = segment.largest
    start = segment.index.lookup(largest.offset).position
    limit_bytes = segment.config.opened_batch_bytes_max
    for _, batch in scan_batches(segment.file, start=start, chunk_bytes=LOOKUP_CHUNK_BYTES):
        if batch.max_timestamp_ms != largest.timestamp or largest.timestamp < 0:
            continue
        for record in batch.records(limit_bytes=limit_bytes):
            if record.timestamp_ms == largest.timestamp:
                epoch = batch.leader_epoch if batch.leader_epoch >= 0 else None
                return OffsetAndTimestamp(record.timestamp_ms, record.offset, epoch)
        return None
    return None
