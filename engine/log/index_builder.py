"""Build the two sparse indexes of a segment from its batches, as a broker does in recovery.

```
before each batch   if more than index.interval.bytes are between the last entry's position and
                    this batch: (its last offset, its position), and with it the largest timestamp
                    up to it and the last offset of the first batch that has it
at the end          the largest timestamp, if the last entry has a different one
```

Entries must rise: an offset that is not above the last entry's raises `IndexOrderBroken`, and so
does a largest timestamp whose offset is below the last entry's. This is checked only when an entry
is added: offsets that fall between two entries are not noticed.

Source: Kafka's LogSegment.recover; LOG-2, LOG-5. A leader writes the same entries while it appends,
one batch at a time; a follower, which appends complete fetch responses, writes fewer.
"""

from __future__ import annotations

from engine.log.offset_index import OffsetIndex
from engine.log.time_index import NO_TIMESTAMP, TimeIndex

#: Kafka's default of index.interval.bytes.
INDEX_INTERVAL_BYTES = 4096


class IndexBuilder:
    """Builds the offset index and the time index of one segment during one scan of its .log."""

    def __init__(
        self,
        base_offset: int,
        interval_bytes: int = INDEX_INTERVAL_BYTES,
        *,
        skips_disorder: bool = False,
    ) -> None:
        """Start at a segment's base; `skips_disorder` leaves out entries that do not rise."""
        self.index = OffsetIndex(base_offset)
        self.time_index = TimeIndex(base_offset)
        self._interval_bytes = interval_bytes
        self._skips_disorder = skips_disorder
        #: Position of the batch with the last entry; the next entry is due `interval_bytes` later.
        self._last_position = 0
        #: Largest timestamp up to now and the offset of its batch, for the next entry of the time
        #: index.
        self._largest = NO_TIMESTAMP
        self._largest_offset = base_offset

    def add_batch(self, position: int, last_offset: int, max_timestamp_ms: int) -> None:
        """Add an index entry for the next batch in the file, if `index.interval.bytes` have passed.

        `position` is the batch's. Raises IndexOrderBroken for offsets that do not rise.
        """
        if max_timestamp_ms > self._largest:
            self._largest = max_timestamp_ms
            self._largest_offset = last_offset
        if position - self._last_position > self._interval_bytes:
            if self._may_add(last_offset):
                self.index.append(last_offset, position)
                self._add_time()
            self._last_position = position

    def finish(self) -> None:
        """Add the last entry of the time index, after the last batch; raises IndexOrderBroken."""
        self._add_time()

    def _may_add(self, last_offset: int) -> bool:
        """Return True if an entry may be appended; False if it is out of order and to be skipped.

        Out of order without `skips_disorder` also returns True: the append then raises.
        """
        is_after_last = not len(self.index) or last_offset > self.index.last_offset
        return is_after_last or not self._skips_disorder

    def _add_time(self) -> None:
        """Add the largest timestamp up to now to the time index.

        Nothing is added with `skips_disorder` if its record lies before the last entry's.
        """
        if self._skips_disorder and self._largest_offset < self.time_index.last_entry.offset:
            return
        self.time_index.maybe_append(self._largest, self._largest_offset)
