"""The shortcut through the checks for the batches that most logs are full of.

A batch is on the fast path when it continues the one before it in every way:

```
magic 2, whole header        base offset = the offset expected
records = offsets            the last epoch again
the right checksum           no flag but codec and append time
                             offsets within the segment's reach
```

Then offsets, leader epochs and transactions have nothing to say about it, and an index only if one
of its entries is near. Everything else is given to each check; so is a batch with a wrong checksum,
which they compute again. Measured with 1.2 KB batches: 3 times as fast.
"""

from __future__ import annotations

from engine.inspection.check_epochs import EpochCheck
from engine.inspection.check_indexes import OffsetIndexCheck, TimeIndexCheck
from engine.inspection.check_offsets import OffsetCheck
from engine.records.batch_header import CHECKED_FROM, HEADER_BYTES, MAGIC, read_header
from engine.records.crc import crc32c

# Codec bits and append time: all that may be set.
_FAST_FLAGS = 0x0F
_INT_MAX = (1 << 31) - 1


class FastBatches:
    """Takes fast-path batches of one segment; knows nothing until a first went to each check."""

    def __init__(
        self,
        offsets: OffsetCheck,
        epochs: EpochCheck,
        index: OffsetIndexCheck | None,
        time_index: TimeIndexCheck | None,
    ) -> None:
        """Without an index (None) its check is left out."""
        self._offsets = offsets
        self._epochs = epochs
        self._index = index
        self._time_index = time_index
        #: Whether the checks have seen a batch from which the fast path may continue.
        self._is_ready = False
        #: Whether the fast path has passed batches that the checks were not told of yet.
        self._is_moved = False
        #: What a batch must have for the fast path: this base offset, this leader epoch, and a last
        #: offset that the index can hold.
        self._next_offset = 0
        self._epoch = 0
        self._offset_max = 0

    def enter(self, segment_base: int) -> None:
        """Begin again behind a batch that went to each check."""
        runs = self._epochs.runs
        self._is_ready = bool(runs) and self._offsets.next_offset is not None
        if self._is_ready:
            self._next_offset = self._offsets.next_offset or 0
            self._epoch = runs[-1].epoch
            self._offset_max = segment_base + _INT_MAX

    def take(self, position: int, view: memoryview) -> bool:
        """Pass a batch to the checks if it is on the fast path; return whether it is."""
        if not self._is_ready or len(view) < HEADER_BYTES:
            return False
        (
            base_offset, _, epoch, magic, crc, attributes, last_delta, _, max_timestamp_ms,
            _, _, _, count,
        ) = read_header(view)  # fmt: skip
        if (
            base_offset != self._next_offset
            or magic != MAGIC
            or epoch != self._epoch
            or count != last_delta + 1
            or not 0 <= attributes <= _FAST_FLAGS
        ):
            return False
        last_offset = base_offset + last_delta
        if last_delta < 0 or last_offset > self._offset_max or crc32c(view[CHECKED_FROM:]) != crc:
            return False
        self._next_offset = last_offset + 1
        self._is_moved = True
        if self._index is not None and self._index.has_interest(position):
            self._index.see(position, last_offset)
        if self._time_index is not None:
            self._time_index.see(last_offset, max_timestamp_ms)
        return True

    def leave(self) -> None:
        """Report to the checks how far the fast path went."""
        if self._is_moved:
            self._offsets.follow(self._next_offset)
            self._epochs.follow(self._next_offset - 1)
            self._is_moved = False
