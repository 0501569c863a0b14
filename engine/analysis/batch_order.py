"""Detect batches with a right CRC, which omits base offset and leader epoch, at a wrong place.

`expected` is the offset after the last good batch, `next` the base offset of what follows in the
segment, or the name of the next segment; a batch of n offsets is

```
base = expected                          right
next = expected + n, base ≠ expected     `bad_offset`: its neighbours leave room for it alone
base > expected, next ≥ base + n         a gap before it
base < expected, next = base + n         the log goes back: `overlap`
nothing follows, after damage            a gap before it
nothing else fits                        `bad_offset`, and so is the next batch, unless what
                                         follows that one continues it
```

A batch with `bad_offset` is not given to readers. The last batch of a log has nothing behind it,
and the last segment is not compacted: there a gap without damage is `bad_offset` too, unless the
log is compacted elsewhere, or has other gaps, and its checkpoints go as far.

A leader epoch below the one before, above the one behind, or another than the epoch checkpoint has
where epochs change is `bad_epoch`; the records are right all the same.

Offsets that damage took are `lost`, other ones a `gap`, which compaction leaves rightly: a reader
collects those only while it has seen no sign of that.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from engine.analysis.splits import Split
from engine.errors import CorruptRecord
from engine.host.ports import File
from engine.limits import FINDINGS_OF_A_KIND_MAX
from engine.log.directory.leader_epoch_checkpoint import EpochStart
from engine.native.batch_runs import BatchRun
from engine.records.batch_header import (
    HEADER_BYTES,
    LEADER_EPOCH_AT,
    MAGIC,
    MAGIC_AT,
    PROLOGUE_BYTES,
    read_offset_and_length,
)
from engine.records.view import RecordBatch, batch_at

Note = Callable[[int, int, str, str], None]


class OffsetSpan(NamedTuple):
    """The offsets that a split covers; they are None without a good batch.

    `after_damage` returns whether damage comes before its first good batch, `ends_in_damage`
    whether it comes behind its last. `reached_offset` and `indexed_offset`
    are those of the split.
    """

    topic: str
    partition: int
    path: str
    base_offset: int
    start: int
    first_offset: int | None
    next_offset: int | None
    after_damage: bool
    ends_in_damage: bool
    is_compacted: bool
    reached_offset: int | None = None
    indexed_offset: int | None = None


def span_of(split: Split, first_offset: int | None, next_offset: int | None) -> OffsetSpan:
    """Return the span of a split without damage."""
    return OffsetSpan(
        split.topic,
        split.partition,
        split.path,
        split.base_offset,
        split.start,
        first_offset,
        next_offset,
        after_damage=False,
        ends_in_damage=False,
        is_compacted=split.is_compacted,
        reached_offset=split.reached_offset,
        indexed_offset=split.indexed_offset,
    )


class _Following(NamedTuple):
    """Base offset and epoch of the batch behind another one; None where unknown."""

    base_offset: int | None
    leader_epoch: int | None


class BatchOrder:
    """The rules above, over the batches of one split in order."""

    def __init__(self, file: File, split: Split, note: Note) -> None:
        """Begin before the first batch of the split; `note` gets each problem."""
        self._file = file
        self._split = split
        self._note = note
        #: Base offset that should come next. None at first in a split inside a segment, where it is
        #: unknown.
        self._expected = split.base_offset if split.start == 0 else None
        #: Leader epoch of the last batch; None before the first.
        self._epoch: int | None = None
        #: Position of the last accepted batch.
        self._last_position = split.start
        #: Whether damaged bytes precede the next batch.
        self._after_damage = False
        #: First offset of the split, and the offset after its last one. None without a batch.
        self._first_offset: int | None = None
        self._next_offset: int | None = None
        #: Whether damaged bytes precede the first batch of the split.
        self._is_first_after_damage = False
        #: Whether the topic is known to be compacted, or a batch so far has shown it.
        self.is_compacted = split.is_compacted
        #: Gaps that were noted; their number is bounded.
        self._gap_count = 0
        #: Whether the batch before was refused because of the base offset of this one.
        self._is_in_conflict = False
        #: Position of the last wrong leader epoch that was noted: it is noted once. None before.
        self._noted_epoch_at: int | None = None

    @property
    def span(self) -> OffsetSpan:
        """Return which offsets were seen so far."""
        return span_of(self._split, self._first_offset, self._next_offset)._replace(
            after_damage=self._is_first_after_damage,
            ends_in_damage=self._after_damage,
            is_compacted=self.is_compacted,
        )

    @property
    def next_offset(self) -> int:
        """Return the offset after the last good batch, or where the segment starts."""
        return self._split.base_offset if self._next_offset is None else self._next_offset

    def see_damage(self) -> None:
        """Note bytes that are no good batch."""
        self._after_damage = True

    def accepts(self, position: int, batch: RecordBatch) -> bool:
        """Return True if a batch with the right CRC is at its place; note a problem otherwise."""
        try:
            base_offset = batch.base_offset
        except CorruptRecord as error:
            # A wrapper of magic 0 or 1 is opened for its first offset.
            self._note(position, batch.size_bytes, "bad_records", str(error))
            self.see_damage()
            return False
        is_next = self._expected == base_offset and not self._is_in_conflict
        if is_next and (batch.leader_epoch == self._epoch or batch.magic < MAGIC):
            self._accept_batch(position, batch, base_offset)
            return True
        following = self._following(position + batch.size_bytes)
        if not self._fits(position, batch, base_offset, following.base_offset):
            self.see_damage()
            return False
        self._check_epoch(position, batch, base_offset, following.leader_epoch)
        self._accept_batch(position, batch, base_offset)
        return True

    @property
    def run_start(self) -> tuple[int, int] | None:
        """Return the base offset and the leader epoch by which the next batch is right as it is.

        None if that one must be looked at.
        """
        if self._expected is None or self._epoch is None or self._is_in_conflict:
            return None
        return self._expected, self._epoch

    def accept_run(self, run: BatchRun, last_position: int) -> None:
        """Accept batches with the right CRCs that begin at `run_start`, the last at a position."""
        if self._first_offset is None:
            self._first_offset = self._expected
            self._is_first_after_damage = self._after_damage
        self._next_offset = self._expected = run.next_offset
        self._last_position = last_position
        self._after_damage = False
        self.is_compacted = self.is_compacted or run.is_compacted

    def _accept_batch(self, position: int, batch: RecordBatch, base_offset: int) -> None:
        """Accept a batch: the next one is expected at this batch's next offset.

        A delete horizon, or fewer records than offsets, shows that the log is compacted.
        """
        if self._first_offset is None:
            self._first_offset = base_offset
            self._is_first_after_damage = self._after_damage
        self._next_offset = self._expected = batch.next_offset
        self._last_position = position
        self._after_damage = False
        count = batch.record_count
        if batch.has_delete_horizon or (
            count is not None and count <= batch.last_offset - base_offset
        ):
            self.is_compacted = True

    def _fits(
        self, position: int, batch: RecordBatch, base_offset: int, following: int | None
    ) -> bool:
        """Return True if a base offset can be right; note the offsets that it skips or repeats."""
        expected = self._expected
        was_in_conflict, self._is_in_conflict = self._is_in_conflict, False
        if base_offset < 0 or batch.last_offset < base_offset:
            return self._refuse(position, batch, base_offset, "no batch has it")
        if following is None and self._is_lonely(batch, base_offset):
            return self._refuse(position, batch, base_offset, f"{expected} was expected")
        if expected is None:
            if following is not None and following < batch.next_offset:
                self._is_in_conflict = True
                return self._refuse(position, batch, base_offset, f"{following} follows it")
            return True
        if was_in_conflict and following != batch.next_offset:
            return self._refuse(position, batch, base_offset, "it contradicts the batch before")
        if base_offset == expected:
            return True
        if following is not None:
            span = batch.next_offset - base_offset
            if following == expected + span:
                reason = f"{expected} was expected, and {following} follows it"
                return self._refuse(position, batch, base_offset, reason)
            if following < batch.next_offset or (
                base_offset < expected and following != batch.next_offset
            ):
                self._is_in_conflict = True
                reason = f"{expected} was expected, and {following} follows it"
                return self._refuse(position, batch, base_offset, reason)
        if base_offset > expected:
            self._miss(position, expected, base_offset)
        else:
            message = f"base offset {base_offset} was there before; the next is {expected}"
            self._note(position, batch.size_bytes, "overlap", message)
        return True

    def _is_lonely(self, batch: RecordBatch, base_offset: int) -> bool:
        """Return whether nothing confirms the last batch of a log, after a gap or an overlap."""
        if self._after_damage or self._expected in (None, base_offset):
            return False
        reached = self._split.reached_offset
        may_be_known = reached is None or base_offset < reached
        has_gap_before = self._expected is not None and base_offset > self._expected
        # Gaps whose both sides hold are what compaction leaves, also where nothing else shows it.
        has_gaps = self.is_compacted or self._gap_count > 0
        return not (has_gaps and may_be_known and has_gap_before)

    def _refuse(self, position: int, batch: RecordBatch, base_offset: int, reason: str) -> bool:
        """Note a batch whose base offset must be wrong; returns False, the caller's result."""
        message = f"base offset {base_offset} cannot be right: {reason}"
        self._note(position, batch.size_bytes, "bad_offset", message)
        return False

    def _miss(self, position: int, expected: int, base_offset: int) -> None:
        """Note offsets that are missing: lost to damage, or a gap unless the log is compacted."""
        missing = missing_offsets(expected, base_offset, is_compacted=self.is_compacted)
        if self._after_damage:
            self._note(position, 0, "lost", f"{missing}, lost to the damage before")
        elif not self.is_compacted and self._gap_count < FINDINGS_OF_A_KIND_MAX:
            self._gap_count += 1
            self._note(position, 0, "gap", missing)

    def _check_epoch(
        self, position: int, batch: RecordBatch, base_offset: int, following: int | None
    ) -> None:
        """Note a leader epoch that cannot be right; compare later ones with the last good epoch."""
        epoch, before = batch.leader_epoch, self._epoch
        if epoch == before or batch.magic < MAGIC:
            return
        stored = self._stored_epoch(base_offset)
        if (reason := _epoch_problem(epoch, before, following, stored)) is not None:
            self._note_epoch(position, epoch, reason)
            return
        if stored is not None and stored.start_offset < (self._next_offset or 0):
            reason = f"{epoch} began at {stored.start_offset} by the epoch checkpoint"
            self._note_epoch(self._last_position, before, reason)
        self._epoch = epoch

    def _note_epoch(self, position: int, epoch: int | None, reason: str) -> None:
        """Note a wrong leader epoch; several in a row at one position count once."""
        if position != self._noted_epoch_at:
            message = f"leader epoch {epoch} cannot be right: {reason}"
            self._note(position, 0, "bad_epoch", message)
        self._noted_epoch_at = position

    def _stored_epoch(self, offset: int) -> EpochStart | None:
        """Return the epoch of an offset by the checkpoint, None if that says nothing of it."""
        stored = [EpochStart(*epoch) for epoch in self._split.epochs if epoch[1] <= offset]
        return max(stored, key=lambda epoch: epoch.start_offset, default=None)

    def _following(self, position: int) -> _Following:
        """Return base offset and epoch of the next batch's header, or the next segment's base."""
        end = self._file.size_bytes() if not self._split.is_last else self._split.end
        header = self._file.read_at(position, max(min(HEADER_BYTES, end - position), 0))
        if len(header) < PROLOGUE_BYTES or not any(header):
            return _Following(self._split.next_base, None)
        base_offset, length = read_offset_and_length(header, 0)
        if header[MAGIC_AT] >= MAGIC:
            epoch = int.from_bytes(
                header[LEADER_EPOCH_AT : LEADER_EPOCH_AT + 4], "big", signed=True
            )
            return _Following(base_offset, epoch)
        with suppress(CorruptRecord):
            whole = memoryview(self._file.read_at(position, min(length + 12, end - position)))
            return _Following(batch_at(whole, 0).base_offset, None)
        return _Following(base_offset, None)


def _epoch_problem(
    epoch: int, before: int | None, following: int | None, stored: EpochStart | None
) -> str | None:
    """Return why a leader epoch cannot be right between its neighbours, None if it can."""
    if epoch < -1 or (before is not None and epoch < before):
        return f"{before} came before it"
    if stored is not None:
        if stored.epoch == epoch:
            return None
        return f"the epoch checkpoint has {stored.epoch} from offset {stored.start_offset} on"
    if following is not None and 0 <= following < epoch:
        return f"{following} follows it"
    return None


def missing_offsets(first: int, end: int, *, is_compacted: bool) -> str:
    """Return the text that the offsets [first, end) are missing."""
    some = "some of " if is_compacted else ""
    return f"{some}offsets {first} to {end - 1} are missing"
