"""From the bytes of a fetched partition to the records that a consumer sees.

Read committed: the broker names aborted transactions by producer and first offset. From that
offset on, a producer's transactional batches are left out until its abort marker comes by.
Control records are never shown. Source: KIP-98, `CompletedFetch`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from engine.errors import CorruptRecord
from engine.host.ports import Buffer
from engine.records.batch import BatchView
from engine.records.control import ControlType, control_type
from engine.records.record import Record
from engine.records.view import batches_in
from engine.wire import messages

NO_EPOCH = -1


class AbortedProducer(NamedTuple):
    """A transaction whose records do not count, from its first offset on."""

    producer_id: int
    first_offset: int


class SeenRecords(NamedTuple):
    """Records with the leader epoch of their batch, and where to go on behind them.

    `damage` is what stopped the reading, if anything did.
    """

    records: list[tuple[Record, int]]
    next_offset: int
    damage: CorruptRecord | None = None


def seen_records(
    data: Buffer, position: int, aborted: Iterable[AbortedProducer] | None = None
) -> SeenRecords:
    """Return the records from an offset on; `aborted` None shows those of all transactions.

    Compressed batches start before the offset that was asked for: what lies before is left out.
    """
    records: list[tuple[Record, int]] = []
    next_offset = position
    rule = _Isolation(aborted) if aborted is not None else None
    try:
        for batch in batches_in(memoryview(data), allow_partial_tail=True):
            batch.ensure_valid()
            if isinstance(batch, BatchView):
                epoch = batch.leader_epoch
                is_shown = (rule is None or rule.shows(batch)) and not batch.is_control
            else:
                epoch, is_shown = NO_EPOCH, True
            if is_shown:
                batch_records = batch.read_records()
                records += [
                    (record, epoch) for record in batch_records if record.offset >= position
                ]
            next_offset = max(next_offset, batch.next_offset)
    except CorruptRecord as damage:
        return SeenRecords(records, next_offset, damage)
    return SeenRecords(records, next_offset)


class _Isolation:
    """Knows which transactions are aborted while batches go by in order."""

    def __init__(self, aborted: Iterable[AbortedProducer]) -> None:
        self._coming = sorted(aborted, key=lambda producer: producer.first_offset, reverse=True)
        self._running: set[int] = set()

    def shows(self, batch: BatchView) -> bool:
        """Take the next batch and tell whether its records count."""
        while self._coming and self._coming[-1].first_offset <= batch.last_offset:
            self._running.add(self._coming.pop().producer_id)
        if batch.is_control:
            if batch.is_transactional and _is_abort(batch):
                self._running.discard(batch.producer_id)
            return False
        return not (batch.is_transactional and batch.producer_id in self._running)


def _is_abort(batch: BatchView) -> bool:
    return any(control_type(record) is ControlType.ABORT for record in batch.records())


def aborted_of(row: messages.FetchResponse.PartitionData) -> list[AbortedProducer]:
    """Return the aborted transactions that a Fetch response names for a partition."""
    return [AbortedProducer(t.producer_id, t.first_offset) for t in row.aborted_transactions or ()]
