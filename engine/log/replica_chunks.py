"""Check a leader's fetch response, and split it into chunks to append. Pure.

A chunk is appended in one step, with at most one index entry; most responses are one chunk. It ends
where segment.bytes would be exceeded and where offsets would not fit into one segment.

Two functions read the same bytes: `_parse_fast` accepts valid batches of magic 2 by their headers;
`_parse_batches` continues where it stopped, and raises the errors.

A batch of a later epoch than that of the followed leader, and all batches after it, are left for
another fetch: either it was written after the leader's time, or the field, which no checksum
covers, is damaged.

Source: Kafka's UnifiedLog.analyzeAndValidateRecords for replicas, hasHigherPartitionLeaderEpoch.
Differs: a response larger than segment.bytes is split at its batches; Kafka refuses it. If the
first batch is of a later epoch, an error makes the follower back off; Kafka fetches again at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from engine.errors import CorruptRecord
from engine.log.log_types import (
    EPOCH_MAX,
    NOTHING_APPENDED,
    AppendInfo,
    BatchOfLaterEpoch,
    UnexpectedAppendOffset,
)
from engine.log.validation import CorruptMessage
from engine.records.batch import BatchView
from engine.records.batch_header import CHECKED_FROM, HEADER_BYTES, MAGIC, read_header
from engine.records.crc import crc32c
from engine.records.record import NO_TIMESTAMP
from engine.records.view import batches_in

_INT_MAX = (1 << 31) - 1
_OVERHEAD_BYTES = 12


class ReplicaBatch(NamedTuple):
    """One batch of a response; `leader_epoch` and `producer_id` are −1 in old formats.

    In old formats the first offset is set to the last offset, because their headers lack it.
    """

    position: int
    size_bytes: int
    first_offset: int
    last_offset: int
    max_timestamp_ms: int
    leader_epoch: int
    producer_id: int
    magic: int


class ReplicaChunk(NamedTuple):
    """Consecutive batches; `largest` is the largest timestamp and the last offset of its batch."""

    data: memoryview
    first_offset: int
    last_offset: int
    largest: tuple[int, int]
    batches: list[ReplicaBatch]


def split_replica_batches(
    data: memoryview, *, log_end_offset: int, segment_bytes: int, leader_epoch: int = EPOCH_MAX
) -> list[ReplicaChunk]:
    """Return the fetched batches as chunks to append, in order; leave out an incomplete last batch.

    Each chunk fits into a segment. Positions of batches are relative to `data`. Raises
    CorruptMessage for a wrong checksum or size, UnexpectedAppendOffset for offsets that do not rise
    from `log_end_offset` on, BatchOfLaterEpoch if the first batch is of a later epoch than
    `leader_epoch`.
    """
    batches, position = _parse_fast(data, log_end_offset, leader_epoch)
    if position < len(data):
        _parse_batches(data, position, log_end_offset, leader_epoch, batches)
    if not batches:
        return []
    first, last = batches[0], batches[-1]
    whole = last.position + last.size_bytes
    if whole <= segment_bytes and last.last_offset - first.last_offset <= _INT_MAX:
        return [_build_chunk(data, batches, log_end_offset)]
    return [
        _build_chunk(data, run, log_end_offset) for run in _group_batches(batches, segment_bytes)
    ]


def append_info_of(chunks: Sequence[ReplicaChunk], log_start_offset: int) -> AppendInfo:
    """Return the AppendInfo of appended chunks; NOTHING_APPENDED for no chunks."""
    if not chunks:
        return NOTHING_APPENDED._replace(log_start_offset=log_start_offset)
    first, last = chunks[0], chunks[-1]
    return AppendInfo(
        first.first_offset,
        last.last_offset,
        max(largest_ms for largest_ms, _ in (chunk.largest for chunk in chunks)),
        NO_TIMESTAMP,
        log_start_offset,
        sum(len(chunk.data) for chunk in chunks),
        last.batches[-1].leader_epoch,
    )


def _parse_fast(
    data: memoryview, next_offset: int, leader_epoch: int
) -> tuple[list[ReplicaBatch], int]:
    """Return the valid batches of magic 2 at the start of `data`, and the position after them.

    Stops at the first other batch: an older format, damage, an incomplete batch, offsets that do
    not rise, or an epoch later than `leader_epoch`.
    """
    batches: list[ReplicaBatch] = []
    position, end = 0, len(data)
    while position + HEADER_BYTES <= end:
        (
            base, length, epoch, magic, crc, _, delta, _, max_ms, producer_id, _, _, _,
        ) = read_header(data, position)  # fmt: skip
        following = position + length + _OVERHEAD_BYTES
        if (
            magic != MAGIC
            or not position + HEADER_BYTES <= following <= end
            or epoch > leader_epoch
            or base < next_offset
            or delta < 0
            or crc != crc32c(data[position + CHECKED_FROM : following])
        ):
            break
        next_offset = base + delta + 1
        batches.append(
            ReplicaBatch(
                position,
                following - position,
                base,
                next_offset - 1,
                max_ms,
                epoch,
                producer_id,
                magic,
            )
        )
        position = following
    return batches, position


def _parse_batches(
    data: memoryview,
    position: int,
    log_end_offset: int,
    leader_epoch: int,
    batches: list[ReplicaBatch],
) -> None:
    """Check the fetched batches from a position on, and add them to `batches`.

    For batches at which `_parse_fast` has stopped. Raises the errors of `split_replica_batches`.
    """
    next_offset = batches[-1].last_offset + 1 if batches else log_end_offset
    try:
        for batch in batches_in(data, allow_partial_tail=True, position=position):
            first = batch.base_offset if isinstance(batch, BatchView) else batch.last_offset
            if batch.leader_epoch > leader_epoch:
                if not batches:
                    raise BatchOfLaterEpoch(first, batch.leader_epoch, leader_epoch)
                return
            # The checksum comes before the check of offsets: a damaged batch is fetched again.
            batch.ensure_valid()
            if first < next_offset or batch.last_offset < first:
                raise UnexpectedAppendOffset(first, batch.last_offset, next_offset)
            next_offset = batch.last_offset + 1
            batches.append(
                ReplicaBatch(
                    batch.position,
                    batch.size_bytes,
                    first,
                    batch.last_offset,
                    batch.max_timestamp_ms,
                    batch.leader_epoch,
                    batch.producer_id,
                    batch.magic,
                )
            )
    except CorruptRecord as error:
        raise CorruptMessage(f"expected {error.expected}, got {error.got}") from error


def _group_batches(batches: list[ReplicaBatch], segment_bytes: int) -> list[list[ReplicaBatch]]:
    """Group batches so that each group fits into a segment by size and by offsets."""
    runs: list[list[ReplicaBatch]] = []
    size = 0
    for batch in batches:
        is_full = not runs or size + batch.size_bytes > segment_bytes
        if is_full or batch.last_offset - runs[-1][0].last_offset > _INT_MAX:
            runs.append([])
            size = 0
        runs[-1].append(batch)
        size += batch.size_bytes
    return runs


def _build_chunk(data: memoryview, run: list[ReplicaBatch], log_end_offset: int) -> ReplicaChunk:
    """Return consecutive batches as one chunk to append, with their largest timestamp.

    Below magic 2 the first offset of a batch is unknown: the lowest possible one is taken.
    """
    first, last = run[0], run[-1]
    first_offset = first.first_offset
    if first.magic < MAGIC:
        first_offset = max(last.last_offset - _INT_MAX, log_end_offset)
    largest_ms, largest_offset = NO_TIMESTAMP, first_offset
    for batch in run:
        if batch.max_timestamp_ms > largest_ms:
            largest_ms, largest_offset = batch.max_timestamp_ms, batch.last_offset
    raw = data[first.position : last.position + last.size_bytes]
    return ReplicaChunk(raw, first_offset, last.last_offset, (largest_ms, largest_offset), run)
