"""The state of the producers of one log: sequences, epochs, open transactions. Pure.

```
producer id -> epoch, last 5 batches (last sequence, last offset, offset delta, time),
               first offset of its open transaction, epoch of its transaction coordinator
ongoing     -> first offset of each open transaction
completed   -> first and marker's offset of transactions whose marker is not below the HW yet
```

A leader checks before it writes (`find_duplicate`, `check_marker`), and every replica records the
written batches (`append_data`, `append_marker`, `apply_batch`). A leader's rules for an append by a
client:

| received                                     | result                                        |
|----------------------------------------------|-----------------------------------------------|
| both sequences of one of the last 5 batches  | that batch's offsets, nothing is written      |
| an epoch below the producer's                | InvalidProducerEpoch 47                       |
| a new epoch, sequence ≠ 0, producer known    | OutOfOrderSequence 45                         |
| the same epoch, not the next sequence        | OutOfOrderSequence 45; 0 follows 2^31 − 1     |
| an unknown producer, any sequence            | accepted: its records may be deleted          |
| plain records inside an open transaction     | InvalidTxnState 48                            |

Appends by a coordinator are checked only for the epoch, replicated appends are not checked.
UNKNOWN_PRODUCER_ID 59 is never returned, as in 3.9.

Source: TXN-4, T5; Kafka's ProducerStateManager, ProducerAppendInfo, ProducerStateEntry.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import NamedTuple, TypeAlias

from engine.errors import ApiError, CorruptRecord
from engine.kafka_errors import (
    INVALID_PRODUCER_EPOCH,
    INVALID_TXN_STATE,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    TRANSACTION_COORDINATOR_FENCED,
)
from engine.limits import PRODUCER_BATCHES_KEPT
from engine.log.producer_snapshot import ProducerEntry
from engine.log.transaction_verifications import TransactionVerifications, Verification
from engine.log.txn_index import AbortedTransaction
from engine.records.batch import BatchView
from engine.records.control import ControlType, EndTransactionMarker, parse_marker
from engine.records.record import NO_SEQUENCE, NO_TIMESTAMP, SEQUENCE_MAX

#: A transaction marker and its time; None for other control batches.
Marked: TypeAlias = tuple[EndTransactionMarker | None, int]

NO_EPOCH = -1
#: Value of `txn_first_offset` without an open transaction.
NO_OFFSET = -1
_SEQUENCES = SEQUENCE_MAX + 1


class AppendOrigin(Enum):
    """The origin of an append, which determines the checks."""

    CLIENT = "client"
    COORDINATOR = "coordinator"
    REPLICATION = "replication"


class InvalidProducerEpoch(ApiError):
    """INVALID_PRODUCER_EPOCH: a batch has an older epoch than the latest one of its producer id.

    Another producer has taken over the id.
    """

    def __init__(self, producer_id: int, epoch: int, current_epoch: int) -> None:
        super().__init__(
            INVALID_PRODUCER_EPOCH,
            f"producer {producer_id} wrote with epoch {epoch}, its epoch is {current_epoch}",
        )
        self.producer_id = producer_id
        self.epoch = epoch
        self.current_epoch = current_epoch


class OutOfOrderSequence(ApiError):
    """OUT_OF_ORDER_SEQUENCE_NUMBER: a producer's batch does not continue its sequence."""

    def __init__(self, producer_id: int, sequence: int, last_sequence: int) -> None:
        super().__init__(
            OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {producer_id} sent sequence {sequence} after {last_sequence}",
        )
        self.producer_id = producer_id
        self.sequence = sequence
        self.last_sequence = last_sequence


class InvalidTxnState(ApiError):
    """A producer with an open transaction sent a batch that is not transactional."""

    def __init__(self, producer_id: int, first_offset: int) -> None:
        super().__init__(
            INVALID_TXN_STATE,
            f"producer {producer_id} has a transaction open since offset {first_offset}",
        )
        self.producer_id = producer_id
        self.first_offset = first_offset


class TransactionNotVerified(ApiError):
    """A batch would start a transaction to which its partition was not added (KIP-890)."""

    def __init__(self, producer_id: int, epoch: int) -> None:
        super().__init__(INVALID_TXN_STATE, "Record was not part of an ongoing transaction")
        self.producer_id = producer_id
        self.epoch = epoch


class TransactionCoordinatorFenced(ApiError):
    """TRANSACTION_COORDINATOR_FENCED: a coordinator of an older epoch sent a transaction marker."""

    def __init__(self, producer_id: int, epoch: int, current_epoch: int) -> None:
        super().__init__(
            TRANSACTION_COORDINATOR_FENCED,
            f"marker for producer {producer_id} by coordinator epoch {epoch}, "
            f"the last one was {current_epoch}",
        )
        self.producer_id = producer_id
        self.epoch = epoch
        self.current_epoch = current_epoch


