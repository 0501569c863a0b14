"""InitProducerId of a transactional id: a producer gets a new epoch, which fences all earlier ones.

| state | result |
|---|---|
| the id is unused | a new producer id, epoch 0 |
| Empty, CompleteCommit, CompleteAbort | epoch + 1; if exhausted, a new producer id with epoch 0 |
| Ongoing | epoch + 1, the transaction is aborted; CONCURRENT_TRANSACTIONS: retry |
| PrepareCommit, PrepareAbort | CONCURRENT_TRANSACTIONS |

A producer that sends its id and epoch (KIP-360) is fenced unless they are the latest ones, or
those of a request that it repeats.

Source: TransactionCoordinator.handleInitProducerId of 3.9.1; TXN-6; KIP-360.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

from engine.errors import ApiError
from engine.host.coroutine import drive
from engine.host.promise import Promise
from engine.kafka_errors import (
    CONCURRENT_TRANSACTIONS,
    INVALID_REQUEST,
    INVALID_TRANSACTION_TIMEOUT,
    PRODUCER_FENCED,
    UNKNOWN_SERVER_ERROR,
)
from engine.naming import fits_coordinator_key
from engine.transactions.ports import TransactionPorts, TransactionSettings
from engine.transactions.registry import TransactionRegistry
from engine.transactions.states import PREPARED, TransactionState
from engine.transactions.transaction import (
    NO_EPOCH,
    NO_PRODUCER_ID,
    Transaction,
    Transition,
    is_epoch_exhausted,
)
from engine.transactions.transaction_ends import TransactionEnds
from engine.transactions.transaction_store import TransactionStore

_log = logging.getLogger("kafka.coordinator.transaction.TransactionCoordinator")


class ProducerOfEpoch(NamedTuple):
    """A producer id and its epoch."""

    producer_id: int
    epoch: int


class InitResult(NamedTuple):
    """The response of InitProducerId: an error code, or 0 with the producer's id and epoch."""

    error_code: int
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_EPOCH


class Producers:
    """Serves InitProducerId of transactional ids."""

    def __init__(
        self,
        registry: TransactionRegistry,
        store: TransactionStore,
        ends: TransactionEnds,
        settings: TransactionSettings,
        ports: TransactionPorts,
    ) -> None:
        """Create the handler of InitProducerId.

        `ports.new_producer_id` raises ApiError while no id is available.
        """
        self._registry = registry
        self._store = store
        self._ends = ends
        self._settings = settings
        self._clock = ports.clock
        self._new_producer_id = ports.new_producer_id

    def init_producer(
        self, transactional_id: str, timeout_ms: int, expected: ProducerOfEpoch | None
    ) -> Promise[InitResult]:
        """Promise a producer id and epoch for a transactional id (InitProducerId).

        Earlier epochs are fenced. `expected` is the producer id and epoch that the client sent to
        get the next epoch (KIP-360), None if it sent none.

        Differs: a transactional id that is too long for a record is refused before it is
        registered; Kafka fails at the write, with the same error, and keeps the id for ever.
        """
        if not transactional_id:
            return Promise.of(InitResult(INVALID_REQUEST))
        if not fits_coordinator_key(transactional_id):
            return Promise.of(InitResult(UNKNOWN_SERVER_ERROR))
        if not 0 < timeout_ms <= self._settings.transaction_max_timeout_ms:
            return Promise.of(InitResult(INVALID_TRANSACTION_TIMEOUT))
        return drive(self._init_producer(transactional_id, timeout_ms, expected))

    async def _init_producer(
        self, transactional_id: str, timeout_ms: int, expected: ProducerOfEpoch | None
    ) -> InitResult:
        """Write the next epoch of a transactional id and return it with the producer id.

        If a transaction is open, it is aborted first and the result is CONCURRENT_TRANSACTIONS: the
        client retries.
        """
        code, coordinator_epoch, transaction = self._registry.find(transactional_id)
        if code:
            return InitResult(code)
        try:
            if transaction is None:
                transaction = self._register(transactional_id, timeout_ms)
            transition = self._prepare_transition(transaction, timeout_ms, expected)
        except ApiError as error:
            return InitResult(error.code)
        if isinstance(transition, int):
            return InitResult(transition)
        if transition.state is TransactionState.PREPARE_EPOCH_FENCE:
            code = await self._ends.abort_fenced(transaction, transition)
            return InitResult(code or CONCURRENT_TRANSACTIONS)
        code = await self._store.write(transactional_id, coordinator_epoch, transition)
        if code:
            return InitResult(code)
        _log.info(
            "Initialized transactionalId %s with producerId %d and producer epoch %d on partition "
            "__transaction_state-%d",
            transactional_id,
            transition.producer_id,
            transition.producer_epoch,
            self._registry.partition_of(transactional_id),
        )
        return InitResult(0, transition.producer_id, transition.producer_epoch)

    def _register(self, transactional_id: str, timeout_ms: int) -> Transaction:
        """Register and return a new transactional id with a new producer id.

        Raises ApiError if no producer id is available.
        """
        now_ms = self._clock.wall_ms()
        transaction = Transaction(transactional_id, self._new_producer_id(), timeout_ms, now_ms)
        self._registry.add(transaction)
        return transaction

    def _prepare_transition(
        self, transaction: Transaction, timeout_ms: int, expected: ProducerOfEpoch | None
    ) -> Transition | int:
        """Prepare and return the transition to the next epoch or producer id, or an error code.

        For an open transaction it is PrepareEpochFence, which its abort follows.
        """
        if transaction.pending_state is not None:
            return CONCURRENT_TRANSACTIONS
        if expected is not None and not _is_known(transaction, expected):
            return PRODUCER_FENCED
        if transaction.state in PREPARED:
            return CONCURRENT_TRANSACTIONS
        if transaction.state is TransactionState.ONGOING:
            return transaction.prepare_fence()
        now_ms = self._clock.wall_ms()
        if transaction.is_epoch_exhausted and (
            expected is None or expected.epoch == transaction.producer_epoch
        ):
            return transaction.next_producer_id(
                self._new_producer_id(), timeout_ms, now_ms, keeps_last_epoch=expected is not None
            )
        epoch = None if expected is None else expected.epoch
        return transaction.next_epoch(timeout_ms, epoch, now_ms) or PRODUCER_FENCED


def _is_known(transaction: Transaction, expected: ProducerOfEpoch) -> bool:
    """Return True if the client's producer id is the one of the transactional id.

    Also True if the id has no epoch yet, or for the previous producer id with an exhausted epoch.
    """
    return (
        transaction.producer_epoch == NO_EPOCH
        or expected.producer_id == transaction.producer_id
        or (
            expected.producer_id == transaction.previous_producer_id
            and is_epoch_exhausted(expected.epoch)
        )
    )
