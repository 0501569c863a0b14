"""A transactional id: its producer, its state, the partitions of its transaction. Pure.

```
 prepare ─> Transition, and `pending_state` ─ written to the log ─> complete ─> `state`
                                            └ write failed ───────> pending_state = None
```

While a transition is pending, other requests for the id are answered CONCURRENT_TRANSACTIONS.

Source: TransactionMetadata of 3.9.1; TXN-5, TXN-6.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from engine.model import TopicPartition, new_tuple
from engine.transactions.states import IDLE, VALID_PREVIOUS_STATES, TransactionState

NO_PRODUCER_ID = -1
NO_EPOCH = -1
NO_TIME = -1
#: The highest epoch fences only; the highest epoch of a client is one lower.
_EPOCH_MAX = (1 << 15) - 1


class Transition(NamedTuple):
    """A prepared state of a transactional id, with all fields of its record."""

    state: TransactionState
    producer_id: int
    producer_epoch: int
    last_producer_epoch: int
    timeout_ms: int
    partitions: tuple[TopicPartition, ...]
    start_ms: int
    last_update_ms: int


def is_epoch_exhausted(epoch: int) -> bool:
    """Return True if `epoch` is the last one of a producer id: the next epoch needs a new id."""
    return epoch >= _EPOCH_MAX - 1


class Transaction:
    """The state of one transactional id in its coordinator."""

    __slots__ = (
        "has_failed_epoch_fence",
        "last_producer_epoch",
        "last_update_ms",
        "partitions",
        "pending_state",
        "previous_producer_id",
        "producer_epoch",
        "producer_id",
        "start_ms",
        "state",
        "timeout_ms",
        "transactional_id",
    )

    def __init__(
        self, transactional_id: str, producer_id: int, timeout_ms: int, now_ms: int
    ) -> None:
        """Create the state of a new transactional id: Empty, without a producer epoch.

        `now_ms` is the wall time.
        """
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        #: Producer id before the last InitProducerId.
        self.previous_producer_id = NO_PRODUCER_ID
        self.producer_epoch = NO_EPOCH
        #: Previous epoch, if the producer itself requested the present one: a repeated
        #: InitProducerId still sends the previous epoch.
        self.last_producer_epoch = NO_EPOCH
        self.timeout_ms = timeout_ms
        self.state = TransactionState.EMPTY
        #: Partitions in the order in which they were added; in PrepareCommit and PrepareAbort only
        #: those whose marker is not written.
        self.partitions: dict[TopicPartition, None] = {}
        #: Wall time at which the transaction began; NO_TIME if none is open.
        self.start_ms = NO_TIME
        self.last_update_ms = now_ms
        #: State that is being written to the log. None: no write is pending.
        self.pending_state: TransactionState | None = None
        #: Whether a raised epoch could not be written: the next fence uses it again.
        self.has_failed_epoch_fence = False

    @property
    def is_epoch_exhausted(self) -> bool:
        """True if the next epoch needs a new producer id."""
        return is_epoch_exhausted(self.producer_epoch)

    def is_timed_out(self, now_ms: int) -> bool:
        """Return True if the transaction is open for longer than its timeout.

        `now_ms` is wall time.
        """
        return (
            self.pending_state is None
            and self.state is TransactionState.ONGOING
            and self.start_ms + self.timeout_ms < now_ms
        )

    def is_expired(self, now_ms: int, expiration_ms: int) -> bool:
        """Return True if no transaction is open and no update is newer than `expiration_ms`."""
        return (
            self.pending_state is None
            and self.state in IDLE
            and self.last_update_ms <= now_ms - expiration_ms
        )

    def next_epoch(
        self, timeout_ms: int, expected_epoch: int | None, now_ms: int
    ) -> Transition | None:
        """Prepare the transition to the next epoch for InitProducerId.

        None if the producer is fenced.

        `expected_epoch` is the epoch that the producer sent (KIP-360), None if it sent none. A
        producer that repeats its request gets the same epoch again.
        """
        if expected_epoch is None:
            epoch, last_epoch = self._raised_epoch(), NO_EPOCH
        elif self.producer_epoch in (NO_EPOCH, expected_epoch):
            epoch, last_epoch = self._raised_epoch(), self.producer_epoch
        elif expected_epoch == self.last_producer_epoch:
            epoch, last_epoch = self.producer_epoch, self.last_producer_epoch
        else:
            return None
        assert epoch < _EPOCH_MAX, self.transactional_id
        return self._set_pending(
            self._build_transition(TransactionState.EMPTY, now_ms, ())._replace(
                producer_epoch=epoch,
                last_producer_epoch=last_epoch,
                timeout_ms=timeout_ms,
                start_ms=NO_TIME,
            )
        )

    def next_producer_id(
        self, producer_id: int, timeout_ms: int, now_ms: int, *, keeps_last_epoch: bool
    ) -> Transition:
        """Prepare the transition to a new producer id with epoch 0, after the last epoch.

        `keeps_last_epoch` keeps the old epoch, so that a repeated request is recognized.
        """
        last_epoch = self.producer_epoch if keeps_last_epoch else NO_EPOCH
        return self._set_pending(
            Transition(
                TransactionState.EMPTY, producer_id, 0, last_epoch, timeout_ms, (), NO_TIME, now_ms
            )
        )

    def add_partitions(self, partitions: Iterable[TopicPartition], now_ms: int) -> Transition:
        """Prepare the transition to Ongoing with `partitions` added to the present ones.

        If no transaction is open, it begins one at the wall time `now_ms`.
        """
        all_partitions = tuple(dict.fromkeys((*self.partitions, *partitions)))
        start_ms = now_ms if self.state in IDLE else None
        return self._set_pending(
            self._build_transition(TransactionState.ONGOING, now_ms, all_partitions, start_ms)
        )

    def end(self, *, is_commit: bool, now_ms: int) -> Transition:
        """Prepare the transition to PrepareCommit or PrepareAbort, the decision."""
        state = TransactionState.PREPARE_COMMIT if is_commit else TransactionState.PREPARE_ABORT
        return self._set_pending(self._build_transition(state, now_ms))

    def prepare_fence(self) -> Transition:
        """Prepare the transition to PrepareEpochFence, before the coordinator itself aborts.

        It raises the epoch to one that no producer has.

        Differs: at the highest epoch the same epoch fences again, since no client ever gets it;
        Kafka fails then, and the transaction stays open.
        """
        return self._set_pending(
            self._build_transition(
                TransactionState.PREPARE_EPOCH_FENCE, self.last_update_ms
            )._replace(
                producer_epoch=min(self._raised_epoch(), _EPOCH_MAX), last_producer_epoch=NO_EPOCH
            )
        )

    def take_fencing_epoch(self, epoch: int) -> None:
        """Set the epoch of `prepare_fence` without writing a record.

        The caller prepares the abort next.
        """
        assert self.pending_state is TransactionState.PREPARE_EPOCH_FENCE
        self.pending_state = None
        self.producer_epoch, self.last_producer_epoch = epoch, NO_EPOCH

    def prepare_completion(self, now_ms: int) -> Transition:
        """Prepare the transition to CompleteCommit or CompleteAbort.

        It is written once each partition has its marker.
        """
        is_commit = self.state is TransactionState.PREPARE_COMMIT
        state = TransactionState.COMPLETE_COMMIT if is_commit else TransactionState.COMPLETE_ABORT
        self.has_failed_epoch_fence = False
        return self._set_pending(self._build_transition(state, now_ms, ()))

    def expire(self) -> Transition:
        """Prepare the transition to Dead; the id is removed once its tombstone is written."""
        return self._set_pending(
            self._build_transition(TransactionState.DEAD, self.last_update_ms, ())
        )

    def apply_pending(self, transition: Transition) -> None:
        """Apply the pending transition, whose record has been written.

        Asserts that `transition` is the pending one and does not lower the epoch.
        """
        assert self.pending_state is transition.state, f"{self.transactional_id}: {transition}"
        assert transition.producer_epoch >= self.producer_epoch or (
            transition.state is TransactionState.EMPTY
        ), f"{self.transactional_id}: {transition}"
        if transition.state is TransactionState.EMPTY:
            self.previous_producer_id = self.producer_id
        self.pending_state = None
        self.state = transition.state
        self.producer_id = transition.producer_id
        self.producer_epoch = transition.producer_epoch
        self.last_producer_epoch = transition.last_producer_epoch
        self.timeout_ms = transition.timeout_ms
        self.partitions = dict.fromkeys(transition.partitions)
        self.start_ms = transition.start_ms
        self.last_update_ms = transition.last_update_ms

    def _raised_epoch(self) -> int:
        """Return the epoch after the present one.

        The present one if an earlier fence raised the epoch and was not written: no producer has
        it.
        """
        return self.producer_epoch + (not self.has_failed_epoch_fence)

    def _build_transition(
        self,
        state: TransactionState,
        now_ms: int,
        partitions: tuple[TopicPartition, ...] | None = None,
        start_ms: int | None = None,
    ) -> Transition:
        """Return a transition to `state`; fields that are not given keep their present value."""
        fields = (
            state,
            self.producer_id,
            self.producer_epoch,
            self.last_producer_epoch,
            self.timeout_ms,
            tuple(self.partitions) if partitions is None else partitions,
            self.start_ms if start_ms is None else start_ms,
            now_ms,
        )
        return new_tuple(Transition, fields)

    def _set_pending(self, transition: Transition) -> Transition:
        """Set the pending state to that of `transition`, and return it.

        Asserts that no other transition is pending and that the present state may precede it.
        """
        assert self.pending_state is None, f"{self.transactional_id}: {self.pending_state} pends"
        valid = VALID_PREVIOUS_STATES[transition.state]
        assert self.state in valid, f"{self.transactional_id}: {self.state}, {transition.state}"
        self.pending_state = transition.state
        return transition
