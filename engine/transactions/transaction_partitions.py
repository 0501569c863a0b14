"""AddPartitionsToTxn: add partitions to a transaction, or verify that it has them.

| state | AddPartitionsToTxn |
|---|---|
| Empty, CompleteCommit, CompleteAbort | the transaction begins |
| Ongoing | partitions are added; without a new one nothing is written |
| PrepareCommit, PrepareAbort, anything pending | CONCURRENT_TRANSACTIONS |

Source: TransactionCoordinator.handleAddPartitionsToTransaction, handleVerifyPartitionsInTransaction
of 3.9.1; TXN-8, T8; KIP-890.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.host.ports import Clock
from engine.host.promise import Promise
from engine.kafka_errors import (
    CONCURRENT_TRANSACTIONS,
    INVALID_PRODUCER_ID_MAPPING,
    INVALID_REQUEST,
    PRODUCER_FENCED,
    TRANSACTION_ABORTABLE,
)
from engine.model import TopicPartition
from engine.transactions.registry import Found, TransactionRegistry
from engine.transactions.states import PREPARED, TransactionState
from engine.transactions.transaction_store import TransactionStore


class TransactionPartitions:
    """Adds partitions to transactions and verifies them."""

    def __init__(
        self, registry: TransactionRegistry, store: TransactionStore, clock: Clock
    ) -> None:
        self._registry = registry
        self._store = store
        self._clock = clock

    def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Sequence[TopicPartition],
    ) -> Promise[int]:
        """Add partitions to a producer's transaction (AddPartitionsToTxn), or begin one.

        Promises 0 once they are written to the log, else an error code.
        """
        found = self._find_current(transactional_id, producer_id, producer_epoch)
        code, coordinator_epoch, transaction = found
        if code or transaction is None:
            return Promise.of(code)
        if transaction.pending_state is not None or transaction.state in PREPARED:
            return Promise.of(CONCURRENT_TRANSACTIONS)
        is_open = transaction.state is TransactionState.ONGOING
        if is_open and all(partition in transaction.partitions for partition in partitions):
            return Promise.of(0)
        transition = transaction.add_partitions(partitions, self._clock.wall_ms())
        return self._store.write(transactional_id, coordinator_epoch, transition)

    def verify_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Sequence[TopicPartition],
    ) -> dict[TopicPartition, int]:
        """Return 0 for each partition of the producer's open transaction, else its error code.

        A leader calls this before it appends the first record of a transaction: a late record must
        not open a transaction that no EndTxn will end.
        """
        code, _, transaction = self._find_current(transactional_id, producer_id, producer_epoch)
        if code or transaction is None:
            return dict.fromkeys(partitions, code)
        if transaction.state in PREPARED:
            return dict.fromkeys(partitions, CONCURRENT_TRANSACTIONS)
        return {
            partition: 0 if partition in transaction.partitions else TRANSACTION_ABORTABLE
            for partition in partitions
        }

    def _find_current(self, transactional_id: str, producer_id: int, producer_epoch: int) -> Found:
        """Return the transaction of a producer with current id and epoch, else a code."""
        if not transactional_id:
            return Found(INVALID_REQUEST)
        found = self._registry.find(transactional_id)
        if found.error_code:
            return found
        transaction = found.transaction
        if transaction is None or transaction.producer_id != producer_id:
            return Found(INVALID_PRODUCER_ID_MAPPING)
        if transaction.producer_epoch != producer_epoch:
            return Found(PRODUCER_FENCED)
        return found
