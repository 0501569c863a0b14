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

_LAST_OFFSET_DELTA: Final = slice(23, 27)


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

    Differs: Kafka uses a batch's last offset for its producer even if a damaged header has it too
    high.
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
                if isinstance(batch, BatchView) and batch.has_producer_id:
                    whole = batch if batch.last_offset < end_offset else _repair_last_offset(batch)
                    if whole is not None and whole.last_offset < end_offset:
                        producers.apply_batch(whole)


def _repair_last_offset(batch: BatchView) -> BatchView | None:
    """Return a batch whose last offset is set by its record count, None if the CRC is wrong.

    Repairs a header whose last offset delta was damaged: only the right one satisfies the CRC.
    """
    raw = bytearray(batch.raw)
    raw[_LAST_OFFSET_DELTA] = (max(batch.record_count, 1) - 1).to_bytes(4, "big")
    repaired = BatchView(memoryview(raw))
    return repaired if repaired.is_crc_valid() else None


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

    `marked` is the result of `marker_of` a control batch. Raises the errors of
    `ProducerState.check_data` and `check_marker`.
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
