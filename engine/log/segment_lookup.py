"""Find offsets and times in one segment: greatest index entry, then a scan of the log.

```
offset o       entry with the greatest offset ≤ o → its position → first batch that ends at or
               after o
timestamp t    entry with the greatest timestamp ≤ t → the position of its offset → first record
               at or after the start offset with a timestamp ≥ t
```

Source: L5; Kafka's LogSegment.translateOffset and findOffsetByTimestamp.
"""

from __future__ import annotations

from typing import NamedTuple

from engine.errors import CorruptRecord
from engine.host.ports import File
from engine.limits import DECOMPRESSED_BATCH_BYTES_MAX, HEADER_WALK_BYTES, LOOKUP_CHUNK_BYTES
from engine.log.batch_scan import LENGTH_MIN, scan_batches
from engine.log.offset_index import OffsetIndex
from engine.log.time_index import TimeIndex, TimestampOffset
from engine.records.batch_header import (
    HEADER_UP_TO_DELTA_BYTES,
    LENGTH_OVERHEAD_BYTES,
    MAGIC,
    PROLOGUE_BYTES,
    read_last_offset_delta,
    read_prologue,
)

# Number of index entries to try: a running broker's index may have stale ones after a truncation.
_TRIED_ENTRIES = 16


class BatchPlace(NamedTuple):
    """Position, size and last offset of a batch in its .log."""

    position: int
    size_bytes: int
    last_offset: int


def find_offset(file: File, index: OffsetIndex, offset: int) -> BatchPlace | None:
    """Return the first batch that ends at or after `offset`, None after the segment's end.

    Raises CorruptRecord for damage between the index entry and that batch.
    """
    start = index.lookup(offset).position
    for position, batch in scan_batches(file, start=start, chunk_bytes=LOOKUP_CHUNK_BYTES):
        if batch.last_offset >= offset:
            return BatchPlace(position, batch.size_bytes, batch.last_offset)
    return None


def find_timestamp(
    file: File,
    index: OffsetIndex,
    time_index: TimeIndex,
    timestamp: int,
    *,
    start_offset: int,
    limit_bytes: int = DECOMPRESSED_BATCH_BYTES_MAX,
) -> TimestampOffset | None:
    """Return the first record at or after `start_offset` with a timestamp ≥ `timestamp`.

    None if the segment has no such record. Raises CorruptRecord as `find_offset` does, and
    DecompressedTooLarge for a batch whose records exceed `limit_bytes`.
    """
    time_entry = time_index.lookup(timestamp)
    start = index.lookup(max(time_entry.offset, start_offset)).position
    for _, batch in scan_batches(file, start=start, chunk_bytes=LOOKUP_CHUNK_BYTES):
        if batch.max_timestamp_ms < timestamp or batch.last_offset < start_offset:
            continue
        for record in batch.records(limit_bytes=limit_bytes):
            if record.timestamp_ms >= timestamp and record.offset >= start_offset:
                return TimestampOffset(record.timestamp_ms, record.offset)
    return None


def find_offset_by_headers(file: File, offset: int, position: int, end: int) -> BatchPlace | None:
    """Return the first batch from a position on that ends at or after `offset`, by headers.

    None if no batch before `end`, the segment's end, does. Raises CorruptRecord for an impossible
    size, and for a batch that extends beyond the end.

    Differs: Kafka's FileLogInputStream treats such a batch as the end of the segment. A reader then
    gets no records, or those of the next segment, without an error.
    """
    chunk, chunk_at = b"", 0
    while position < end - PROLOGUE_BYTES:
        at = position - chunk_at
        if at + HEADER_UP_TO_DELTA_BYTES > len(chunk):
            chunk = file.read_at(position, min(HEADER_WALK_BYTES, end - position))
            chunk_at, at = position, 0
            if len(chunk) <= PROLOGUE_BYTES:
                break
        base, length, magic = read_prologue(chunk, at)
        if length < LENGTH_MIN:
            raise CorruptRecord(
                f"a batch size of at least {LENGTH_MIN}", length, path=file.path, position=position
            )
        last = base
        if magic >= MAGIC and at + HEADER_UP_TO_DELTA_BYTES <= len(chunk):
            last += read_last_offset_delta(chunk, at)
        following = position + length + LENGTH_OVERHEAD_BYTES
        if following > end:
            raise CorruptRecord(
                f"a batch of at most {end - position} bytes",
                following - position,
                path=file.path,
                position=position,
            )
        if last >= offset:
            return BatchPlace(position, following - position, last)
        position = following
    return None


class LogEnd(NamedTuple):
    """The end of a segment's whole batches: the offset after the last one, and its end position."""

    next_offset: int
    good_bytes: int


def find_end(file: File, index: OffsetIndex) -> LogEnd:
    """Return the end of the last whole batch; the base offset and 0 without one.

    The index saves reading the complete log, but is not trusted: entries are tried from the last
    one back until one leads to a valid batch.
    """
    for number in range(len(index) - 1, max(len(index) - _TRIED_ENTRIES, 0) - 1, -1):
        index_entry = index.entry(number)
        place = _verified_position(file, index_entry.position, index_entry.offset)
        if place is not None:
            return _scan_end(file, place, index.base_offset)
    return _scan_end(file, 0, index.base_offset)


def _verified_position(file: File, position: int, offset: int) -> int | None:
    """Return `position` if a valid batch with a base offset up to `offset` starts there, else None.

    An index entry that leads to no such batch is wrong.
    """
    if not 0 <= position < file.size_bytes():
        return None
    try:
        for _, batch in scan_batches(file, start=position, chunk_bytes=LOOKUP_CHUNK_BYTES):
            is_right = batch.is_crc_valid() and batch.base_offset <= offset
            return position if is_right else None
    except CorruptRecord:
        pass
    return None


def _scan_end(file: File, position: int, base_offset: int) -> LogEnd:
    """Return the end (offset exclusive) of the whole batches from `position` on."""
    end = LogEnd(base_offset, position)
    scan = scan_batches(file, start=position)
    try:
        for _, batch in scan:
            end = LogEnd(batch.next_offset, scan.position)
    except CorruptRecord:
        pass  # no batch follows, so the end is where it was
    return end
