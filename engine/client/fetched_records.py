"""Decode the bytes of a fetched partition to the records that a consumer sees.

Read committed: the broker lists aborted transactions by producer id and first offset. From that
offset on, the producer's transactional batches are left out until its abort marker. Control
records are never returned. Source: KIP-98, `CompletedFetch`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from engine.errors import CorruptRecord
from engine.host.ports import Buffer
from engine.records.batch import BatchView
from engine.records.control import ControlType, control_type
from engine.records.legacy import LegacyBatch
from engine.records.record import Record
from engine.records.record_run import NO_EPOCH, RecordRun, read_runs, records_of
from engine.records.view import batches_in
from engine.wire import messages


class AbortedProducer(NamedTuple):
    """An aborted transaction: its records from the first offset on are left out."""

    producer_id: int
    first_offset: int


class SeenRecords(NamedTuple):
    """Visible records in non-empty runs, and the next offset to fetch.

    `damage` is the error that ended the decoding, None without one. `leader_epoch` is that of the
    last batch, visible or not: −1 without batches, and in formats without epochs.
    """

    runs: list[RecordRun]
    next_offset: int
    damage: CorruptRecord | None = None
    leader_epoch: int = NO_EPOCH

    @property
    def records(self) -> list[tuple[Record, int]]:
        """Return the records one by one, each with its leader epoch, in offset order."""
        return records_of(self.runs)


def visible_records(
    data: Buffer, position: int, aborted: Iterable[AbortedProducer] | None = None
) -> SeenRecords:
    """Return the records in fetched bytes that a consumer sees, from offset `position` on.

    `aborted` names aborted transactions, for read_committed; None includes the records of all
    transactions. A compressed batch may start before `position`: its earlier records are left out.
    Damage ends the result, which names it.
    """
    shown: list[RecordRun] = []
    next_offset, leader_epoch = position, NO_EPOCH
    rule = _Isolation(aborted) if aborted is not None else None
    try:
        for batch in batches_in(memoryview(data), allow_partial_tail=True):
            batch.ensure_valid()
            if isinstance(batch, LegacyBatch) or _is_shown(batch, rule):
                cut = (run.select_offsets(position) for run in read_runs(batch))
                shown += [run for run in cut if run.record_count]
            next_offset = max(next_offset, batch.next_offset)
            leader_epoch = NO_EPOCH if isinstance(batch, LegacyBatch) else batch.leader_epoch
    except CorruptRecord as damage:
        return SeenRecords(shown, next_offset, damage, leader_epoch)
    return SeenRecords(shown, next_offset, None, leader_epoch)


def _is_shown(batch: BatchView, rule: _Isolation | None) -> bool:
    """True if a consumer sees the records of a batch.

    It must be called for every batch in order, also for control batches: `rule` follows the
    transactions. `rule` None is read_uncommitted.
    """
    return (rule is None or rule.process_batch(batch)) and not batch.is_control


class _Isolation:
    """Tracks aborted transactions while batches are read in order."""

    def __init__(self, aborted: Iterable[AbortedProducer]) -> None:
        self._coming = sorted(aborted, key=lambda producer: producer.first_offset, reverse=True)
        self._running: set[int] = set()

    def process_batch(self, batch: BatchView) -> bool:
        """Follow the transactions by the next batch in order.

        True if its records are committed data. False for control batches, and for batches of a
        transaction that was aborted.
        """
        while self._coming and self._coming[-1].first_offset <= batch.last_offset:
            self._running.add(self._coming.pop().producer_id)
        if batch.is_control:
            if batch.is_transactional and _is_abort(batch):
                self._running.discard(batch.producer_id)
            return False
        return not (batch.is_transactional and batch.producer_id in self._running)


def _is_abort(batch: BatchView) -> bool:
    """True if a control batch has an ABORT marker."""
    return any(control_type(record) is ControlType.ABORT for record in batch.records())


def aborted_of(row: messages.FetchResponse.PartitionData) -> list[AbortedProducer]:
    """Return the aborted transactions that a Fetch response lists for a partition.

    Each is a producer id with the first offset of its transaction.
    """
    return [AbortedProducer(t.producer_id, t.first_offset) for t in row.aborted_transactions or ()]
