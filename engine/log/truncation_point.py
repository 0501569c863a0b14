"""Find where a segment is truncated, although one of its batches is read damaged.

```
header walk  from the index entry at or before the offset to the first batch that ends at or after
             it
damage       1 that batch is damaged, begins after the offset, or there is none
             2 each batch from the index entry on must lead to a whole batch after it
             3 where one does not, its length is damaged: nothing is truncated
             4 else its last offset may be damaged: what begins before the offset is kept
```

Source: Kafka's LogSegment.truncateTo. Differs: Kafka takes any header for a batch, and truncates
the file in the middle of a good batch if the length of an earlier one is damaged.
"""

from __future__ import annotations

from engine.errors import CorruptRecord
from engine.host.ports import File
from engine.log.segment_lookup import BatchPlace
from engine.records.batch_header import (
    HEADER_UP_TO_DELTA_BYTES,
    LENGTH_OVERHEAD_BYTES,
    MAGIC,
    PROLOGUE_BYTES,
    read_last_offset_delta,
    read_prologue,
)
from engine.records.view import batch_at


def first_truncated(
    file: File, place: BatchPlace | None, offset: int, start: int, end: int
) -> BatchPlace | None:
    """Return the first batch that a truncation to `offset` removes, None if it removes none.

    `place` is the first batch that ends at or after `offset` by its header. The search for it began
    at the position `start`, with a batch; `end` is the position where the segment ends. If the
    checksum of `place` is wrong, its last offset may be wrong too. The result is then the last
    batch after `place` that begins at or before `offset`, with its base offset as `last_offset`;
    `place` without one. What is in front of the result stays.

    Raises CorruptRecord if the length of a batch between `start` and `place` is damaged.
    """
    is_damaged = place is not None and _is_damaged(file, place.position, place.size_bytes)
    if place is not None and not is_damaged and _base_offset(file, place.position) <= offset:
        return place
    _require_chain(file, start, end if place is None else place.position + 1, end)
    if place is None or not is_damaged:
        return place
    while (position := place.position + place.size_bytes) < end:
        base, length, _ = read_prologue(file.read_at(position, HEADER_UP_TO_DELTA_BYTES), 0)
        if base > offset:
            break
        place = BatchPlace(position, length + LENGTH_OVERHEAD_BYTES, base)
    return place


def _require_chain(file: File, start: int, bound: int, end: int) -> None:
    """Require of each damaged batch in [start, bound) that a whole one follows it (step 2).

    The last batch of the segment needs none where the search has found a batch: `bound` < `end`.
    """
    position = start
    while position < bound:
        following = position + _size_bytes(file, position)
        if _is_damaged(file, position, following - position):
            is_last = following == end and bound < end
            if not is_last and not _is_next(file, position, following, end):
                raise CorruptRecord(
                    f"a whole batch after the damaged one at position {position}",
                    "no such batch",
                    path=file.path,
                    position=following,
                )
        position = following


def _is_next(file: File, position: int, following: int, end: int) -> bool:
    """Return whether a whole batch follows a damaged one with no offsets between the two."""
    if following > end - PROLOGUE_BYTES:
        return False
    base, following_base = _base_offset(file, position), _base_offset(file, following)
    header = file.read_at(position, HEADER_UP_TO_DELTA_BYTES)
    _, _, magic = read_prologue(header, 0)
    last = base + (read_last_offset_delta(header, 0) if magic >= MAGIC else 0)
    is_near = base < following_base <= last + 1
    return is_near and not _is_damaged(file, following, _size_bytes(file, following))


def _base_offset(file: File, position: int) -> int:
    base: int = read_prologue(file.read_at(position, PROLOGUE_BYTES), 0)[0]
    return base


def _size_bytes(file: File, position: int) -> int:
    length: int = read_prologue(file.read_at(position, PROLOGUE_BYTES), 0)[1]
    return length + LENGTH_OVERHEAD_BYTES


def _is_damaged(file: File, position: int, size_bytes: int) -> bool:
    """Return whether a batch has a wrong checksum or no header."""
    try:
        return not batch_at(memoryview(file.read_at(position, size_bytes)), 0).is_crc_valid()
    except CorruptRecord:
        return True
