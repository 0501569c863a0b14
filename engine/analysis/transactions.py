"""Find the aborted transactions of a partition, even if damage may have taken a marker.

A piece is the records of one producer in a transaction without damage between them. It ends at a
marker:

```
piece … COMMIT               visible to readers
piece … ABORT                hidden
piece … end of the log       open: readers get no record from its first offset on
piece … damage … ?           the marker may be in the damage: the transaction index decides
```

The index of a segment is trusted if it agrees with all markers that were read, and all its other
entries are at damaged places. Then

```
an entry covers the piece              hidden
no entry does, a marker follows        visible: an abort would have an entry that covers the piece
no entry does, no marker follows       undecided: committed in the damage, or open
```

If the index is not trusted or missing (a broker creates it at the first abort), the piece is
undecided: its records are hidden and reported. Damage that is a batch with a right length, but not
the size of a marker, contained no marker.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from engine.errors import CorruptRecord
from engine.log.txn_index import AbortedTransaction
from engine.records.batch_header import MAGIC
from engine.records.control import ControlType, control_type
from engine.records.view import RecordBatch


class Hidden(NamedTuple):
    """Offsets [first, last] of one producer's transactional records that readers do not get."""

    producer_id: int
    first_offset: int
    last_offset: int


class Undecided(NamedTuple):
    """A hidden piece whose transaction's end is unknown; `damage` may have contained the marker."""

    piece: Hidden
    damage: Damage


class Damage(NamedTuple):
    """A place that may have contained markers at offsets [start_offset, end_offset).

    `end_offset` is None if no good batch follows in the log.
    """

    segment: int
    position: int
    start_offset: int
    end_offset: int | None


class Outcome(NamedTuple):
    """Offsets hidden from read_committed readers; `stable_offset` is the last stable offset.

    `stable_offset` is None if no transaction is open. `has_doubts` is True if damage or missing
    offsets may have contained the end of a transaction.
    """

    hidden: tuple[Hidden, ...]
    undecided: tuple[Undecided, ...]
    stable_offset: int | None
    has_doubts: bool


class _Doubt(NamedTuple):
    """A piece of an open transaction, and the damages after it."""

    piece: Hidden
    damages: list[Damage]


class _Abort(NamedTuple):
    """An ABORT marker, and the first offsets of the pieces that it may end."""

    producer_id: int
    offset: int
    starts: tuple[int, ...]