class WrittenBatch(NamedTuple):
    """The sequence, offsets and time of a producer's batch in the log."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp_ms: int

    @property
    def first_sequence(self) -> int:
        """Return the sequence of the batch's first record."""
        return (self.last_sequence - self.offset_delta) % _SEQUENCES

    @property
    def first_offset(self) -> int:
        """Return the offset of the batch's first record."""
        return self.last_offset - self.offset_delta


class KnownProducer:
    """One producer's state; only `ProducerState` changes it."""

    __slots__ = ("batches", "coordinator_epoch", "epoch", "last_timestamp_ms", "txn_first_offset")

    def __init__(self) -> None:
        """Create a producer without epoch and batches."""
        self.epoch = NO_EPOCH
        #: Epoch of the transaction coordinator that sent the last marker, −1 without a marker.
        self.coordinator_epoch = -1
        self.last_timestamp_ms = NO_TIMESTAMP
        #: First offset of the open transaction, NO_OFFSET without one.
        self.txn_first_offset = NO_OFFSET
        #: The last batches, oldest first; a batch that repeats one of them is a duplicate.
        self.batches: list[WrittenBatch] = []

    @property
    def last_sequence(self) -> int:
        """Return the last sequence written in the current epoch, −1 without one."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    def enter_epoch(self, epoch: int) -> None:
        """Set the epoch; a change removes the batches of the earlier epoch."""
        if self.epoch != epoch:
            self.batches.clear()
            self.epoch = epoch

    def to_entry(self, producer_id: int) -> ProducerEntry:
        """Return the producer's entry for a snapshot."""
        last = self.batches[-1] if self.batches else WrittenBatch(-1, -1, 0, -1)
        return ProducerEntry(
            producer_id,
            self.epoch,
            last.last_sequence,
            last.last_offset,
            last.offset_delta,
            self.last_timestamp_ms,
            self.coordinator_epoch,
            self.txn_first_offset,
        )


