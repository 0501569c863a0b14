"""Check the two sparse indexes of a segment against its batches.

```
.index      entry (offset, position): a batch starts at position, and one of those from there to
            the next entry's position ends exactly at offset
.timeindex  entry (timestamp, offset): timestamp is the largest of all batches up to the one that
            holds offset; the last entry of a closed segment has the largest of all
```

The last segment of a log may be open, however its indexes look: a broker that keeps them in memory
has written none or only the first of their entries. All entries present must be right.

The index of an open segment may hold more behind its last entry: when a broker truncates a log it
sets its count of entries back, in memory, and leaves the bytes (seen on followers after an unclean
election). It rebuilds such an index after a crash and cuts it at a clean stop.

An offset entry's offset may lie several batches behind its position: on a follower the entry is
for a whole fetch response. Both checks go along with one scan of the log.

Source: L3, L5; the rules of `offset_index.py` and `time_index.py`. Differs: Kafka's dump tool looks
at the one batch at an entry's position, and reports followers' entries as wrong. Where offsets fall
back, the time index's entries for them are not checked.
"""

from __future__ import annotations

from engine.inspection.findings import Findings, Severity
from engine.log.offset_index import OffsetIndex, OffsetPosition
from engine.log.time_index import NO_TIMESTAMP, TimeIndex, TimestampOffset


class OffsetIndexCheck:
    """One offset index against the batches of its segment, in order.

    `is_closed` returns whether a broker has closed the segment: only then must every entry be
    right.
    """

    def __init__(
        self, findings: Findings, path: str, index: OffsetIndex, *, is_closed: bool
    ) -> None:
        """Begin before the first batch; problems go to `findings`."""
        self._report = _Report(findings, path, "index", is_closed=is_closed)
        self._entries = iter(index)
        #: The next entry to check, None after the last one.
        self._head = next(self._entries, None)
        #: The last entry that rose above those before.
        self._last = OffsetPosition(index.base_offset - 1, 0)
        #: The entry whose batch begins at its position: a batch before the next entry must end at
        #: its offset. None when one did.
        self._open: OffsetPosition | None = None

    def has_interest(self, position: int) -> bool:
        """Return whether the batch at a position has anything to do with an entry."""
        return self._open is not None or (
            self._head is not None and self._head.position <= position
        )

    def see(self, position: int, last_offset: int) -> None:
        """Go on by one good batch."""
        while self._head and self._head.position <= position:
            if self._rises(self._head):
                self._close()
                if self._head.position == position:
                    self._open = self._head
                else:
                    self._wrong("entry", self._head, "no batch starts there")
            self._advance()
        if self._open and last_offset == self._open.offset:
            self._open = None

    def see_damage(self, start: int, end: int) -> None:
        """Skip damaged bytes [start, end): index entries into them may be right."""
        while self._head and self._head.position < end:
            if self._rises(self._head):
                self._close()
                if self._head.position < start:
                    self._wrong("entry", self._head, "no batch starts there")
            self._advance()
        # The batch that ends at the offset may be among what cannot be read.
        self._open = None

    def finish(self) -> None:
        """Check the entries after the end of the log."""
        self._close()
        while self._head:
            if self._rises(self._head):
                self._wrong("entry", self._head, "the log ends before it")
            self._advance()

    def _advance(self) -> None:
        """Go to the next entry, to none behind the first wrong one of an open segment."""
        self._head = None if self._report.is_over else next(self._entries, None)

    def _rises(self, index_entry: OffsetPosition) -> bool:
        """Return True if an entry rises above the last one; report it otherwise."""
        last = self._last
        if index_entry.offset > last.offset and index_entry.position > last.position:
            self._last = index_entry
            return True
        self._wrong("order", index_entry, f"does not rise above {tuple(last)}")
        return False

    def _close(self) -> None:
        """Report the open entry if no batch ended at its offset."""
        if self._open:
            reason = "no batch from there to the next entry ends at that offset"
            self._wrong("entry", self._open, reason)
            self._open = None

    def _wrong(self, rule: str, index_entry: OffsetPosition, reason: str) -> None:
        """Report an entry that breaks a rule."""
        message = f"offset {index_entry.offset} at position {index_entry.position}: {reason}"
        self._report.wrong(rule, message, position=index_entry.position, offset=index_entry.offset)


