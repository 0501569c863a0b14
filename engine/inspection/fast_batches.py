"""A fast path through the checks for the batches that most logs consist of.

A batch takes the fast path if it continues the previous one in every way:

```
magic 2, whole header        base offset = the expected offset
records = offsets            the same epoch as the last batch
valid checksum               no flags but codec and append time
                             offsets within the range of the segment
```

The checks of offsets, leader epochs and transactions can then find nothing, and those of an index
only near one of its entries. Every other batch is passed to each check, also one with a wrong
checksum, which is then computed again. Measured with batches of 1.2 KB: 3 times as fast.
"""

from __future__ import annotations

from engine.inspection.check_epochs import EpochCheck
from engine.inspection.check_indexes import OffsetIndexCheck, TimeIndexCheck
from engine.inspection.check_offsets import OffsetCheck
from engine.records.batch_header import CHECKED_FROM, HEADER_BYTES, MAGIC, read_header
from engine.records.crc import crc32c

# Attributes that may be set: codec and append time.
_FAST_FLAGS = 0x0F
_INT_MAX = (1 << 31) - 1


class FastBatches:
    """Takes the batches of a segment that qualify, after a first one was passed to all checks."""

    def __init__(
        self,
        offsets: OffsetCheck,
        epochs: EpochCheck,
        index: OffsetIndexCheck | None,
        time_index: TimeIndexCheck | None,
    ) -> None:
        """An index check of None is left out."""
        self._offsets = offsets
        self._epochs = epochs
        self._index = index
        self._time_index = time_index
        #: True if the checks have seen a batch that the fast path can continue.
        self._is_ready = False
        #: True if the fast path took batches that the checks do not know yet.
        self._is_moved = False
        #: Conditions of the fast path: base offset, leader epoch, and the largest last offset that
        #: the index can hold.
        self._next_offset = 0
        self._epoch = 0
        self._offset_max = 0

    def enter(self, segment_base: int) -> None:
        """Restart the fast path after a batch that was passed to all checks, which set its state.

        It stays off until the first batch with a leader epoch was checked. `segment_base` is the
        base offset of the segment.
        """
        runs = self._epochs.runs
        self._is_ready = bool(runs) and self._offsets.next_offset is not None
        if self._is_ready:
            self._next_offset = self._offsets.next_offset or 0
            self._epoch = runs[-1].epoch
            self._offset_max = segment_base + _INT_MAX

    def take(self, position: int, view: memoryview) -> bool:
        """Check a batch without decoding it; return False if it must be passed to all checks.

        It qualifies if it continues the last one without a gap, in the same epoch, with a valid
        CRC, and is neither transactional nor a control batch.
        """
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
        """Pass the offset reached on the fast path to the offset and epoch checks.

        It is called before they check a batch themselves, and at the end of the scan.
        """
        if self._is_moved:
            self._offsets.follow(self._next_offset)
            self._epochs.follow(self._next_offset - 1)
            self._is_moved = False