class CompletedTransaction(NamedTuple):
    """A transaction that a marker has ended; `last_offset` is the marker's offset."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool
    last_stable_offset: int

    def to_index_entry(self) -> AbortedTransaction:
        """Return the entry of the transaction index for this aborted transaction."""
        return AbortedTransaction(
            self.producer_id, self.first_offset, self.last_offset, self.last_stable_offset
        )


class ProducerState:
    """The producers of one log up to an offset (Kafka's `lastMapOffset`)."""

    def __init__(self) -> None:
        """Begin without producers."""
        self._producers: dict[int, KnownProducer] = {}
        #: First offset of each open transaction, by producer id. They rise as they are added: the
        #: first one is the lowest.
        self._ongoing: dict[int, int] = {}
        #: First and last offset of transactions that have ended above the high watermark: they
        #: still hold the last stable offset back.
        self._completed: dict[int, int] = {}
        #: Verifications by coordinators of transactions that would begin here (KIP-890).
        self.verifications = TransactionVerifications()

    def __len__(self) -> int:
        return len(self._producers)

    @property
    def producers(self) -> Mapping[int, KnownProducer]:
        """Return the state of each producer, by producer id."""
        return self._producers

    # The checks of a leader before it writes

    def has_open_transaction(self, producer_id: int, epoch: int) -> bool:
        """Return True if the producer has an open transaction in this epoch."""
        producer = self._producers.get(producer_id)
        return (
            producer is not None
            and producer.epoch == epoch
            and producer.txn_first_offset != NO_OFFSET
        )

    def check_verified(
        self, producer_id: int, verification: Verification, base_sequence: int
    ) -> None:
        """Raise an error for a batch that may not start a transaction (KIP-890).

        TransactionNotVerified without the coordinator's confirmation `verification`;
        OutOfOrderSequence above its lowest sequence. A batch of an open transaction is accepted.
        Source: TXN-8.
        """
        if self.has_open_transaction(producer_id, verification.epoch):
            return
        if not self.verifications.is_open(producer_id, verification):
            raise TransactionNotVerified(producer_id, verification.epoch)
        if base_sequence > verification.lowest_sequence:
            raise OutOfOrderSequence(producer_id, base_sequence, verification.lowest_sequence)

    def find_duplicate(
        self,
        producer_id: int,
        epoch: int,
        base_sequence: int,
        last_sequence: int,
        *,
        is_transactional: bool,
        origin: AppendOrigin,
    ) -> WrittenBatch | None:
        """Return the stored batch that a client's batch repeats, None if it may be written.

        Raises InvalidProducerEpoch, OutOfOrderSequence, InvalidTxnState.

        Source: T4, T6.
        """
        producer = self._producers.get(producer_id)
        if producer is None:
            if epoch < NO_EPOCH:
                raise InvalidProducerEpoch(producer_id, epoch, NO_EPOCH)
            return None
        if origin is AppendOrigin.CLIENT and epoch == producer.epoch:
            for batch in producer.batches:
                if batch.last_sequence == last_sequence and batch.first_sequence == base_sequence:
                    return batch
        if epoch < producer.epoch:
            raise InvalidProducerEpoch(producer_id, epoch, producer.epoch)
        if origin is AppendOrigin.CLIENT:
            _check_sequence(producer_id, producer, epoch, base_sequence)
        if producer.txn_first_offset != NO_OFFSET and not is_transactional:
            raise InvalidTxnState(producer_id, producer.txn_first_offset)
        return None

    def check_marker(self, producer_id: int, epoch: int, coordinator_epoch: int) -> None:
        """Raise InvalidProducerEpoch or TransactionCoordinatorFenced for an outdated marker.

        Source: T3.
        """
        producer = self._producers.get(producer_id) or KnownProducer()
        if epoch < producer.epoch:
            raise InvalidProducerEpoch(producer_id, epoch, producer.epoch)
        if coordinator_epoch < producer.coordinator_epoch:
            raise TransactionCoordinatorFenced(
                producer_id, coordinator_epoch, producer.coordinator_epoch
            )

    # The batches that were written

    def append_data(
        self,
        producer_id: int,
        epoch: int,
        written: WrittenBatch,
        *,
        is_transactional: bool,
    ) -> None:
        """Record a written batch of a producer: later batches are checked against its sequences.

        The first batch of a transaction also opens it: the last stable offset stays below.
        """
        producer = self._producers.get(producer_id)
        if producer is None:
            producer = self._producers[producer_id] = KnownProducer()
        if producer.epoch != epoch:
            producer.enter_epoch(epoch)
        batches = producer.batches
        if len(batches) == PRODUCER_BATCHES_KEPT:
            del batches[0]
        batches.append(written)
        producer.last_timestamp_ms = written.timestamp_ms
        if is_transactional and producer.txn_first_offset == NO_OFFSET:
            producer.txn_first_offset = written.first_offset
            self.verifications.end(producer_id)
            self._ongoing[written.first_offset] = producer_id

    def append_marker(
        self,
        producer_id: int,
        epoch: int,
        marker: EndTransactionMarker,
        *,
        offset: int,
        timestamp_ms: int,
    ) -> CompletedTransaction | None:
        """Record the end of a transaction; return it, None if it had no records in this log."""
        producer = self._producers.get(producer_id)
        if producer is None:
            producer = self._producers[producer_id] = KnownProducer()
        self.verifications.end(producer_id)
        producer.enter_epoch(epoch)
        producer.coordinator_epoch = marker.coordinator_epoch
        producer.last_timestamp_ms = timestamp_ms
        first_offset = producer.txn_first_offset
        if first_offset == NO_OFFSET:
            return None
        producer.txn_first_offset = NO_OFFSET
        self._ongoing.pop(first_offset, None)
        self._completed[first_offset] = offset
        return CompletedTransaction(
            producer_id,
            first_offset,
            offset,
            marker.control_type is ControlType.ABORT,
            next(iter(self._ongoing), offset + 1),
        )

    def apply_batch(
        self, batch: BatchView, marked: Marked | None = None
    ) -> CompletedTransaction | None:
        """Record a batch without checks, as a follower or recovery does: its leader has checked it.

        `marked` is the result of `read_transaction_marker` for the batch, if the caller has it
        already. A control batch that ends no transaction (of a later Kafka, or emptied by the
        cleaner) changes nothing.
        """
        if not batch.has_producer_id:
            return None
        if batch.is_control:
            marker, timestamp_ms = marked or read_transaction_marker(batch)
            if marker is None:
                return None
            return self.append_marker(
                batch.producer_id,
                batch.producer_epoch,
                marker,
                offset=batch.base_offset,
                timestamp_ms=timestamp_ms,
            )
        self.append_data(
            batch.producer_id,
            batch.producer_epoch,
            WrittenBatch(
                batch.last_sequence,
                batch.last_offset,
                batch.last_offset_delta,
                batch.max_timestamp_ms,
            ),
            is_transactional=batch.is_transactional,
        )
        return None

    # Transactions as readers see them

    def first_unstable_offset(self, high_watermark: int) -> int | None:
        """Return the first offset of the oldest transaction that is open or not replicated.

        A transaction is not replicated if its marker is at or above the high watermark. None
        without one. Forgets transactions whose markers are below, because the high watermark never
        falls. Source: ProducerStateManager.firstUnstableOffset; TXN-5.
        """
        if self._completed:
            for first, last in list(self._completed.items()):
                if last < high_watermark:
                    del self._completed[first]
        undecided = next(iter(self._ongoing)) if self._ongoing else None
        if not self._completed:
            return undecided
        unreplicated = min(self._completed)
        return unreplicated if undecided is None else min(undecided, unreplicated)

    def oldest_open_timestamp_ms(self) -> int:
        """Return when the producer of the oldest open transaction last wrote, in ms; else −1."""
        for producer_id in self._ongoing.values():
            return self._producers[producer_id].last_timestamp_ms
        return NO_TIMESTAMP

    # Snapshots, expiry

    def to_entries(self) -> list[ProducerEntry]:
        """Return the entries of a snapshot, with only the last batch of each producer."""
        return [producer.to_entry(key) for key, producer in self._producers.items()]

    def load_entries(
        self, entries: Iterable[ProducerEntry], *, now_ms: int, expiration_ms: int
    ) -> None:
        """Replace all producers with the entries of a snapshot that have not expired.

        `now_ms` is the wall time; `expiration_ms` is `producer.id.expiration.ms`.
        """
        self.clear()
        for stored in entries:
            producer = KnownProducer()
            producer.epoch = stored.producer_epoch
            producer.coordinator_epoch = stored.coordinator_epoch
            producer.last_timestamp_ms = stored.timestamp
            producer.txn_first_offset = max(stored.current_txn_first_offset, NO_OFFSET)
            if stored.has_batch:
                producer.batches.append(
                    WrittenBatch(
                        stored.last_sequence,
                        stored.last_offset,
                        stored.offset_delta,
                        stored.timestamp,
                    )
                )
            if not _is_expired(producer, now_ms, expiration_ms):
                self._producers[stored.producer_id] = producer
        opened = [
            (producer.txn_first_offset, producer_id)
            for producer_id, producer in self._producers.items()
            if producer.txn_first_offset != NO_OFFSET
        ]
        self._ongoing = dict(sorted(opened))

    def clear(self) -> None:
        """Remove all producers, transactions and verifications."""
        self._producers.clear()
        self._ongoing.clear()
        self._completed.clear()
        self.verifications.clear()

    def take_over(self, replaced: ProducerState) -> bool:
        """Copy the state of the log that this future log replaces; both end at the same offset.

        Returns True if the state differs from the one that the future log's batches had made.
        """
        known = {entry.producer_id: entry for entry in self.to_entries()}
        self._producers = dict(replaced._producers)
        self._ongoing = dict(replaced._ongoing)
        self._completed = dict(replaced._completed)
        # A verification that was requested before the log moved may be answered afterwards.
        self.verifications = replaced.verifications
        return known != {entry.producer_id: entry for entry in self.to_entries()}

    def remove_expired(self, *, now_ms: int, expiration_ms: int) -> int:
        """Remove producers idle for producer.id.expiration.ms; return their number.

        A producer with an open transaction is kept. Verifications (KIP-890) expire by their own
        time, since one may be in progress for an idle producer.
        """
        expired = [
            producer_id
            for producer_id, producer in self._producers.items()
            if _is_expired(producer, now_ms, expiration_ms)
        ]
        for producer_id in expired:
            del self._producers[producer_id]
        self.verifications.remove_expired(now_ms=now_ms, expiration_ms=expiration_ms)
        return len(expired)


def read_transaction_marker(batch: BatchView) -> Marked:
    """Return the transaction marker in a control batch, and its time.

    (None, NO_TIMESTAMP) for a batch without a readable record.
    """
    try:
        for record in batch.records():
            return parse_marker(record), record.timestamp_ms
    except CorruptRecord:
        pass
    return None, NO_TIMESTAMP


def _check_sequence(
    producer_id: int, producer: KnownProducer, epoch: int, base_sequence: int
) -> None:
    """Raise OutOfOrderSequence unless a batch continues its producer's sequence.

    A new epoch begins with 0; after SEQUENCE_MAX comes 0.
    """
    if producer.epoch == NO_EPOCH:
        return
    last = producer.last_sequence
    if epoch != producer.epoch:
        if base_sequence != 0:
            raise OutOfOrderSequence(producer_id, base_sequence, last)
    elif base_sequence != last + 1 and not (base_sequence == 0 and last == SEQUENCE_MAX):
        raise OutOfOrderSequence(producer_id, base_sequence, last)


def _is_expired(producer: KnownProducer, now_ms: int, expiration_ms: int) -> bool:
    """Return True if a producer is idle for `expiration_ms` and has no open transaction."""
    is_idle = now_ms - producer.last_timestamp_ms >= expiration_ms
    return is_idle and producer.txn_first_offset == NO_OFFSET
