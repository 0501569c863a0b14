"""Check the two sparse indexes of a segment against its batches.

```
.index      entry (offset, position): a batch starts at position, and one of those from there to
            the next entry's position ends exactly at offset
.timeindex  entry (timestamp, offset): timestamp is the largest of all batches up to the one that
            contains offset; the last entry of a closed segment has the largest of all
```

The last segment of a log may be open, which its indexes do not show: a broker that keeps them in
memory has written none or only the first of their entries. All entries present must be right.

The index of an open segment may contain bytes after its last entry: a broker that truncates a log
lowers the number of entries in memory only, and leaves the bytes (seen on followers after an
unclean election). It rebuilds such an index after a crash and truncates it at a clean stop.

The offset of an entry may be several batches after its position: on a follower an entry is for a
whole fetch response. Both checks are done during one scan of the log.

Source: L3, L5; the rules of `offset_index.py` and `time_index.py`. Differs: Kafka's dump tool looks
only at the batch at an entry's position, and reports followers' entries as wrong. Where offsets
fall, the time index's entries for them are not checked.
"""

from __future__ import annotations

from engine.inspection.findings import Findings, Severity
from engine.log.offset_index import OffsetIndex, OffsetPosition
from engine.log.time_index import NO_TIMESTAMP, TimeIndex, TimestampOffset


class OffsetIndexCheck:
    """Checks an offset index against the batches of its segment, in order.

    Only if `is_closed`, which says that a broker has closed the segment, must every entry be right.
    """

    def __init__(
        self, findings: Findings, path: str, index: OffsetIndex, *, is_closed: bool
    ) -> None:
        """Problems are added to `findings`."""
        self._report = _Report(findings, path, "index", is_closed=is_closed)
        self._entries = iter(index)
        #: The next entry to check, None after the last one.
        self._head = next(self._entries, None)
        #: The last entry that was above those before it.
        self._last = OffsetPosition(index.base_offset - 1, 0)
        #: An entry at whose position a batch starts, until a batch ends at its offset, which must
        #: happen before the next entry; else None.
        self._open: OffsetPosition | None = None

    def has_interest(self, position: int) -> bool:
        """Return True if `see` must be called for the batch at this position.

        It must if an index entry at or before the position is unchecked, or if an entry waits for
        the batch that ends at its offset. Other batches may be skipped.
        """
        return self._open is not None or (
            self._head is not None and self._head.position <= position
        )

    def see(self, position: int, last_offset: int) -> None:
        """Check the index entries at or before the position of the next valid batch.

        `last_offset` is the last offset of the batch. An entry whose position is not that of a
        batch is reported.
        """
        while self._head and self._head.position <= position:
            if self._rises(self._head):
                self._report_open_entry()
                if self._head.position == position:
                    self._open = self._head
                else:
                    self._wrong("entry", self._head, "no batch starts there")
            self._advance()
        if self._open and last_offset == self._open.offset:
            self._open = None

    def see_damage(self, start: int, end: int) -> None:
        """Pass over entries that point into the damaged bytes [start, end): they may be right.

        Entries before `start` that were not matched by a batch are reported.
        """
        while self._head and self._head.position < end:
            if self._rises(self._head):
                self._report_open_entry()
                if self._head.position < start:
                    self._wrong("entry", self._head, "no batch starts there")
            self._advance()
        # The batch that ends at the offset may be in the damage.
        self._open = None

    def finish(self) -> None:
        """Report all unchecked entries: they point behind the last batch of the segment."""
        self._report_open_entry()
        while self._head:
            if self._rises(self._head):
                self._wrong("entry", self._head, "the log ends before it")
            self._advance()

    def _advance(self) -> None:
        """Read the next index entry into `_head`, None if there is none.

        After the first wrong entry of an open segment's index no entry is read.
        """
        self._head = None if self._report.is_over else next(self._entries, None)

    def _rises(self, index_entry: OffsetPosition) -> bool:
        """Return True if offset and position of an entry are both above the last valid entry's.

        Otherwise the entry is reported.
        """
        last = self._last
        if index_entry.offset > last.offset and index_entry.position > last.position:
            self._last = index_entry
            return True
        self._wrong("order", index_entry, f"does not rise above {tuple(last)}")
        return False

    def _report_open_entry(self) -> None:
        """Report the last matched entry if no batch has ended at its offset.

        The position of an entry must be the start of a batch, and its offset the last offset of
        that batch or of one before the next entry.
        """
        if self._open:
            reason = "no batch from there to the next entry ends at that offset"
            self._wrong("entry", self._open, reason)
            self._open = None

    def _wrong(self, rule: str, index_entry: OffsetPosition, reason: str) -> None:
        """Report an entry; `rule` is the end of the finding's code ("entry", "order")."""
        message = f"offset {index_entry.offset} at position {index_entry.position}: {reason}"
        self._report.wrong(rule, message, position=index_entry.position, offset=index_entry.offset)


