"""The transaction coordinator of the `__transaction_state` partitions that this broker leads.

```
 Producers ─ InitProducerId ──────────────┐
 Transactions ─ partitions, verify, end ──┼─> TransactionRegistry ─> Transaction
 TransactionAdmin ─ list, describe ───────┘        ^        │
 elected, resigned ────────────────────────────────┘        └─ TransactionMarkers ─> leaders
```

Source: TransactionCoordinator of 3.9.1; D14.
"""

from __future__ import annotations

from collections.abc import Iterable

from engine.host.turns import LoopTurns
from engine.transactions.markers import TransactionMarkers
from engine.transactions.ports import TransactionPorts, TransactionSettings
from engine.transactions.producers import Producers
from engine.transactions.registry import TransactionRegistry
from engine.transactions.transaction import Transaction
from engine.transactions.transaction_admin import TransactionAdmin
from engine.transactions.transaction_ends import TransactionEnds
from engine.transactions.transaction_partitions import TransactionPartitions
from engine.transactions.transaction_store import TransactionStore


class TransactionCoordinator:
    """The transaction coordinator of one broker; its parts serve the requests."""

    def __init__(
        self, settings: TransactionSettings, ports: TransactionPorts, turns: LoopTurns
    ) -> None:
        """Create the transaction coordinator and its parts, without any transactions.

        Transactions are loaded when this broker becomes the leader of a partition of
        `__transaction_state`.
        """
        clock = ports.clock
        self.registry = TransactionRegistry(
            ports.log, turns, on_prepared=self._send_markers, on_unloaded=self._unloaded
        )
        store = TransactionStore(self.registry, ports.log)
        self.markers = TransactionMarkers(self.registry, store, ports)
        self.ends = TransactionEnds(self.registry, store, self.markers, clock, ports.timers)
        self.partitions = TransactionPartitions(self.registry, store, clock)
        self.producers = Producers(self.registry, store, self.ends, settings, ports)
        self.admin = TransactionAdmin(self.registry, ports.log, settings, clock)
        self._clock = clock

    def stop(self) -> None:
        """Unload all transactions and send no more markers; pending requests get no response.

        The caller closes the connections of these requests.
        """
        self.registry.stop()
        self.markers.stop()

    def _send_markers(self, coordinator_epoch: int, transaction: Transaction) -> None:
        """Continue a transaction that was loaded in PrepareCommit or PrepareAbort.

        Its markers are sent.
        """
        self.ends.resume(coordinator_epoch, transaction)

    def _unloaded(self, transactional_ids: Iterable[str]) -> None:
        """Drop the unsent markers of ids that this broker coordinates no longer."""
        self.markers.forget(transactional_ids)
