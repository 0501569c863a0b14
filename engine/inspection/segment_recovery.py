"""Read a segment's .log once: find the end of its good part, and rebuild its index entries.

```
bytes 0 … good_bytes   batches that a broker's recovery keeps
good_bytes … end       the first batch that it does not keep, and everything after it
```

If an index entry is due that is not above the last one, SegmentEmptied is raised: a broker cuts the
segment at `cut_at`, which is almost always its beginning.

Source: Kafka's LogSegment.recover; the rules are in `repair_plan.py`.
"""

from __future__ import annotations

from typing import NamedTuple

from engine.errors import CorruptRecord, EngineError
from engine.host.ports import Files
from engine.inspection.check_epochs import EpochCheck
from engine.inspection.check_indexes import OffsetIndexCheck, TimeIndexCheck
from engine.inspection.findings import Findings
from engine.log.batch_scan import scan_batches
from engine.log.index_builder import IndexBuilder
from engine.log.offset_index import IndexOrderBroken, OffsetIndex
from engine.log.time_index import TimeIndex
from engine.log.transactions_seen import TransactionsSeen
from engine.log.txn_index import AbortedTransaction, TransactionIndex
from engine.records.batch_header import MAGIC
from engine.records.control import ControlType
from engine.records.view import RecordBatch

_INT_MAX = (1 << 31) - 1


class SegmentIndexes(NamedTuple):
    """The present indexes of a segment, None for each that is missing or unreadable."""

    offset_index: OffsetIndex | None
    time_index: TimeIndex | None
    txn_index: TransactionIndex | None


class SegmentRecovery(NamedTuple):
    """The result of reading a .log.

    `next_offset` is the offset after the last good batch, the segment's base without one. `damage`
    is what is wrong with the rest, None if the whole file is good. `offset_index_fits` and
    `time_index_fits` tell whether the present indexes are right, even if a rebuild gives other
    entries.
    """

    good_bytes: int
    next_offset: int
    damage: str | None
    offset_index: OffsetIndex
    time_index: TimeIndex
    transactions: tuple[AbortedTransaction, ...]
    offset_index_fits: bool
    time_index_fits: bool


class PassOptions(NamedTuple):
    """The options for reading a .log.

    `is_last`: the indexes may be open, preallocated and without their last entry.
    `skips_disorder`: leave out index entries that do not rise, instead of raising SegmentEmptied.
    `cuts_overlaps`: a batch that is not after all before it counts as damage.
    `end_bytes`: read only this part of the file, None for all of it.
    """

    interval_bytes: int
    is_last: bool
    skips_disorder: bool = False
    cuts_overlaps: bool = False
    end_bytes: int | None = None


class SegmentEmptied(EngineError):
    """An index of the segment cannot hold its offsets, so a broker's recovery empties it.

    `position` is that of the batch, `cut_at` the size that the .log is cut to.
    """

    def __init__(self, position: int, cut_at: int, rule: str) -> None:
        super().__init__(
            f"offsets do not rise at position {position} ({rule}): a broker empties the segment"
        )
        self.position = position
        self.cut_at = cut_at


class PartitionTrail:
    """What is carried from one segment of a partition to the next."""

    def __init__(self) -> None:
        """Start before the first segment."""
        self.transactions = TransactionsSeen()
        self.epochs = EpochCheck(Findings())
        #: True while no offset from 0 on is missing, so that every transaction's start was seen.
        self.is_complete = True
        #: The highest offset so far plus 1.
        self.end_offset = 0
        #: Number of batches that are not after all batches before them.
        self.overlaps = 0
        #: Offset after the last batch; another one is a gap or an overlap.
        self._next_offset = 0

    def is_overlap(self, batch: RecordBatch) -> bool:
        """Return True if a batch begins below the end of the batches before it.

        A message of magic 0 or 1 is judged by its last offset, as its first one is unknown unless
        it is decompressed.
        """
        first = batch.base_offset if batch.magic >= MAGIC else batch.last_offset
        return first < self.end_offset

    def see(self, batch: RecordBatch) -> None:
        """Add the next batch that the recovery keeps: count overlaps and raise the end offset.

        `is_complete` becomes False at the first batch with missing offsets or of an older format.
        """
        self.overlaps += self.is_overlap(batch)
        self.end_offset = max(self.end_offset, batch.next_offset)
        if not self.is_complete:
            return
        # Messages of older formats are not opened for their offsets: they have no transactions.
        self.is_complete = batch.magic >= MAGIC and (
            batch.base_offset == self._next_offset
            and batch.record_count == batch.last_offset - batch.base_offset + 1
        )
        self._next_offset = batch.next_offset


def recover_segment(
    files: Files,
    path: str,
    base_offset: int,
    *,
    present: SegmentIndexes,
    trail: PartitionTrail,
    options: PassOptions,
) -> SegmentRecovery:
    """Read a .log to its end or first damage, without changing it, and make its indexes.

    `trail` is the state of the segments before it, which is updated. Raises SegmentEmptied if no
    index can hold the offsets, after which the trail is not usable.
    """
    builder = IndexBuilder(
        base_offset, options.interval_bytes, skips_disorder=options.skips_disorder
    )
    segment_pass = _Pass(path, base_offset, trail, builder)
    segment_pass.compare(present, is_last=options.is_last)
    try:
        return segment_pass.read_segment(files, options)
    except IndexOrderBroken as error:
        cut_at = builder.index.lookup(base_offset).position
        raise SegmentEmptied(segment_pass.good_bytes, cut_at, str(error)) from error


