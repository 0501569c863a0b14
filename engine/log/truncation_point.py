"""Find the position at which a segment is truncated, even if one of its batches is damaged.

```
header scan  from the index entry at or before the offset to the first batch that ends at or after
             it
in doubt     1 that batch is damaged, begins after the offset or ends after the next one begins, or
               there is none
             2 each batch from the index entry on is compared with its neighbours as well, because
               no checksum covers its base offset
             3 a damaged batch must be followed by a valid one that begins within its offsets or
               directly after them
             4 if neighbours contradict each other, nothing is truncated
```

Source: Kafka's LogSegment.truncateTo. Differs: Kafka accepts any header as a batch, and truncates
the file in the middle of a good batch if the length of an earlier one is damaged.
"""

from __future__ import annotations

from engine.errors import CorruptRecord
from engine.host.ports import File
from engine.log.segment_lookup import BatchPlace, find_offset_by_headers
from engine.records.batch_header import PROLOGUE_BYTES, read_prologue
from engine.records.view import batch_at

#: An offset below the last offset of every batch.
_BELOW_ALL = -1 << 63
#: An offset above the base offset of every batch.
_NO_BATCH = (1 << 63) - 1


def find_first_truncated(
    file: File, place: BatchPlace | None, offset: int, *, base_offset: int, start: int, end: int
) -> BatchPlace | None:
    """Return the first batch that a truncation to `offset` removes, None if it removes none.

    `place` is the first batch whose header ends at or after `offset`. The search for it began at
    the position `start`, the start of a batch; `end` is the segment's end position, and
    `base_offset` the segment's base offset. If `place` is in doubt, the batches from `start` on
    decide. The last batch of the segment is removed if its header says so, even if the header is
    wrong, because no batch follows that could contradict it.

    Raises CorruptRecord unless the start and end of each batch from `start` to the result are
    certain.
    """
    if place is not None and _is_certain(file, place, offset, end):
        return place
    position, after = start, base_offset
    while position < end:
        place = find_offset_by_headers(file, _BELOW_ALL, position, end)
        if place is None:
            raise _disagreement(file, position)
        after = _find_offset_after(file, place, offset, after=after, end=end)
        if after > offset:
            return place
        position += place.size_bytes
    return None


def _is_certain(file: File, place: BatchPlace, offset: int, end: int) -> bool:
    """Return True if a batch is valid, begins at or before `offset` and ends before the next.

    A wrapper of an old format has its last offset in the header, so it is not certain.
    """
    position, size_bytes, last = place
    return (
        _read_base_offset(file, position, end) <= offset
        and _read_base_offset(file, position + size_bytes, end) > last
        and _is_whole(file, place)
    )


def _find_offset_after(file: File, place: BatchPlace, offset: int, *, after: int, end: int) -> int:
    """Return the offset after a batch; `after` is the offset after the batch before it.

    Raises CorruptRecord if the neighbouring batches contradict the batch's header.
    """
    position, size_bytes, last = place
    following = position + size_bytes
    base = _read_base_offset(file, position, end)
    if base < after:
        raise _disagreement(file, position)
    following_base = _read_base_offset(file, following, end)
    if _is_whole(file, place):
        if base == after or following_base > last:
            return last + 1
    elif following == end:
        if last >= offset:
            return last + 1
    elif base < following_base <= last + 1:
        next_place = find_offset_by_headers(file, _BELOW_ALL, following, end)
        if next_place is not None and _is_whole(file, next_place):
            return following_base
    raise _disagreement(file, following)


def _disagreement(file: File, position: int) -> CorruptRecord:
    """Return the error for batches that do not follow each other at a position."""
    expected = "a batch that goes on where the one before it ends"
    return CorruptRecord(expected, "no such batch", path=file.path, position=position)


def _read_base_offset(file: File, position: int, end: int) -> int:
    """Return the base offset of the batch at a position.

    At the end, _NO_BATCH, which is above all offsets.
    """
    if position >= end - PROLOGUE_BYTES:
        return _NO_BATCH
    base: int = read_prologue(file.read_at(position, PROLOGUE_BYTES), 0)[0]
    return base


def _is_whole(file: File, place: BatchPlace) -> bool:
    """Return True if a batch has a valid header and checksum."""
    try:
        content = memoryview(file.read_at(place.position, place.size_bytes))
        return batch_at(content, 0).is_crc_valid()
    except CorruptRecord:
        return False
