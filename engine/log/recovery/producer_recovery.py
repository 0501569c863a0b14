"""Rebuild a log's producers from its files, and find batches that repeat stored ones.

```
newest valid snapshot in (log start, end]  →  every batch from there to the end
```

Source: Kafka's UnifiedLog.rebuildProducerState; LOG-12, T5.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from typing import Final

from engine.errors import CorruptRecord
from engine.log.producer_snapshots import ProducerSnapshots
from engine.log.producer_state import AppendOrigin, Marked, ProducerState, WrittenBatch
from engine.log.segment_list import SegmentList
from engine.records.batch import BatchView
from engine.records.batch_header import HEADER_BYTES
from engine.records.builder import NO_PRODUCER_ID

_LAST_OFFSET_DELTA: Final = slice(23, 27)
#: Position of the first byte that a batch's CRC covers: its attributes.
_FIRST_BYTE_OF_CRC: Final = 21


def rebuild_producers(
    producers: ProducerState,
    snapshots: ProducerSnapshots,
    segments: SegmentList,
    *,
    log_start_offset: int,
    end_offset: int,
    now_ms: int,
    expiration_ms: int,
    snapshots_wanted: Collection[int] = (),
) -> None:
    """Restore the producer state at `end_offset` from a snapshot and the batches after it.

    Snapshots outside the offsets of the log are removed. While the log is read, new snapshots are
    written at the base offsets in `snapshots_wanted`.

    Differs: Kafka applies a damaged header as it is read: a producer whose epoch reads too high is
    rejected with INVALID_PRODUCER_EPOCH from then on.
    """
    start = load_producers(
        producers,
        snapshots,
        log_start_offset=log_start_offset,
        end_offset=end_offset,
        now_ms=now_ms,
        expiration_ms=expiration_ms,
    )
    if start >= end_offset:
        return
    for segment in segments.between(start, end_offset):
        if segment.base_offset in snapshots_wanted and segment.base_offset > start:
            snapshots.write_snapshot(segment.base_offset, producers.to_entries())
        # After damage in a segment nothing can be read; the next segment can.
        with suppress(CorruptRecord):
            for batch in segment.iter_batches_from(start):
                # A base offset may read too high, too: what follows can still be below the end.
                if batch.base_offset >= end_offset:
                    continue
                # Any id but -1: a wrong bit may make an id negative.
                if isinstance(batch, BatchView) and batch.producer_id != NO_PRODUCER_ID:
                    repaired = batch if batch.is_crc_valid() else _repair_header(batch)
                    if repaired.has_producer_id and repaired.last_offset < end_offset:
                        producers.apply_batch(repaired)


def _repair_header(batch: BatchView) -> BatchView:
    """Return a batch with a wrong CRC with its header repaired, or unchanged if no repair fits.

    A producer epoch that reads too high would make the leader reject the producer from then on.
    Tried are the last offset that the record count implies, and each single bit of the header:
    only the right header satisfies the CRC. If the records are damaged, the header is taken as it
    is.
    """
    raw = bytearray(batch.raw)
    delta = raw[_LAST_OFFSET_DELTA]
    raw[_LAST_OFFSET_DELTA] = (max(batch.record_count, 1) - 1).to_bytes(4, "big")
    if BatchView(memoryview(raw)).is_crc_valid():
        return BatchView(memoryview(raw))
    raw[_LAST_OFFSET_DELTA] = delta
    for position in range(_FIRST_BYTE_OF_CRC, HEADER_BYTES):
        for bit in range(8):
            raw[position] ^= 1 << bit
            if BatchView(memoryview(raw)).is_crc_valid():
                return BatchView(memoryview(raw))
            raw[position] ^= 1 << bit
    return batch


def load_producers(
    producers: ProducerState,
    snapshots: ProducerSnapshots,
    *,
    log_start_offset: int,
    end_offset: int,
    now_ms: int,
    expiration_ms: int,
) -> int:
    """Load the newest valid producer snapshot up to `end_offset`.

    Returns the offset from which the log must be read to complete the state: the snapshot's, or the
    log start offset without a snapshot.
    """
    snapshot = snapshots.load_newest(log_start_offset, end_offset)
    if snapshot is None:
        producers.clear()
        return log_start_offset
    offset, entries = snapshot
    producers.load_entries(entries, now_ms=now_ms, expiration_ms=expiration_ms)
    return offset


def find_repeated_batch(
    producers: ProducerState, batch: BatchView, origin: AppendOrigin, marked: Marked | None
) -> WrittenBatch | None:
    """Return the stored batch that a producer repeats, None if the leader may append the new one.

    `marked` is the result of `read_transaction_marker` for a control batch, None for other batches.
    Raises the errors of `ProducerState.find_duplicate` and `check_marker`.
    """
    if not batch.has_producer_id:
        return None
    if marked is not None:
        marker, _ = marked
        if marker is not None:
            producers.check_marker(
                batch.producer_id, batch.producer_epoch, marker.coordinator_epoch
            )
        return None
    return producers.find_duplicate(
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        batch.last_sequence,
        is_transactional=batch.is_transactional,
        origin=origin,
    )
