"""Compare the entries of a segment's indexes with its batches.

```
.index      entry (offset, position): a batch starts at position, and one of the batches from there
            to the next entry's position has offset as its last offset
.timeindex  entry (timestamp, offset): timestamp is the largest of all batches up to the batch that
            contains offset
```

Both fields rise from entry to entry. Source: L3, L5. Differs: `kctl logs verify` also accepts the
bytes that brokers leave after the entries of an open segment, and finds missing entries.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise

from engine.analysis.batch_reader import SplitReader
from engine.analysis.splits import Split
from engine.errors import CorruptRecord
from engine.host.ports import Files
from engine.log.offset_index import OffsetIndex
from engine.log.time_index import NO_TIMESTAMP, TimeIndex
from engine.records.view import RecordBatch


class IndexCheck:
    """The batches of one segment, with which the entries of its indexes are compared."""

    def __init__(self, files: Files, split: Split) -> None:
        """Read all batch headers of a segment, which entries of its indexes are compared with.

        `split` covers the whole segment.
        """
        #: Position and last offset of each batch, and the largest timestamp up to it.
        self._positions: list[int] = []
        self._last_offsets: list[int] = []
        self._largest: list[int] = []
        largest = NO_TIMESTAMP
        with closing(files.open(split.path)) as file:
            reader = SplitReader(file, split)
            for position, batch, _ in reader.batches():
                largest = max(largest, _largest_ms(batch))
                self._positions.append(position)
                self._last_offsets.append(batch.last_offset)
                self._largest.append(largest)

    def offset_problems(self, index: OffsetIndex) -> Iterator[str | None]:
        """Yield for each entry of an offset index what is wrong with it, None for a right entry."""
        before = (index.base_offset - 1, -1)
        entries = [*index]
        for entry, following in pairwise([*entries, None]):
            assert entry is not None
            if entry.offset <= before[0] or entry.position <= before[1]:
                yield f"does not rise above offset {before[0]} at {before[1]}"
                continue
            before = (entry.offset, entry.position)
            first = bisect_left(self._positions, entry.position)
            end = len(self._positions)
            if following is not None:
                end = max(bisect_left(self._positions, following.position), first + 1)
            if self._positions[first : first + 1] != [entry.position]:
                yield "no batch starts at its position"
            elif entry.offset not in self._last_offsets[first:end]:
                yield "no batch from its position on ends at its offset"
            else:
                yield None

    def time_problems(self, index: TimeIndex) -> Iterator[str | None]:
        """Yield for each entry of a time index what is wrong with it, None for a right entry."""
        before = (NO_TIMESTAMP - 1, index.base_offset - 1)
        for entry in index:
            if entry.timestamp <= before[0] or entry.offset < before[1]:
                yield f"does not rise above time {before[0]} at offset {before[1]}"
                continue
            before = (entry.timestamp, entry.offset)
            holder = bisect_left(self._last_offsets, entry.offset)
            if holder == len(self._last_offsets):
                yield "the log ends before its offset"
            elif self._largest[holder] != entry.timestamp:
                yield f"the largest timestamp up to its offset is {self._largest[holder]}"
            else:
                yield None


def _largest_ms(batch: RecordBatch) -> int:
    """Return a batch's largest timestamp in ms; NO_TIMESTAMP if it has none or is corrupt."""
    try:
        return NO_TIMESTAMP if batch.max_timestamp_ms is None else batch.max_timestamp_ms
    except CorruptRecord:
        return NO_TIMESTAMP
