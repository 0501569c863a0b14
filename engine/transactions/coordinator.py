"""The transaction coordinator: ids whose partition of `__transaction_state` this broker leads.

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
    """Coordinates transactions; its parts serve the requests."""

    def __init__(
        self, settings: TransactionSettings, ports: TransactionPorts, turns: LoopTurns
    ) -> None:
        """Create the parts.

        Transactions are loaded when a partition of their topic gets its leader here.
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
        """Coordinate nothing any more; waiting requests get no response, as connections end."""
        self.registry.stop()
        self.markers.stop()

    def _send_markers(self, coordinator_epoch: int, transaction: Transaction) -> None:
        """Continue an end that another coordinator had prepared before."""
        self.ends.resume(coordinator_epoch, transaction)

    def _unloaded(self, transactional_ids: Iterable[str]) -> None:
        """Send no more markers for ids that another broker coordinates now."""
        self.markers.forget(transactional_ids)
