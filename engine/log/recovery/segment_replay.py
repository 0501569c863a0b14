"""Read one segment after a crash: find its good bytes, and rebuild the content of its side files.

```
every batch   checksum · offsets within the segment · index entries as they are rebuilt
              a newer leader epoch · its producer · the end of a transaction
```

A due index entry that is not above the last one ends the pass: `disorder` describes it, and the
complete segment is invalid.

Most batches are data of the current epoch: `_add_fast` records them by their headers alone.

Source: Kafka's LogSegment.recover; LOG-12, L2, L3.
"""

from __future__ import annotations

from typing import NamedTuple

from engine.errors import CorruptRecord, StorageError
from engine.log.batch_scan import scan_batches
from engine.log.epoch_store import EpochStore
from engine.log.index_builder import IndexBuilder
from engine.log.offset_index import IndexOrderBroken
from engine.log.producer_state import ProducerState, WrittenBatch
from engine.log.segment import Segment
from engine.log.txn_index import AbortedTransaction
from engine.naming import FileKind
from engine.records.batch import BatchView
from engine.records.batch_header import (
    CHECKED_FROM,
    CONTROL_FLAG,
    HEADER_BYTES,
    MAGIC,
    TRANSACTIONAL_FLAG,
    read_header,
)
from engine.records.crc import crc32c
from engine.records.record import increment_sequence
from engine.records.view import RecordBatch

_INT_MAX = (1 << 31) - 1


class SegmentOffsetOverflow(StorageError):
    """A batch has offsets outside of its segment's range; the log cannot be opened."""

    hint = "kctl logs repair truncates the log there"

    def __init__(self, path: str, position: int, last_offset: int, base_offset: int) -> None:
        super().__init__(
            f"{path} at position {position}: offset {last_offset} does not belong into a segment "
            f"that starts at {base_offset}"
        )
        self.path = path
        self.position = position
        self.last_offset = last_offset
        self.base_offset = base_offset


class SegmentOffsetsDisordered(StorageError):
    """A segment that must be indexed again has offsets that no index can represent."""

    hint = "kctl logs repair empties the segment, as a start after a crash would"

    def __init__(self, path: str, position: int, rule: str) -> None:
        super().__init__(f"{path} at position {position}: offsets do not rise: {rule}")
        self.path = path
        self.position = position
        self.rule = rule


class IndexDisorder(NamedTuple):
    """The position of the batch whose due index entry does not rise, and the violated rule."""

    position: int
    rule: str


class SegmentReplay:
    """One pass over a segment by `replay`, and its results.

    `good_bytes` and `next_offset` are the end of the last good batch, `damage` is the reason why
    the pass ended before the end of the file. Before `replay` epochs and producers must be those at
    the segment's base offset; afterwards they are those at `next_offset`.
    """

    def __init__(self, segment: Segment, epochs: EpochStore, producers: ProducerState) -> None:
        """Take the segment; `epochs` and `producers` are changed by the replay."""
        self._segment = segment
        self._epochs = epochs
        self._producers = producers
        #: Builds new indexes from the batches that are read.
        self.builder = IndexBuilder(segment.base_offset)
        #: Position after the last good batch: damaged bytes from there on are truncated.
        self.good_bytes = 0
        self.next_offset = segment.base_offset
        #: Transactions that end in this segment by an abort: its transaction index.
        self.aborted: list[AbortedTransaction] = []
        #: The first batch whose offset or time is not above those before, None without one.
        self.disorder: IndexDisorder | None = None
        self.damage: str | None = None

    def replay(self, interval_bytes: int, *, skips_disorder: bool = False) -> None:
        """Read the .log to its end or its first bad batch; raises SegmentOffsetOverflow.

        Epochs, producers and indexes are updated with each batch. With `skips_disorder` the indexes
        omit offsets that do not rise, and the pass continues; otherwise it ends with `disorder`
        set.
        """
        self.builder = IndexBuilder(
            self._segment.base_offset, interval_bytes, skips_disorder=skips_disorder
        )
        try:
            self._read_batches()
            self.builder.finish()
        except IndexOrderBroken as error:
            self.disorder = IndexDisorder(self.good_bytes, str(error))

    def _read_batches(self) -> None:
        """Read the segment up to the first invalid batch; set its good bytes and damage."""
        scan = scan_batches(self._segment.file)
        epoch = self._epochs.latest_epoch
        try:
            for position, view in scan.iter_frames():
                if not self._add_fast(position, view, epoch):
                    batch = scan.parse_frame(position, view)
                    batch.ensure_valid()
                    self._add_batch(position, batch)
                    epoch = self._epochs.latest_epoch
                self.good_bytes = scan.position
        except CorruptRecord as error:
            self.damage = f"expected {error.expected}, got {error.got}"
        else:
            if scan.trailing_bytes:
                self.damage = (
                    f"{scan.trailing_bytes} bytes of a batch that does not end in the file"
                )

    def _add_fast(self, position: int, view: memoryview, latest_epoch: int) -> bool:
        """Add a valid batch of the latest epoch to indexes and producers; return True if it is one.

        Returns False, with nothing done, for any other batch.
        """
        if len(view) < HEADER_BYTES:
            return False
        (
            first, _, epoch, magic, crc, flags, delta, _, max_ms,
            producer_id, producer_epoch, sequence, _,
        ) = read_header(view)  # fmt: skip
        last = first + delta
        if (
            magic != MAGIC
            or epoch != latest_epoch
            or flags & CONTROL_FLAG
            or crc != crc32c(view[CHECKED_FROM:])
            or not 0 <= last - self._segment.base_offset <= _INT_MAX
        ):
            return False
        self.builder.add_batch(position, last, max_ms)
        self.next_offset = last + 1
        if producer_id >= 0:
            sequence = increment_sequence(sequence, delta) if sequence >= 0 else -1
            self._producers.append_data(
                producer_id,
                producer_epoch,
                WrittenBatch(sequence, last, delta, max_ms),
                is_transactional=flags & TRANSACTIONAL_FLAG != 0,
            )
        return True

    def _add_batch(self, position: int, batch: RecordBatch) -> None:
        """Add one batch to the indexes, epochs and producers; its offset must fit the segment."""
        last_offset = batch.last_offset
        base = self._segment.base_offset
        if not 0 <= last_offset - base <= _INT_MAX:
            path = self._segment.path(FileKind.LOG)
            raise SegmentOffsetOverflow(path, position, last_offset, base)
        self.builder.add_batch(position, last_offset, batch.max_timestamp_ms)
        self.next_offset = last_offset + 1
        if batch.magic < MAGIC or not isinstance(batch, BatchView):
            return
        epoch = batch.leader_epoch
        if epoch >= 0 and epoch > self._epochs.latest_epoch:
            self._epochs.assign(epoch, batch.base_offset)
        if batch.has_producer_id:
            completed = self._producers.apply_batch(batch)
            if completed is not None and completed.is_aborted:
                self.aborted.append(completed.to_index_entry())
