"""End transactions: by EndTxn, by timeout, or by InitProducerId of another producer.

| state | EndTxn with the result of the state | EndTxn with the opposite result |
|---|---|---|
| Ongoing | written | written |
| PrepareCommit, PrepareAbort | CONCURRENT_TRANSACTIONS | INVALID_TXN_STATE |
| CompleteCommit, CompleteAbort | 0 | INVALID_TXN_STATE |
| Empty | INVALID_TXN_STATE | INVALID_TXN_STATE |

1. PrepareCommit or PrepareAbort is written. From here on the end cannot change.
2. The client is answered; in the next turn of the loop markers go to all partitions. Leaders in
   this process have written them before the client can send its next request.
3. The completion is written (`TransactionMarkers`).

An abort by the coordinator first sets an epoch that no producer has.

Source: TransactionCoordinator.endTransaction, abortTimedOutTransactions of 3.9.1; TXN-5, TXN-7.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import partial

from engine.host.coroutine import drive
from engine.host.ports import Clock, Timers
from engine.host.promise import Promise
from engine.kafka_errors import (
    CONCURRENT_TRANSACTIONS,
    INVALID_PRODUCER_ID_MAPPING,
    INVALID_REQUEST,
    INVALID_TXN_STATE,
    NOT_COORDINATOR,
    PRODUCER_FENCED,
)
from engine.transactions.markers import TransactionMarkers
from engine.transactions.registry import TransactionRegistry
from engine.transactions.states import PREPARED, TransactionState
from engine.transactions.transaction import Transaction, Transition
from engine.transactions.transaction_store import TransactionStore

_log = logging.getLogger("kafka.coordinator.transaction.TransactionCoordinator")

_COMMITTED = frozenset((TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT))


class TransactionEnds:
    """Commits and aborts transactions."""

    def __init__(
        self,
        registry: TransactionRegistry,
        store: TransactionStore,
        markers: TransactionMarkers,
        clock: Clock,
        timers: Timers,
    ) -> None:
        self._registry = registry
        self._store = store
        self._markers = markers
        self._clock = clock
        self._timers = timers

    def end_transaction(
        self, transactional_id: str, producer_id: int, producer_epoch: int, *, is_commit: bool
    ) -> Promise[int]:
        """Commit or abort a producer's transaction (EndTxn).

        Promises 0 once PrepareCommit or PrepareAbort is written, else an error code. The markers
        are
        written after the response, as in Kafka.
        """
        if not transactional_id:
            return Promise.of(INVALID_REQUEST)
        code, coordinator_epoch, transaction = self._registry.find(transactional_id)
        if code:
            return Promise.of(code)
        if transaction is None or transaction.producer_id != producer_id:
            return Promise.of(INVALID_PRODUCER_ID_MAPPING)
        if transaction.producer_epoch != producer_epoch:
            return Promise.of(PRODUCER_FENCED)
        if transaction.pending_state is not None:
            return Promise.of(CONCURRENT_TRANSACTIONS)
        if transaction.state is not TransactionState.ONGOING:
            return Promise.of(_check_repeated_end(transaction, is_commit=is_commit))
        decision = transaction.end(is_commit=is_commit, now_ms=self._clock.wall_ms())
        return drive(self._prepare_end(coordinator_epoch, transaction, decision))

    async def abort_fenced(self, transaction: Transaction, fence: Transition) -> int:
        """Abort an open transaction without a request of its producer, whose epoch is fenced.

        `fence` is the transition that `Transaction.prepare_fence` returned. Returns 0 once
        PrepareAbort is written, else an error code.
        """
        code, coordinator_epoch, known = self._registry.find(transaction.transactional_id)
        if code or known is not transaction:
            return code or NOT_COORDINATOR
        transaction.take_fencing_epoch(fence.producer_epoch)
        decision = transaction.end(is_commit=False, now_ms=self._clock.wall_ms())
        code = await self._prepare_end(coordinator_epoch, transaction, decision)
        if code and self._registry.find(transaction.transactional_id) == (
            0,
            coordinator_epoch,
            transaction,
        ):
            transaction.has_failed_epoch_fence = True
        return code

    def abort_timed_out(self) -> Iterator[None]:
        """Abort the transactions that are open for longer than their timeout (TXN-7).

        A generator that checks one id for each step.
        """
        for transaction in self._registry.transactions():
            if transaction.is_timed_out(self._clock.wall_ms()):
                fence = transaction.prepare_fence()
                _log.info(
                    "Completing rollback of ongoing transaction for transactionalId %s due to "
                    "timeout",
                    transaction.transactional_id,
                )
                drive(self.abort_fenced(transaction, fence))
            yield

    def resume(self, coordinator_epoch: int, transaction: Transaction) -> None:
        """Send the markers of a transaction that was loaded in PrepareCommit or PrepareAbort.

        The transaction was decided before its coordinator changed.
        """
        assert transaction.state in PREPARED, transaction.state
        self._send_markers(coordinator_epoch, transaction)

    async def _prepare_end(
        self, coordinator_epoch: int, transaction: Transaction, decision: Transition
    ) -> int:
        """Write PrepareCommit or PrepareAbort, and send the markers in a later turn of the loop.

        Returns 0, or the error code of the write.
        """
        # 1
        transactional_id = transaction.transactional_id
        code = await self._store.write(transactional_id, coordinator_epoch, decision)
        if code:
            return code
        # 2
        self._timers.call_soon(partial(self._begin_markers, coordinator_epoch, transaction))
        return 0

    def _begin_markers(self, coordinator_epoch: int, transaction: Transaction) -> None:
        """Send the markers, unless this broker has resigned since the write."""
        found = self._registry.find(transaction.transactional_id)
        if found.transaction is transaction and found.coordinator_epoch == coordinator_epoch:
            self._send_markers(coordinator_epoch, transaction)

    def _send_markers(self, coordinator_epoch: int, transaction: Transaction) -> None:
        """Send markers to the leaders of all partitions; after that the completion is written."""
        is_commit = transaction.state is TransactionState.PREPARE_COMMIT
        completion = transaction.prepare_completion(self._clock.wall_ms())
        self._markers.send_markers(coordinator_epoch, transaction, completion, is_commit=is_commit)


def _check_repeated_end(transaction: Transaction, *, is_commit: bool) -> int:
    """Return the code of EndTxn while no transaction is open, 0 if the same end is complete."""
    if transaction.state is TransactionState.EMPTY:
        return INVALID_TXN_STATE
    if (transaction.state in _COMMITTED) is not is_commit:
        return INVALID_TXN_STATE
    return CONCURRENT_TRANSACTIONS if transaction.state in PREPARED else 0