class TimeIndexCheck:
    """One time index against the batches of its segment, in order.

    `is_closed` returns whether a broker has closed the segment: only then must every entry be
    right. `is_ended` returns whether the last entry must be there.
    """

    def __init__(
        self, findings: Findings, path: str, index: TimeIndex, *, is_closed: bool, is_ended: bool
    ) -> None:
        """Begin before the first batch; problems go to `findings`."""
        self._report = _Report(findings, path, "timeindex", is_closed=is_closed)
        #: The last entry, if it must have the largest timestamp of the segment; else None.
        self._final = index.last_entry if is_ended else None
        self._entries = iter(index)
        #: The next entry to check, None after the last one.
        self._head = next(self._entries, None)
        #: The last entry that rose above those before.
        self._last = TimestampOffset(NO_TIMESTAMP, index.base_offset - 1)
        #: Largest timestamp of the batches so far, and the last offset of the last batch.
        self._largest = NO_TIMESTAMP
        self._last_offset = index.base_offset - 1
        #: Whether all batches could be read: after damage the largest timestamp is unknown.
        self._is_certain = True
        #: Findings that are reported at the end, if offsets never fell: otherwise entries are not
        #: in the order of the file.
        self._doubts: list[tuple[str, TimestampOffset, str, int]] = []
        #: Whether offsets of batches have risen so far.
        self._is_in_order = True

    def see(self, last_offset: int, max_timestamp_ms: int) -> None:
        """Go on by one good batch."""
        self._is_in_order = self._is_in_order and last_offset > self._last_offset
        self._last_offset = last_offset
        self._largest = max(self._largest, max_timestamp_ms)
        while self._head and self._head.offset <= last_offset:
            if self._rises(self._head) and self._head.timestamp != self._largest:
                self._uncertain(self._head, f"the largest timestamp there is {self._largest}")
            self._advance()

    def see_damage(self) -> None:
        """Go on over bytes that are no good batch: the largest timestamp may be among them."""
        self._is_certain = False

    def finish(self) -> None:
        """Check the remaining entries at the end of the log, and report the doubtful ones.

        Doubtful entries are faults only if the offsets of the log's batches rise.
        """
        while self._head:
            if self._rises(self._head):
                self._uncertain(self._head, "the log ends before it")
            self._advance()
        if self._final and self._final.timestamp < self._largest:
            self._uncertain(self._final, f"nothing behind it, but times go on to {self._largest}")
        if self._is_in_order:
            for rule, index_entry, reason, largest in self._doubts:
                self._wrong(rule, index_entry, reason, largest)

    def _advance(self) -> None:
        """Go to the next entry, to none behind the first wrong one of an open segment."""
        self._head = None if self._report.is_over else next(self._entries, None)

    def _rises(self, index_entry: TimestampOffset) -> bool:
        """Check that an entry lies above the last one in timestamp and offset.

        An entry with the same offset and a later timestamp is kept as a doubt: a batch may explain
        it.
        """
        last = self._last
        if index_entry.offset > last.offset and index_entry.timestamp > last.timestamp:
            self._last = index_entry
            return True
        reason = f"does not rise above {tuple(last)}"
        if index_entry.offset == last.offset and index_entry.timestamp > last.timestamp:
            # Right for a batch that repeats the last one's offset with a later time.
            self._doubts.append(("order", index_entry, reason, self._largest))
        else:
            self._wrong("order", index_entry, reason)
        return False

    def _uncertain(self, index_entry: TimestampOffset, reason: str) -> None:
        """Note a doubt for the end of the check; behind damage no timestamp can be expected."""
        if self._is_certain:
            self._doubts.append(("entry", index_entry, reason, self._largest))

    def _wrong(
        self, rule: str, index_entry: TimestampOffset, reason: str, largest: int | None = None
    ) -> None:
        """Report an entry; `largest` is the timestamp that it should have."""
        message = f"timestamp {index_entry.timestamp} up to offset {index_entry.offset}: {reason}"
        self._report.wrong(
            rule,
            message,
            offset=index_entry.offset,
            expected=self._largest if largest is None else largest,
            got=index_entry.timestamp,
        )


class _Report:
    """Reports wrong entries of one index."""

    def __init__(self, findings: Findings, path: str, name: str, *, is_closed: bool) -> None:
        self._findings = findings
        self._path = path
        self._name = name
        self._is_closed = is_closed
        #: Whether entries from here on are of no interest.
        self.is_over = False

    def wrong(
        self,
        rule: str,
        message: str,
        *,
        position: int | None = None,
        offset: int | None = None,
        expected: object = None,
        got: object = None,
    ) -> None:
        """Report one entry; of an open index the first wrong one is a note and the last word."""
        if self.is_over:
            return
        severity, code = Severity.WARNING, f"{self._name}-{rule}"
        if not self._is_closed:
            self.is_over = True
            severity, code = Severity.NOTE, f"{self._name}-stale"
            message += "; what an open segment's index holds from there on is stale"
        self._findings.add(
            severity,
            code,
            self._path,
            message,
            position=position,
            offset=offset,
            expected=expected,
            got=got,
        )
