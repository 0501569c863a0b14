"""The administration of transactional ids: list, describe, expire.

Source: TransactionStateManager.listTransactionStates, removeExpiredTransactionalIds,
TransactionCoordinator.handleDescribeTransactions of 3.9.1; KIP-664.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from engine.hash_order import in_immutable_set_order
from engine.host.ports import Clock
from engine.host.promise import Promise
from engine.kafka_errors import (
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    INVALID_REQUEST,
    TRANSACTIONAL_ID_NOT_FOUND,
)
from engine.model import TopicPartition
from engine.transactions.ports import TransactionLog, TransactionSettings
from engine.transactions.records import transaction_tombstone
from engine.transactions.registry import TransactionRegistry
from engine.transactions.states import TransactionState
from engine.transactions.transaction import Transaction
from engine.wire.scala_set import scala_order

_STATE_NAMES = {state.value: state for state in TransactionState}


class ListedTransaction(NamedTuple):
    """One entry of ListTransactions."""

    transactional_id: str
    producer_id: int
    state: str


class TransactionFilter(NamedTuple):
    """The filter of ListTransactions; an empty collection selects all.

    `longer_than_ms`: only transactions that began more than this long ago (exclusive); −1: all.
    """

    states: Collection[str] = ()
    producer_ids: Collection[int] = ()
    longer_than_ms: int = -1


class TransactionList(NamedTuple):
    """The response of ListTransactions; `unknown_states` are filter names that are no states."""

    error_code: int
    unknown_states: tuple[str, ...] = ()
    transactions: tuple[ListedTransaction, ...] = ()


class DescribedTransaction(NamedTuple):
    """The response of DescribeTransactions for one id; partitions in Kafka's hash set order."""

    error_code: int
    state: str = ""
    producer_id: int = -1
    producer_epoch: int = -1
    timeout_ms: int = 0
    start_ms: int = -1
    partitions: tuple[TopicPartition, ...] = ()


class TransactionAdmin:
    """Lists, describes and expires transactional ids."""

    def __init__(
        self,
        registry: TransactionRegistry,
        log: TransactionLog,
        settings: TransactionSettings,
        clock: Clock,
    ) -> None:
        self._registry = registry
        self._log = log
        self._settings = settings
        self._clock = clock

    def list(self, wanted: TransactionFilter) -> TransactionList:
        """Return the transactional ids of this coordinator that pass the filter (ListTransactions).

        The result also has the states of the filter that do not exist.
        """
        if self._registry.is_stopped:
            return TransactionList(COORDINATOR_NOT_AVAILABLE)
        if self._registry.is_loading:
            return TransactionList(COORDINATOR_LOAD_IN_PROGRESS)
        states = in_immutable_set_order(dict.fromkeys(wanted.states))
        unknown = tuple(state for state in states if state not in _STATE_NAMES)
        now_ms = self._clock.wall_ms()
        return TransactionList(
            0,
            unknown,
            tuple(
                ListedTransaction(found.transactional_id, found.producer_id, found.state.value)
                for found in self._registry.in_hash_order()
                if _is_wanted(found, wanted, now_ms)
            ),
        )

    def describe(self, transactional_id: str) -> DescribedTransaction:
        """Return the state of a transactional id, or an error code (DescribeTransactions)."""
        if self._registry.is_stopped:
            return DescribedTransaction(COORDINATOR_NOT_AVAILABLE)
        if not transactional_id:
            return DescribedTransaction(INVALID_REQUEST)
        code, _, transaction = self._registry.find(transactional_id)
        if code:
            return DescribedTransaction(code)
        if transaction is None:
            return DescribedTransaction(TRANSACTIONAL_ID_NOT_FOUND)
        return DescribedTransaction(
            0,
            transaction.state.value,
            transaction.producer_id,
            transaction.producer_epoch,
            transaction.timeout_ms,
            transaction.start_ms,
            tuple(scala_order([list(transaction.partitions)])),
        )

    def expire_ids(self) -> Iterator[None]:
        """Remove the transactional ids that were unused for transactional.id.expiration.ms.

        A generator that checks one id for each step.
        """
        for transaction in self._registry.transactions():
            now_ms = self._clock.wall_ms()
            # If the partition was loaded again meanwhile, the id may be in use there.
            if transaction.is_expired(
                now_ms, self._settings.transactional_id_expiration_ms
            ) and self._registry.is_current(transaction):
                self._expire_id(transaction)
            yield

    def _expire_id(self, transaction: Transaction) -> None:
        """Append the tombstone of an unused id; the id is removed once it is written."""
        transaction.expire()
        written = self._log.append(
            self._registry.partition_of(transaction.transactional_id),
            (transaction_tombstone(transaction.transactional_id),),
            timeout_ms=self._settings.request_timeout_ms,
        )
        written.watch(lambda: self._remove_if_written(transaction, written))

    def _remove_if_written(self, transaction: Transaction, written: Promise[int]) -> None:
        """Remove an id if its tombstone was written.

        Otherwise the pending state is cleared for a later attempt.
        """
        if written.error is None and written.result() == 0:
            self._registry.remove(transaction)
        else:
            transaction.pending_state = None


def _is_wanted(transaction: Transaction, wanted: TransactionFilter, now_ms: int) -> bool:
    """Return True if a transaction passes all filters of ListTransactions."""
    return (
        (not wanted.producer_ids or transaction.producer_id in wanted.producer_ids)
        and (not wanted.states or transaction.state.value in wanted.states)
        and (wanted.longer_than_ms < 0 or now_ms - transaction.start_ms > wanted.longer_than_ms)
    )
