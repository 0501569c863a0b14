"""The transactional ids of the partitions that this broker leads, loaded from their logs.

```
 leader of a partition ── loading: read it to its end ── owned: its ids are served
                              │ 14 LOAD_IN_PROGRESS         │
 resigned ────────────────────┴──────> 16 NOT_COORDINATOR <─┘
```

1. Read the log from its start: the last record of each id counts, a tombstone removes the id.
2. Wait until the high watermark has reached the end of what was read: no other leader can truncate
   it then. A marker, or an answer without a write, would outlive a record that is truncated.
3. Own the partition in its leader epoch, unless the broker resigned or a later load began.
4. Send the markers of the ids in PrepareCommit and PrepareAbort again.

The leader epoch of the partition is the coordinator epoch of all later writes. If the same broker
leads the partition in a later epoch, it loads it again, as in Kafka.

Source: TransactionStateManager.loadTransactionsForTxnTopicPartition of 3.9.1; D14, G3.
Differs: Kafka serves what it has read before it is committed (step 2). Until then every write of a
coordinator waits, so that clients get COORDINATOR_LOAD_IN_PROGRESS where Kafka lets them wait.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

from engine.coordinator_loads import CoordinatorLoad, CoordinatorLoads
from engine.hash_order import in_concurrent_hash_order
from engine.host.coroutine import drive
from engine.host.turns import LoopTurns
from engine.kafka_errors import (
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    NOT_COORDINATOR,
)
from engine.limits import LOADED_IDS_POLL_MS
from engine.model import new_tuple
from engine.naming import TRANSACTION_STATE, coordinator_partition
from engine.transactions.ports import TransactionLog
from engine.transactions.records import (
    TransactionRecord,
    UnknownTransactionRecord,
    decode_transaction_record,
)
from engine.transactions.states import PREPARED
from engine.transactions.transaction import Transaction

_log = logging.getLogger("kafka.coordinator.transaction.TransactionStateManager")


class Found(NamedTuple):
    """The result of `TransactionRegistry.find`: an error code, or the coordinator epoch.

    `transaction` is None after an error and for an id without a record.
    """

    error_code: int
    coordinator_epoch: int = -1
    transaction: Transaction | None = None


class _Owned(NamedTuple):
    """The transactions of one loaded partition, by transactional id."""

    coordinator_epoch: int
    transactions: dict[str, Transaction]


class TransactionRegistry:
    """The transactional ids that this broker coordinates."""

    def __init__(
        self,
        log: TransactionLog,
        turns: LoopTurns,
        *,
        on_prepared: Callable[[int, Transaction], None],
        on_unloaded: Callable[[Iterable[str]], None],
    ) -> None:
        """Create a registry without loaded partitions.

        `on_prepared(coordinator_epoch, transaction)` is called for each loaded transaction in
        PrepareCommit or PrepareAbort. `on_unloaded` gets the ids of a partition that is unloaded.
        """
        self._log = log
        self._turns = turns
        self._on_prepared, self._on_unloaded = on_prepared, on_unloaded
        #: Transactions and coordinator epoch of each partition that is completely loaded.
        self._owned: dict[int, _Owned] = {}
        #: Partitions that are being loaded.
        self._loads = CoordinatorLoads(TRANSACTION_STATE, turns, _log)
        self._is_stopped = False

    def partition_of(self, transactional_id: str) -> int:
        """Return the partition of `__transaction_state` to which a transactional id belongs."""
        return coordinator_partition(transactional_id, self._log.partition_count())

    @property
    def is_loading(self) -> bool:
        """True if at least one partition is being loaded."""
        return bool(self._loads)

    @property
    def is_stopped(self) -> bool:
        """True after `stop` was called."""
        return self._is_stopped

    def find(self, transactional_id: str) -> Found:
        """Return the transaction of an id and its coordinator epoch, or an error code.

        Codes: COORDINATOR_NOT_AVAILABLE after `stop`, COORDINATOR_LOAD_IN_PROGRESS,
        NOT_COORDINATOR. An id that no producer has used has code 0 and the transaction None.
        """
        if self._is_stopped:
            return Found(COORDINATOR_NOT_AVAILABLE)
        partition = self.partition_of(transactional_id)
        owned = self._owned.get(partition)
        if owned is None:
            # A partition that is being loaded is not owned.
            is_loading = partition in self._loads
            return Found(COORDINATOR_LOAD_IN_PROGRESS if is_loading else NOT_COORDINATOR)
        coordinator_epoch, transactions = owned
        found = (0, coordinator_epoch, transactions.get(transactional_id))
        return new_tuple(Found, found)

    def add(self, transaction: Transaction) -> None:
        """Register a new transaction; the partition of its id must be loaded."""
        partition = self.partition_of(transaction.transactional_id)
        self._owned[partition].transactions[transaction.transactional_id] = transaction

    def remove(self, transaction: Transaction) -> None:
        """Remove a transaction that has expired, unless its partition was reloaded."""
        if self.is_current(transaction):
            partition = self.partition_of(transaction.transactional_id)
            del self._owned[partition].transactions[transaction.transactional_id]

    def is_current(self, transaction: Transaction) -> bool:
        """Return True if `transaction` is the object that is registered for its id."""
        return self.find(transaction.transactional_id).transaction is transaction

    def transactions(self) -> Iterator[Transaction]:
        """Yield all registered transactions, for periodic tasks that pause between them.

        Each partition is copied when its turn comes, so that changes meanwhile do no harm.
        """
        for owned in tuple(self._owned.values()):
            yield from tuple(owned.transactions.values())

    def in_hash_order(self) -> Iterator[Transaction]:
        """Yield all transactions in the order in which Kafka lists them: by partition and hash."""
        for _, owned in sorted(self._owned.items()):
            by_id = owned.transactions
            yield from [by_id[name] for name in in_concurrent_hash_order(by_id)]

    # Partitions

    def on_elected(self, partition: int, leader_epoch: int) -> None:
        """Load a partition's transactions, because this broker became its leader in `leader_epoch`.

        Does nothing if the partition is loaded or being loaded in that epoch or a later one.
        """
        owned = self._owned.get(partition)
        if self._is_stopped or (owned is not None and owned.coordinator_epoch >= leader_epoch):
            return
        present = self._loads.get(partition)
        if present is not None and present.leader_epoch >= leader_epoch:
            return
        self.on_resigned(partition)
        drive(self._load_partition(self._loads.begin(partition, leader_epoch)))

    def on_resigned(self, partition: int) -> None:
        """Unload a partition's transactions, because this broker is not its leader any more."""
        self._loads.end(partition)
        owned = self._owned.pop(partition, None)
        if owned is not None:
            self._on_unloaded(owned.transactions)

    def stop(self) -> None:
        """Unload all partitions; `find` returns COORDINATOR_NOT_AVAILABLE from now on."""
        self._is_stopped = True
        self._loads.end_all()
        self._owned.clear()

    async def _load_partition(self, load: CoordinatorLoad) -> None:
        """Read a partition's log and register its transactions once all of it is committed.

        Then the prepared ones are passed to `on_prepared`. Ends early when the broker resigns or a
        later epoch's load begins.
        """
        # 1
        loaded = await self._loads.read_partition(
            load, _no_transactions, self._log.read, _apply_record
        )
        # 2
        if loaded is None:
            return
        partition, leader_epoch = load.partition, load.leader_epoch
        end_offset = self._log.end_offset(partition)
        while not self._log.is_committed(partition, end_offset):
            await self._turns.pause(LOADED_IDS_POLL_MS)
            if not self._loads.is_current(load):
                return
        # 3
        self._loads.end(partition)
        owned = self._owned[partition] = _Owned(leader_epoch, loaded)
        # 4
        await self._turns.each(
            self._iter_prepared(partition, owned), partial(self._on_prepared, leader_epoch)
        )

    def _iter_prepared(self, partition: int, owned: _Owned) -> Iterator[Transaction]:
        """Yield the loaded transactions whose markers have to be sent, while `owned` is current.

        They are in PrepareCommit or PrepareAbort; no request changes their state before that.
        """
        prepared = [one for one in owned.transactions.values() if one.state in PREPARED]
        for transaction in prepared:
            if self._owned.get(partition) is not owned:
                return
            yield transaction


def _no_transactions() -> dict[str, Transaction]:
    """Return the empty state with which the reading of a partition's log begins."""
    return {}


def _apply_record(loaded: dict[str, Transaction], entry: tuple[int, TransactionRecord]) -> None:
    """Apply one record of the log to the transactions in `loaded`; a tombstone removes its id.

    A record that cannot be decoded is skipped with a warning.
    """
    log_offset, record = entry
    try:
        transactional_id, transaction = decode_transaction_record(record)
    except UnknownTransactionRecord as error:
        _log.warning("offset %d of __transaction_state is passed over: %s", log_offset, error)
        return
    if transaction is None:
        loaded.pop(transactional_id, None)
    else:
        loaded[transactional_id] = transaction