class _Pass:
    def __init__(
        self, path: str, base_offset: int, trail: PartitionTrail, builder: IndexBuilder
    ) -> None:
        """`builder` builds the indexes that the segment should have."""
        self._path = path
        self._base_offset = base_offset
        self._next_offset = base_offset
        self._trail = trail
        self._builder = builder
        #: Position after the last good batch.
        self.good_bytes = 0
        #: Problems of the present indexes, each of which makes the repair write a new one.
        self._index_findings = Findings()
        self._time_findings = Findings()
        #: Checks of the present indexes, None for a missing or unreadable one.
        self._index: OffsetIndexCheck | None = None
        self._time_index: TimeIndexCheck | None = None
        #: Entries of the present transaction index by last offset.
        self._indexed: dict[int, AbortedTransaction] = {}
        #: Entries that the transaction index should have.
        self._aborted: list[AbortedTransaction] = []

    def compare(self, present: SegmentIndexes, *, is_last: bool) -> None:
        """Prepare to check the present indexes of the segment while its batches are read."""
        index, times = present.offset_index, present.time_index
        if index is not None:
            is_closed = not (is_last and index.padding_bytes)
            self._index = OffsetIndexCheck(
                self._index_findings, self._path, index, is_closed=is_closed
            )
        if times is not None:
            is_closed = not (is_last and times.padding_bytes)
            self._time_index = TimeIndexCheck(
                self._time_findings, self._path, times, is_closed=is_closed, is_ended=is_closed
            )
        entries = present.txn_index.entries if present.txn_index else ()
        self._indexed = {transaction.last_offset: transaction for transaction in entries}

    def read_segment(self, files: Files, options: PassOptions) -> SegmentRecovery:
        """Read the segment up to the first batch that a broker's recovery would not keep.

        Its position is the end of the good bytes. Returns the indexes made from the good batches.
        """
        file = files.open(self._path)
        damage = None
        try:
            scan = scan_batches(file, end=options.end_bytes)
            for position, batch in scan:
                damage = self._damage_reason(batch)
                if options.cuts_overlaps and damage is None and self._trail.is_overlap(batch):
                    end_offset = self._trail.end_offset
                    damage = f"offset {batch.base_offset} lies below {end_offset}, the end so far"
                if damage is not None:
                    break
                self._add_batch(position, batch)
                self.good_bytes = scan.position
            if damage is None and scan.trailing_bytes:
                damage = f"{scan.trailing_bytes} bytes of a batch that does not end in the file"
        except CorruptRecord as error:
            damage = f"expected {error.expected}, got {error.got}"
        finally:
            file.close()
        return self._complete(damage)

    def _damage_reason(self, batch: RecordBatch) -> str | None:
        """Return why a batch is damaged or does not belong to the segment, None if it is good."""
        try:
            batch.ensure_valid()
        except CorruptRecord as error:
            return f"expected {error.expected}, got {error.got}"
        last_offset = batch.last_offset
        if not 0 <= last_offset - self._base_offset <= _INT_MAX:
            return f"offset {last_offset} does not belong into the segment {self._base_offset}"
        return None

    def _add_batch(self, position: int, batch: RecordBatch) -> None:
        """Add a good batch to the trail and to the new indexes.

        The present indexes are checked by it as well, to find out if they can be kept.
        """
        last_offset, max_timestamp_ms = batch.last_offset, batch.max_timestamp_ms
        self._next_offset = last_offset + 1
        self._builder.add_batch(position, last_offset, max_timestamp_ms)
        self._trail.see(batch)
        self._trail.epochs.see(position, batch)
        if self._index:
            self._index.see(position, last_offset)
        if self._time_index:
            self._time_index.see(last_offset, max_timestamp_ms)
        if batch.producer_id >= 0:
            self._add_producer_batch(batch)

    def _add_producer_batch(self, batch: RecordBatch) -> None:
        """Pass a producer's batch to the open transactions.

        An ABORT marker that ends one makes an entry of the transaction index.
        """
        try:
            ended = self._trail.transactions.process_batch(batch)
        except CorruptRecord:
            return  # an unreadable marker ends no transaction
        if ended is None or ended.control_type is not ControlType.ABORT:
            return
        aborted = ended.aborted
        if not self._trail.is_complete:
            # It may have begun before the log's start, or its beginning was compacted away.
            aborted = _earlier_entry(
                self._indexed.get(batch.base_offset), batch.producer_id, aborted
            )
        if aborted is not None:
            self._aborted.append(aborted)

    def _complete(self, damage: str | None) -> SegmentRecovery:
        """Complete the indexes and checks, and return the result.

        `damage` is the reason why the pass ended early, None at the end of the segment.
        """
        self._builder.finish()
        if self._index:
            self._index.finish()
        if self._time_index:
            self._time_index.finish()
        return SegmentRecovery(
            self.good_bytes,
            self._next_offset,
            damage,
            self._builder.index,
            self._builder.time_index,
            tuple(self._aborted),
            self._index is not None and not self._index_findings.all(),
            self._time_index is not None and not self._time_findings.all(),
        )


def _earlier_entry(
    indexed: AbortedTransaction | None, producer_id: int, seen: AbortedTransaction | None
) -> AbortedTransaction | None:
    """Return the index entry of an aborted transaction that begins earlier.

    `indexed` is the one in the present index, `seen` the one that the log shows; None means none.
    An entry of another producer or with invalid offsets is ignored.
    """
    if indexed is None or indexed.producer_id != producer_id:
        return seen
    if not 0 <= indexed.first_offset <= indexed.last_offset:
        return seen
    return indexed if seen is None or indexed.first_offset < seen.first_offset else seen