class TimeIndexCheck:
    """Checks a time index against the batches of its segment, in order.

    Only if `is_closed`, which says that a broker has closed the segment, must every entry be right.
    Only if `is_ended` must the last entry have the largest timestamp.
    """

    def __init__(
        self, findings: Findings, path: str, index: TimeIndex, *, is_closed: bool, is_ended: bool
    ) -> None:
        """Problems are added to `findings`."""
        self._report = _Report(findings, path, "timeindex", is_closed=is_closed)
        #: The last entry, if it must have the largest timestamp of the segment; else None.
        self._final = index.last_entry if is_ended else None
        self._entries = iter(index)
        #: The next entry to check, None after the last one.
        self._head = next(self._entries, None)
        #: The last entry that was above those before it.
        self._last = TimestampOffset(NO_TIMESTAMP, index.base_offset - 1)
        #: Largest timestamp of the batches so far, and the last offset of the last batch.
        self._largest = NO_TIMESTAMP
        self._last_offset = index.base_offset - 1
        #: False after damage, when the largest timestamp is unknown.
        self._is_certain = True
        #: Findings for the end, which are reported only if offsets never fell: otherwise entries
        #: are not in the order of the file.
        self._doubts: list[tuple[str, TimestampOffset, str, int]] = []
        #: True while offsets of batches rise.
        self._is_in_order = True

    def see(self, last_offset: int, max_timestamp_ms: int) -> None:
        """Check the time index entries up to the last offset of the next valid batch.

        The timestamp of an entry must be the largest of all batches up to the one that contains its
        offset.
        """
        self._is_in_order = self._is_in_order and last_offset > self._last_offset
        self._last_offset = last_offset
        self._largest = max(self._largest, max_timestamp_ms)
        while self._head and self._head.offset <= last_offset:
            if self._rises(self._head) and self._head.timestamp != self._largest:
                self._note_doubt(self._head, f"the largest timestamp there is {self._largest}")
            self._advance()

    def see_damage(self) -> None:
        """Note damaged bytes: the largest timestamp so far is unknown from here on."""
        self._is_certain = False

    def finish(self) -> None:
        """Check the entries after the end of the log, and report the doubtful ones.

        Doubtful entries are reported only if the offsets of the batches rise.
        """
        while self._head:
            if self._rises(self._head):
                self._note_doubt(self._head, "the log ends before it")
            self._advance()
        if self._final and self._final.timestamp < self._largest:
            self._note_doubt(
                self._final, f"nothing after it, but times continue to {self._largest}"
            )
        if self._is_in_order:
            for rule, index_entry, reason, largest in self._doubts:
                self._wrong(rule, index_entry, reason, largest)

    def _advance(self) -> None:
        """Read the next index entry into `_head`, None if there is none.

        After the first wrong entry of an open segment's index no entry is read.
        """
        self._head = None if self._report.is_over else next(self._entries, None)

    def _rises(self, index_entry: TimestampOffset) -> bool:
        """Return True if timestamp and offset of an entry are both above the last valid entry's.

        Otherwise it is reported; with the same offset and a later timestamp it is only doubtful,
        since a batch may explain it.
        """
        last = self._last
        if index_entry.offset > last.offset and index_entry.timestamp > last.timestamp:
            self._last = index_entry
            return True
        reason = f"does not rise above {tuple(last)}"
        if index_entry.offset == last.offset and index_entry.timestamp > last.timestamp:
            # It is right for a batch that repeats the last offset with a later timestamp.
            self._doubts.append(("order", index_entry, reason, self._largest))
        else:
            self._wrong("order", index_entry, reason)
        return False

    def _note_doubt(self, index_entry: TimestampOffset, reason: str) -> None:
        """Keep a doubtful entry for `finish`, which reports it if the offsets of the batches rise.

        After damage nothing is kept, as the largest timestamp is then unknown.
        """
        if self._is_certain:
            self._doubts.append(("entry", index_entry, reason, self._largest))

    def _wrong(
        self, rule: str, index_entry: TimestampOffset, reason: str, largest: int | None = None
    ) -> None:
        """Report an entry; `rule` is the end of the finding's code ("entry", "order").

        `largest` is the timestamp that the entry should have; None means the largest one so far.
        """
        message = f"timestamp {index_entry.timestamp} up to offset {index_entry.offset}: {reason}"
        self._report.wrong(
            rule,
            message,
            offset=index_entry.offset,
            expected=self._largest if largest is None else largest,
            got=index_entry.timestamp,
        )


class _Report:
    """Reports wrong entries of an index."""

    def __init__(self, findings: Findings, path: str, name: str, *, is_closed: bool) -> None:
        self._findings = findings
        self._path = path
        self._name = name
        self._is_closed = is_closed
        #: True if all further entries are ignored.
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
        """Report a wrong index entry, with the code "<index name>-<rule>".

        In an open segment's index only the first wrong entry is reported, as a note: a broker keeps
        the valid entries in memory, and the file may hold stale bytes behind them.
        """
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
