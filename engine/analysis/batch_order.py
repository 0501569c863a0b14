"""Detect batches with a valid CRC at a wrong place; the CRC omits base offset and leader epoch.

`expected` is the offset after the last good batch, `next` the base offset of the following batch in
the segment, or of the next segment. A batch of n offsets is

```
base = expected                          good
next = expected + n, base ≠ expected     `bad_offset`: its neighbours leave room for n offsets only
base > expected, next ≥ base + n         good, after a gap
base < expected, next = base + n         good, the log repeats offsets: `overlap`
no next batch, damage before             good, after a gap
otherwise                                `bad_offset`, and so is the next batch, unless the batch
                                         after it continues it
```

Readers do not get a batch with `bad_offset`. The last batch of a log has no next batch, and the
last segment is never compacted: a gap without damage before the last batch is `bad_offset` too,
unless the log is compacted in other places, or has other gaps, and its checkpoints are above.

A leader epoch is `bad_epoch` if it is below the epoch before, above the epoch of the next batch, or
differs from the epoch checkpoint where epochs change. Readers get these records nevertheless.

Offsets that are missing after damage are `lost`; other missing offsets are a `gap`. Compaction
leaves gaps, so a reader collects them only until it sees a sign of compaction.
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
    """The offsets that a split covers; `first_offset`, `next_offset` are None without a good batch.

    `after_damage` is True if damaged bytes precede the first good batch, `ends_in_damage` if
    damaged bytes follow the last. `reached_offset` and `indexed_offset` are those of the split.
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
    """Return which offsets of a split were read, if it has no damage: [first_offset, next_offset).

    Both are None for a split without batches.
    """
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
    """Base offset and leader epoch of the batch after the checked one; None where unknown."""

    base_offset: int | None
    leader_epoch: int | None


