"""The states of a transactional id, their numbers in the log, and the valid transitions.

```
 Empty ── first partition ──> Ongoing ── EndTxn ──> PrepareCommit ── markers ──> CompleteCommit ─┐
   ^ ^                          │ ^ └────────────── PrepareAbort ── markers ──> CompleteAbort ───┤
   │ │                          v │                      ^                                       │
   │ │                   PrepareEpochFence ──────────────┘                                       │
   │ └──────────── InitProducerId ───────────────────────────────────────────────────────────────┤
   │                              └──────────── first partition of the next transaction ─────────┤
   └                                                     Dead <── expired ── (also from Empty) ──┘
```

PrepareEpochFence is never written: an abort follows in the same step.

Source: TransactionState of 3.9.1; TXN-5, T2.
"""

from __future__ import annotations

from enum import Enum


class TransactionState(Enum):
    """The states of a transactional id; values are Kafka's names."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"

    # Members are looked up for each request, and Enum's own hash is Python code.
    __hash__ = object.__hash__


_S = TransactionState

#: Number of each written state in `__transaction_state`; Dead is written as a tombstone.
STATUSES = {state: number for number, state in enumerate(TransactionState)}
#: State of each number. Dead is missing: it is written as a tombstone.
STATE_OF = {
    number: state
    for state, number in STATUSES.items()
    if state not in (_S.DEAD, _S.PREPARE_EPOCH_FENCE)
}

#: States without an open transaction: the id may begin one, get a new epoch, or expire.
IDLE = frozenset((_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT))
#: States in which the end is written to the log and markers are being sent.
PREPARED = frozenset((_S.PREPARE_COMMIT, _S.PREPARE_ABORT))

VALID_PREVIOUS_STATES = {
    _S.EMPTY: IDLE,
    _S.ONGOING: IDLE | {_S.ONGOING},
    _S.PREPARE_COMMIT: frozenset((_S.ONGOING,)),
    _S.PREPARE_ABORT: frozenset((_S.ONGOING, _S.PREPARE_EPOCH_FENCE)),
    _S.COMPLETE_COMMIT: frozenset((_S.PREPARE_COMMIT,)),
    _S.COMPLETE_ABORT: frozenset((_S.PREPARE_ABORT,)),
    _S.DEAD: IDLE,
    _S.PREPARE_EPOCH_FENCE: frozenset((_S.ONGOING,)),
}
