"""Writes transitions of transactional ids to their partition of `__transaction_state`.

| append failed with | error |
|---|---|
| unknown topic, too few replicas, timeout | COORDINATOR_NOT_AVAILABLE |
| not leader, storage | NOT_COORDINATOR |
| too large | UNKNOWN_SERVER_ERROR |

Source: TransactionStateManager.appendTransactionToLog of 3.9.1.
"""

from __future__ import annotations

import logging

from engine.host.promise import Promise
from engine.kafka_errors import (
    COORDINATOR_NOT_AVAILABLE,
    KAFKA_STORAGE_ERROR,
    MESSAGE_TOO_LARGE,
    NOT_COORDINATOR,
    NOT_ENOUGH_REPLICAS,
    NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    NOT_LEADER_OR_FOLLOWER,
    RECORD_LIST_TOO_LARGE,
    REQUEST_TIMED_OUT,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from engine.transactions.ports import TransactionLog
from engine.transactions.records import build_record
from engine.transactions.registry import TransactionRegistry
from engine.transactions.transaction import Transition

_log = logging.getLogger("kafka.coordinator.transaction.TransactionStateManager")

_CODES = {
    UNKNOWN_TOPIC_OR_PARTITION: COORDINATOR_NOT_AVAILABLE,
    NOT_ENOUGH_REPLICAS: COORDINATOR_NOT_AVAILABLE,
    NOT_ENOUGH_REPLICAS_AFTER_APPEND: COORDINATOR_NOT_AVAILABLE,
    REQUEST_TIMED_OUT: COORDINATOR_NOT_AVAILABLE,
    NOT_LEADER_OR_FOLLOWER: NOT_COORDINATOR,
    KAFKA_STORAGE_ERROR: NOT_COORDINATOR,
    MESSAGE_TOO_LARGE: UNKNOWN_SERVER_ERROR,
    RECORD_LIST_TOO_LARGE: UNKNOWN_SERVER_ERROR,
}


class TransactionStore:
    """Appends transitions to the log, and applies them once they are written."""

    def __init__(self, registry: TransactionRegistry, log: TransactionLog) -> None:
        self._registry = registry
        self._log = log

    def write(
        self,
        transactional_id: str,
        coordinator_epoch: int,
        transition: Transition,
        *,
        is_retried: bool = False,
    ) -> Promise[int]:
        """Append the record of a prepared transition.

        Promises 0 once it is written and applied, else an error code. After a failure the
        transition
        is not pending any more. Exception: with `is_retried` it stays pending on
        COORDINATOR_NOT_AVAILABLE, because the record may still become committed.
        """
        found = self._registry.find(transactional_id)
        if found.error_code or found.transaction is None:
            return Promise.of(found.error_code or NOT_COORDINATOR)
        if found.coordinator_epoch != coordinator_epoch:
            return Promise.of(NOT_COORDINATOR)
        written = self._log.append(
            self._registry.partition_of(transactional_id),
            (build_record(transactional_id, transition),),
            timeout_ms=transition.timeout_ms,
        )
        if written.is_kept and not written.result():
            # No turn has passed: the coordinator is the same.
            found.transaction.apply_pending(transition)
            return written

        def applied(code: int) -> int:
            """Apply the transition if it was written, and return the error code for the client."""
            code = _CODES.get(code, code)
            if code:
                _log.warning("%s was not written: error %d", transactional_id, code)
            found = self._registry.find(transactional_id)
            transaction = found.transaction
            if transaction is None or found.coordinator_epoch != coordinator_epoch:
                return code or found.error_code or NOT_COORDINATOR
            if not code:
                transaction.apply_pending(transition)
            elif not (is_retried and code == COORDINATOR_NOT_AVAILABLE):
                transaction.pending_state = None
            return code

        return written.then(applied)
