"""The fast path of a log read: batches of one segment, from the batch that contains an offset on.

`log_reader.read_slice` handles all other reads: offsets outside of the log, damage, batches that
are incomplete or compacted away, aborted transactions.
"""

from __future__ import annotations

from engine.limits import SENDFILE_BYTES_MIN
from engine.log.local_log import LocalLog
from engine.log.log_reader import ReadBounds, end_position
from engine.log.log_types import FetchSlice, OffsetMetadata
from engine.model import new_tuple


def read_slice_fast(
    log: LocalLog, start_offset: int, max_bytes: int, upper_bound: int
) -> bytes | FetchSlice | None:
    """Return the batches of a Fetch below `upper_bound`, at least one, if one segment has them all.

    Small reads return the bytes, larger ones a FetchSlice for sendfile. None if the general path
    must serve the read. Raises CorruptRecord at damage.
    """
    if start_offset < log.log_start_offset or max_bytes < 0:
        return None
    segment = log.active_segment
    if start_offset < segment.base_offset:
        older = log.segments.floor(start_offset)
        if older is None:
            return None
        segment = older
    limit = segment.size_bytes
    if upper_bound < log.log_end_offset:
        bounds = ReadBounds(log.log_start_offset, log.log_end_offset, upper_bound)
        limit = end_position(log.segments, segment, bounds)
    span = segment.locate_batches(start_offset, max_bytes, limit)
    if span is None:
        return None
    position, size = span
    if size < SENDFILE_BYTES_MIN:
        return segment.file.read_at(position, size)
    place = new_tuple(OffsetMetadata, (start_offset, segment.base_offset, position))
    fetch_slice = FetchSlice(place)
    fetch_slice.set_region(segment, size)
    return fetch_slice


def has_aborted_after(log: LocalLog, offset: int) -> bool:
    """Return True if an aborted transaction ended in the segment of `offset` or a later one.

    False for most logs; a read_committed Fetch then needs no list of aborted transactions.
    """
    active = log.active_segment
    if offset >= active.base_offset:
        return bool(active.aborted)
    return any(segment.aborted for segment in log.segments.between(offset, log.log_end_offset))
