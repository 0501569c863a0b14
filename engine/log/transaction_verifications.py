"""Verify the first batch of a transaction with the coordinator before it is written. Pure.

```
 first batch of a transaction ── begin ──> verify: is the partition in the transaction?
   │                                        │ yes, and the verification is open ──> written
   │ marker, or a later epoch               └ else ──> refused
   └──────────────────────────────> verification ended: the coordinator's answer is ignored
```

Without verification, a batch that arrives after the marker of its transaction would start a
transaction that never ends: the last stable offset would never rise again.

Source: VerificationStateEntry, ProducerStateManager.maybeCreateVerificationStateEntry of 3.9.1;
TXN-8, T7; KIP-890.
"""

from __future__ import annotations


class Verification:
    """One request to the coordinator; all first batches of a producer's epoch share it."""

    __slots__ = ("epoch", "last_batch_ms", "lowest_sequence")

    def __init__(self, epoch: int, lowest_sequence: int, last_batch_ms: int) -> None:
        """Create a verification; `lowest_sequence` is the lowest base sequence of its batches."""
        self.epoch = epoch
        self.lowest_sequence = lowest_sequence
        #: Time at which a batch last shared this verification (wall clock).
        self.last_batch_ms = last_batch_ms


class TransactionVerifications:
    """The open verifications of one log, by producer id."""

    __slots__ = ("_open",)

    def __init__(self) -> None:
        self._open: dict[int, Verification] = {}

    def __len__(self) -> int:
        return len(self._open)

    def get_or_open(
        self, producer_id: int, epoch: int, base_sequence: int, *, now_ms: int
    ) -> Verification:
        """Return the open verification of a producer's transaction, or open one (KIP-890).

        The coordinator must confirm that the partition belongs to the transaction. Batches of one
        epoch share a verification, and its lowest sequence is the least of theirs. `now_ms` is wall
        time.
        """
        known = self._open.get(producer_id)
        if known is None or known.epoch < epoch:
            known = self._open[producer_id] = Verification(epoch, base_sequence, now_ms)
        elif known.epoch == epoch:
            known.lowest_sequence = min(known.lowest_sequence, base_sequence)
            known.last_batch_ms = now_ms
        return known

    def is_open(self, producer_id: int, verification: Verification) -> bool:
        """Return True if a verification was not ended or replaced since `get_or_open`."""
        return self._open.get(producer_id) is verification

    def end(self, producer_id: int) -> None:
        """End a producer's verification, because its transaction has started or ended."""
        self._open.pop(producer_id, None)

    def remove_expired(self, *, now_ms: int, expiration_ms: int) -> None:
        """Remove verifications that no batch has shared for `expiration_ms`.

        Most of these got an error from the coordinator.

        Differs: Kafka counts from the first batch that shares a verification.
        """
        expired = [
            producer_id
            for producer_id, verification in self._open.items()
            if now_ms - verification.last_batch_ms >= expiration_ms
        ]
        for producer_id in expired:
            del self._open[producer_id]

    def clear(self) -> None:
        """Remove all verifications."""
        self._open.clear()