class BatchOrder:
    """Checks the offsets and leader epochs of one split's batches, in order."""

    def __init__(self, file: File, split: Split, note: Note) -> None:
        """Create a check of the offsets and epochs of a split's batches, in their order.

        `note` is called with each problem.
        """
        self._file = file
        self._split = split
        self._note = note
        #: Base offset that the next batch should have. None at the start of a split that starts
        #: inside a segment, where it is unknown.
        self._expected = split.base_offset if split.start == 0 else None
        #: Leader epoch of the last batch; None before the first.
        self._epoch: int | None = None
        #: Position of the last accepted batch.
        self._last_position = split.start
        #: Whether damaged bytes precede the next batch.
        self._after_damage = False
        #: First offset of the accepted batches, and the offset after the last. None without one.
        self._first_offset: int | None = None
        self._next_offset: int | None = None
        #: Whether damaged bytes precede the first batch of the split.
        self._is_first_after_damage = False
        #: Whether the topic is compacted by its configuration, or an accepted batch has shown it.
        self.is_compacted = split.is_compacted
        #: Number of gaps that were noted, at most FINDINGS_OF_A_KIND_MAX.
        self._gap_count = 0
        #: Whether the batch before was refused because the next batch's base offset contradicts it.
        self._is_in_conflict = False
        #: Position of the last wrong leader epoch that was noted, to note it once. None before.
        self._noted_epoch_at: int | None = None

    @property
    def span(self) -> OffsetSpan:
        """Return which offsets of the split were accepted up to now, and where damage was met."""
        return span_of(self._split, self._first_offset, self._next_offset)._replace(
            after_damage=self._is_first_after_damage,
            ends_in_damage=self._after_damage,
            is_compacted=self.is_compacted,
        )

    @property
    def next_offset(self) -> int:
        """Return the offset after the last good batch, at first the segment's base offset."""
        return self._split.base_offset if self._next_offset is None else self._next_offset

    def see_damage(self) -> None:
        """Note that damaged bytes precede the next batch, which explain missing offsets."""
        self._after_damage = True

    def accept(self, position: int, batch: RecordBatch) -> bool:
        """Check a batch with a valid CRC; return True if its offsets can be right, and accept it.

        Notes a problem for a batch that is refused, for a gap, an overlap and a wrong leader epoch.
        """
        try:
            base_offset = batch.base_offset
        except CorruptRecord as error:
            # The base offset of a compressed batch of magic 0 or 1 is inside the wrapper.
            self._note(position, batch.size_bytes, "bad_records", str(error))
            self.see_damage()
            return False
        is_next = self._expected == base_offset and not self._is_in_conflict
        if is_next and (batch.leader_epoch == self._epoch or batch.magic < MAGIC):
            self._accept_batch(position, batch, base_offset)
            return True
        following = self._read_following_header(position + batch.size_bytes)
        if not self._fits(position, batch, base_offset, following.base_offset):
            self.see_damage()
            return False
        self._check_epoch(position, batch, base_offset, following.leader_epoch)
        self._accept_batch(position, batch, base_offset)
        return True

    @property
    def run_start(self) -> tuple[int, int] | None:
        """Return base offset and leader epoch that a run's first batch must have.

        A run is a series of batches that compiled code checks. None means that the next batch must
        be checked by `accept` instead.
        """
        if self._expected is None or self._epoch is None or self._is_in_conflict:
            return None
        return self._expected, self._epoch

    def accept_run(self, run: BatchRun, last_position: int) -> None:
        """Accept a run of batches that starts at `run_start` and has no faults.

        Its last batch is at byte `last_position`.
        """
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
        """Return True if a batch's base offset can be right, compared with its neighbours.

        Notes the offsets that it skips or repeats, or why it is refused. `following` is the base
        offset of the next batch, None if unknown.
        """
        expected = self._expected
        was_in_conflict, self._is_in_conflict = self._is_in_conflict, False
        if base_offset < 0 or batch.last_offset < base_offset:
            return self._refuse(position, batch, base_offset, "no batch has it")
        if following is None and self._is_unconfirmed_jump(batch, base_offset):
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
            # The neighbours fit together without this base offset: it is wrong, not theirs.
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
            self._note_missing(position, expected, base_offset)
        else:
            message = f"base offset {base_offset} was there before; the next is {expected}"
            self._note(position, batch.size_bytes, "overlap", message)
        return True

    def _is_unconfirmed_jump(self, batch: RecordBatch, base_offset: int) -> bool:
        """Return True if the log's last batch is not at the expected offset, unexplained.

        A jump forward is explained by damage before it, and by gaps or compaction in a log whose
        checkpoints are above the batch.
        """
        if self._after_damage or self._expected in (None, base_offset):
            return False
        reached = self._split.reached_offset
        may_be_known = reached is None or base_offset < reached
        has_gap_before = self._expected is not None and base_offset > self._expected
        # Gaps between two good batches are a sign of compaction, even if no other sign exists.
        has_gaps = self.is_compacted or self._gap_count > 0
        return not (has_gaps and may_be_known and has_gap_before)

    def _refuse(self, position: int, batch: RecordBatch, base_offset: int, reason: str) -> bool:
        """Note that a batch's base offset is wrong; return False, which the caller returns."""
        message = f"base offset {base_offset} cannot be right: {reason}"
        self._note(position, batch.size_bytes, "bad_offset", message)
        return False

    def _note_missing(self, position: int, expected: int, base_offset: int) -> None:
        """Note that the offsets [expected, base_offset) are missing.

        After damage they are `lost`, else a `gap`. A gap is not noted in a compacted log.
        """
        missing = missing_offsets(expected, base_offset, is_compacted=self.is_compacted)
        if self._after_damage:
            self._note(position, 0, "lost", f"{missing}, lost to the damage before")
        elif not self.is_compacted and self._gap_count < FINDINGS_OF_A_KIND_MAX:
            self._gap_count += 1
            self._note(position, 0, "gap", missing)

    def _check_epoch(
        self, position: int, batch: RecordBatch, base_offset: int, following: int | None
    ) -> None:
        """Note a wrong leader epoch of a batch, or of the batches before it.

        `following` is the epoch of the next batch. A right epoch becomes the one that later batches
        are compared with.
        """
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
        """Note a wrong leader epoch, once for each position."""
        if position != self._noted_epoch_at:
            message = f"leader epoch {epoch} cannot be right: {reason}"
            self._note(position, 0, "bad_epoch", message)
        self._noted_epoch_at = position

    def _stored_epoch(self, offset: int) -> EpochStart | None:
        """Return the entry of leader-epoch-checkpoint that covers an offset, None without one."""
        stored = [EpochStart(*epoch) for epoch in self._split.epochs if epoch[1] <= offset]
        return max(stored, key=lambda epoch: epoch.start_offset, default=None)

    def _read_following_header(self, position: int) -> _Following:
        """Read base offset and leader epoch of the batch header at byte `position`.

        Without a header there, return the base offset of the next segment and None.
        """
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
    """Return why a leader epoch is wrong, None if it can be right.

    `before` and `following` are the epochs of the neighbours, `stored` is the checkpoint's entry.
    """
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
    """Return the message for missing offsets from `first` to before `end`.

    In a compacted log only some are missing.
    """
    some = "some of " if is_compacted else ""
    return f"{some}offsets {first} to {end - 1} are missing"
