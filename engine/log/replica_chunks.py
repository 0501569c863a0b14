"""What a leader's fetch answer brings a follower: checked, and cut into chunks to append. Pure.

A chunk is what is appended at once, and gives at most one index entry; an answer is mostly one.
It ends where segment.bytes would be passed and where offsets would not fit into one segment.

Source: Kafka's UnifiedLog.analyzeAndValidateRecords for replicas.
Differs: an answer larger than segment.bytes is cut at its batches; Kafka refuses it.
"""

from __future__ import annotations

from typing import NamedTuple

from engine.errors import CorruptRecord
from engine.log.log_types import UnexpectedAppendOffset
from engine.log.validation import CorruptMessage
from engine.records.batch import BatchView
from engine.records.record import NO_TIMESTAMP
from engine.records.view import RecordBatch, batches_in

_INT_MAX = (1 << 31) - 1


class ReplicaChunk(NamedTuple):
    """Consecutive batches; `largest` is the largest time and the last offset of its batch."""

    data: memoryview
    first_offset: int
    last_offset: int
    largest: tuple[int, int]
    batches: list[RecordBatch]


def replica_chunks(
    data: memoryview, *, log_end_offset: int, segment_bytes: int
) -> list[ReplicaChunk]:
    """Return what to append, in order; a last batch that is cut short is left out.

    Errors: CorruptMessage for a wrong checksum or size, UnexpectedAppendOffset for offsets that
    do not rise from `log_end_offset` on.
    """
    chunks: list[ReplicaChunk] = []
    run: list[RecordBatch] = []
    size = 0
    for batch in _checked(data, log_end_offset):
        is_far = bool(run) and batch.last_offset - run[0].last_offset > _INT_MAX
        if run and (size + batch.size_bytes > segment_bytes or is_far):
            chunks.append(_chunk(data, run, log_end_offset))
            run, size = [], 0
        run.append(batch)
        size += batch.size_bytes
    if run:
        chunks.append(_chunk(data, run, log_end_offset))
    return chunks


def _checked(data: memoryview, log_end_offset: int) -> list[RecordBatch]:
    found: list[RecordBatch] = []
    next_offset = log_end_offset
    try:
        for batch in batches_in(data, allow_partial_tail=True):
            first = batch.base_offset if isinstance(batch, BatchView) else batch.last_offset
            if first < next_offset or batch.last_offset < first:
                raise UnexpectedAppendOffset(first, batch.last_offset, next_offset)
            batch.ensure_valid()
            next_offset = batch.last_offset + 1
            found.append(batch)
    except CorruptRecord as error:
        raise CorruptMessage(f"expected {error.expected}, got {error.got}") from error
    return found


def _chunk(data: memoryview, run: list[RecordBatch], log_end_offset: int) -> ReplicaChunk:
    first, last = run[0], run[-1]
    if isinstance(first, BatchView):
        first_offset = first.base_offset
    else:
        # Old messages do not say where they begin without being opened.
        first_offset = max(last.last_offset - _INT_MAX, log_end_offset)
    largest = (NO_TIMESTAMP, first_offset)
    for batch in run:
        if batch.max_timestamp_ms > largest[0]:
            largest = (batch.max_timestamp_ms, batch.last_offset)
    raw = data[first.position : last.position + last.size_bytes]
    return ReplicaChunk(raw, first_offset, last.last_offset, largest, run)
