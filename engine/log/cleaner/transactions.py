"""Aborted transactions of a log, found while the cleaner reads its batches in order. Pure.

```
aborted transactions of the .txnindex  ─ reached by offset ─>  open, aborted   ─ ABORT  ─> marker
batch of any other transaction         ────────────────────>  open, committed ─ COMMIT ─> marker
```

A marker may be removed if no batch of its transaction precedes it: the records were removed in an
earlier cleaning. An aborted transaction whose records are still in the log is added to the new
.txnindex.

Source: CMP-7; Kafka's CleanedTransactionMetadata.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heappop, heappush

from engine.log.txn_index import AbortedTransaction
from engine.records.control import ControlType, control_type
from engine.records.view import RecordBatch


class _OpenAborted:
    """An aborted transaction that has started, and whose marker is not reached yet."""

    __slots__ = ("has_batches", "transaction")

    def __init__(self, transaction: AbortedTransaction) -> None:
        self.transaction = transaction
        self.has_batches = False


class CleanedTransactions:
    """The open transactions at one point of a pass over consecutive segments."""

    def __init__(self, on_kept: Callable[[AbortedTransaction], None] | None = None) -> None:
        """Start without transactions.

        `on_kept` is called with each aborted transaction whose records are still in the log.
        """
        self.on_kept = on_kept
        self._coming: list[tuple[int, int, AbortedTransaction]] = []
        self._number = 0
        self._aborted: dict[int, _OpenAborted] = {}
        self._committed: set[int] = set()

    def add_aborted(self, transactions: Iterable[AbortedTransaction]) -> None:
        """Add the aborted transactions of the segments that are read next."""
        for transaction in transactions:
            self._number += 1
            heappush(self._coming, (transaction.first_offset, self._number, transaction))

    def may_discard(self, batch: RecordBatch) -> bool:
        """Process the log's next batch; return True if it may be removed regardless of its keys.

        A marker may be removed if no batch of its transaction remains, other batches if their
        transaction was aborted. Source: CleanedTransactionMetadata.
        """
        if batch.is_control:
            return self._apply_marker(batch)
        return self.apply_batch(batch)

    def apply_batch(self, batch: RecordBatch) -> bool:
        """Process the next batch of records; return True if its transaction was aborted."""
        if self._coming:
            self._open_aborted(batch.last_offset)
        if not batch.is_transactional:
            return False
        aborted = self._aborted.get(batch.producer_id)
        if aborted is None:
            self._committed.add(batch.producer_id)
            return False
        aborted.has_batches = True
        return True

    def _apply_marker(self, batch: RecordBatch) -> bool:
        """Process a transaction marker; return True if it may be removed.

        It may be removed when no batch of its transaction remains in the log.
        """
        self._open_aborted(batch.last_offset)
        record = next(iter(batch.records()), None)
        if record is None:
            # An earlier cleaning emptied the batch, to keep its producer's epoch.
            return True
        kind = control_type(record)
        if kind is ControlType.ABORT:
            aborted = self._aborted.pop(batch.producer_id, None)
            if aborted is None or not aborted.has_batches:
                return True
            if self.on_kept is not None:
                self.on_kept(aborted.transaction)
            return False
        if kind is ControlType.COMMIT:
            is_open = batch.producer_id in self._committed
            self._committed.discard(batch.producer_id)
            return not is_open
        return False

    def _open_aborted(self, offset: int) -> None:
        """Open the aborted transactions whose first offset is at or before `offset`.

        From there on, batches of their producers belong to them, until the abort marker.
        """
        while self._coming and self._coming[0][0] <= offset:
            _, _, transaction = heappop(self._coming)
            self._aborted.setdefault(transaction.producer_id, _OpenAborted(transaction))