class PartitionTransactions:
    """Collects the pieces of a partition from its batches and damages, in order."""

    def __init__(self) -> None:
        """Prepare to follow a partition's transactions; `enter` starts each segment."""
        #: The open piece of each producer, by producer id.
        self._open: dict[int, Hidden] = {}
        #: Pieces whose marker may have been in damaged bytes, by producer id.
        self._doubts: dict[int, list[_Doubt]] = {}
        #: Pieces of transactions that an ABORT marker ended.
        self._hidden: list[Hidden] = []
        #: Doubts, and whether a later marker of their producer follows (False: up to the end none).
        self._settled: list[tuple[_Doubt, bool]] = []
        #: Damages with known end offsets; below, damages that no good batch has followed yet.
        self._damages: list[Damage] = []
        self._unbounded: list[Damage] = []
        #: Offset after the last good batch.
        self._next_offset = 0
        #: Number of the current segment, −1 before the first, and its base offset.
        self._segment = -1
        self._segment_base = 0
        #: Whether the offsets missing before the next batch are known to be of data: no marker was
        #: among them.
        self._is_gap_known = False
        #: ABORT markers of each segment; its transaction index is compared with them.
        self._aborts: list[list[_Abort]] = []
        #: Transaction index of each segment; None if it is absent or damaged.
        self._indexes: list[Sequence[AbortedTransaction] | None] = []

    def enter(self, base_offset: int, index: Sequence[AbortedTransaction] | None) -> None:
        """Begin the next segment of the partition.

        `index` is its transaction index, None if missing or unreadable.
        """
        self._segment += 1
        self._segment_base = base_offset
        self._indexes.append(index)
        self._aborts.append([])

    def see_damage(self, position: int, *, may_be_marker: bool) -> None:
        """Note a damaged place in this segment, and whether it may have contained a marker."""
        if not may_be_marker:
            # The offsets that are missing after it belong to data batches.
            self._is_gap_known = True
            return
        start_offset = max(self._next_offset, self._segment_base)
        self._unbounded.append(Damage(self._segment, position, start_offset, None))
        self._note_doubt_of_all(self._unbounded[-1])

    def see(self, position: int, batch: RecordBatch, *, is_compacted: bool) -> None:
        """Note one good batch; offsets missing before it are damage unless the log is compacted."""
        if self._unbounded:
            self._bound(batch.base_offset)
        elif not (is_compacted or self._is_gap_known) and batch.magic >= MAGIC:
            self._note_gap(position, batch.base_offset)
        self._is_gap_known = False
        self._next_offset = batch.next_offset
        if batch.producer_id < 0:
            return
        if not batch.is_control:
            if batch.is_transactional:
                self._add(batch.producer_id, batch.base_offset, batch.last_offset)
            return
        try:
            record = next(iter(batch.records()), None)
            kind = ControlType.UNKNOWN if record is None else control_type(record)
        except CorruptRecord:
            damage = Damage(self._segment, position, batch.base_offset, batch.next_offset)
            self._damages.append(damage)
            self._note_doubt(batch.producer_id, damage)
            return
        if kind in (ControlType.ABORT, ControlType.COMMIT):
            self._end_transaction(
                batch.producer_id, batch.base_offset, is_abort=kind is ControlType.ABORT
            )

    def finish(self) -> Outcome:
        """Decide which offsets of transactions read_committed hides, after the last batch.

        The outcome also has those in doubt, because their marker may be in damaged bytes, and the
        last stable offset. A transaction in doubt is hidden if a trusted transaction index lists
        its abort. It is hidden and undecided if such an index is missing, or if no later
        marker of its producer follows; otherwise it counts as committed. To be called once.
        """
        self._damages += self._unbounded
        for doubts in self._doubts.values():
            self._settled += [(doubt, False) for doubt in doubts]
        trusted = [self._trusted_index(number) for number in range(len(self._indexes))]
        hidden, undecided = list(self._hidden), []
        for doubt, is_followed in self._settled:
            # The marker's index entry would be in the index of one of these segments.
            indexes = [trusted[damage.segment] for damage in doubt.damages]
            if any(_covers(index or (), doubt.piece) for index in trusted):
                hidden.append(doubt.piece)
            elif None in indexes or not is_followed:
                hidden.append(doubt.piece)
                undecided.append(Undecided(doubt.piece, doubt.damages[0]))
        hidden.sort(key=lambda piece: piece.last_offset)
        stable = min((piece.first_offset for piece in self._open.values()), default=None)
        return Outcome(tuple(hidden), tuple(undecided), stable, bool(self._settled))

    def _add(self, producer_id: int, first_offset: int, last_offset: int) -> None:
        """Add a batch to the open transaction of its producer, or begin one with it."""
        piece = self._open.get(producer_id)
        first_offset = first_offset if piece is None else piece.first_offset
        self._open[producer_id] = Hidden(producer_id, first_offset, last_offset)

    def _note_doubt(self, producer_id: int, damage: Damage) -> None:
        """Note that damage may have contained the marker of a producer's open transaction."""
        doubts = self._doubts.setdefault(producer_id, [])
        piece = self._open.pop(producer_id, None)
        if piece is not None:
            doubts.append(_Doubt(piece, []))
        for doubt in doubts:
            if damage not in doubt.damages:
                doubt.damages.append(damage)

    def _end_transaction(self, producer_id: int, offset: int, *, is_abort: bool) -> None:
        """End a producer's transaction at the marker with this offset.

        An aborted one is hidden. Doubts about earlier transactions of the producer are settled in
        `finish`.
        """
        piece = self._open.pop(producer_id, None)
        doubts = self._doubts.pop(producer_id, [])
        self._settled += [(doubt, True) for doubt in doubts]
        if not is_abort:
            return
        pieces = [*(doubt.piece for doubt in doubts), *([piece] if piece else [])]
        starts = tuple(piece.first_offset for piece in pieces)
        self._aborts[-1].append(_Abort(producer_id, offset, starts))
        if piece is not None:
            self._hidden.append(piece._replace(last_offset=offset))

    def _note_gap(self, position: int, base_offset: int) -> None:
        """Note offsets missing before a good batch as damage that may have contained a marker."""
        if not self._next_offset or base_offset <= self._next_offset:
            return
        # At the start of a segment the offsets are missing at the end of the segment before.
        is_before = base_offset == self._segment_base and self._segment > 0
        segment = self._segment - is_before
        damage = Damage(segment, 0 if is_before else position, self._next_offset, base_offset)
        self._damages.append(damage)
        self._note_doubt_of_all(damage)

    def _note_doubt_of_all(self, damage: Damage) -> None:
        """Note for all open or doubted pieces that the damage may have contained their marker."""
        for producer_id in {**self._open, **self._doubts}:
            self._note_doubt(producer_id, damage)

    def _bound(self, base_offset: int) -> None:
        """Set the end of the damages before a good batch to the batch's base offset."""
        self._damages += [d._replace(end_offset=base_offset) for d in self._unbounded]
        self._unbounded = []

    def _trusted_index(self, segment: int) -> Sequence[AbortedTransaction] | None:
        """Return a segment's transaction index if it agrees with all markers read, else None.

        Only such an index decides about transactions whose marker is damaged.
        """
        index = self._indexes[segment]
        if index is None:
            return None
        entries = {entry.last_offset: entry for entry in index}
        for abort in self._aborts[segment]:
            entry = entries.pop(abort.offset, None)
            if entry is None:
                # A marker without data before it has no index entry.
                if abort.starts:
                    return None
            elif entry.producer_id != abort.producer_id or not self._may_start(entry, abort):
                return None
        for offset in entries:
            if not any(_is_in(offset, damage) for damage in self._damages):
                return None
        return index

    def _may_start(self, entry: AbortedTransaction, abort: _Abort) -> bool:
        """Return True if an index entry can describe an aborted transaction that was read.

        Its first offset is then that of a part of the transaction, or in damaged bytes.
        """
        first = entry.first_offset
        return (
            not abort.starts
            or first in abort.starts
            or any(_is_in(first, damage) for damage in self._damages)
        )


def _is_in(offset: int, damage: Damage) -> bool:
    """Return True if an offset may have been in damaged bytes."""
    end = damage.end_offset
    return damage.start_offset <= offset and (end is None or offset < end)


def _covers(index: Sequence[AbortedTransaction], piece: Hidden) -> bool:
    """Return True if an entry of a transaction index contains the part of a transaction."""
    return any(
        entry.producer_id == piece.producer_id
        and entry.first_offset <= piece.first_offset
        and piece.last_offset <= entry.last_offset
        for entry in index
    )
