"""Producer of transactions: all records of one become visible together, or none does.

```
NOT_READY ── begin: InitProducerId ──> READY ── begin ──> OPEN ── commit, abort ──> READY
                                                           │ commit is not answered
                                                           ├──────> COMMITTING ── commit ──> READY
                                                           │ a request or a batch failed
                                                           ├──────> TO_ABORT ── abort ──> READY
                                                           └──────> FENCED, for good
```

1. A partition takes part before the first batch for it leaves (AddPartitionsToTxn).
2. `send_offsets` has the group take part (AddOffsetsToTxn), and commits to its coordinator
   (TxnOffsetCommit); the offsets count once the transaction is committed.
3. `commit` waits until every batch is stored, and ends the transaction (EndTxn). If that is not
   answered in time, or by a retriable error, it may be decided: only `commit` may be called again.
   An `abort` without an answer may be repeated, too.
4. After an abort with batches that failed, or with a request (1, 2) whose response was lost, the
   epoch is raised (InitProducerId with the id of before). Requests still on their way are refused,
   and a transaction that such a request has opened is ended. An id that has expired
   (transactional.id.expiration.ms) has nothing to end: it gets another producer id at once.

| error | raised as | what helps |
|---|---|---|
| another instance has begun, or the transaction has timed out | ProducerFenced | a new producer |
| the user has no right to the id | TransactionalIdDenied, a ProducerFenced | a rule for the user |
| anything else | TransactionFailed | `abort`, and the transaction once more |

Source: KafkaProducer, TransactionManager of 3.9.1; KIP-98, KIP-360, KIP-447.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Final

from engine.client.batch_sender import BatchResult
from engine.client.blocking import KafkaClient
from engine.client.outgoing_batch import NO_PLACE
from engine.client.producing import (
    OutgoingRecord,
    OutgoingValues,
    Producer,
    ProducerCallbacks,
    ProducerOptions,
)
from engine.client.transaction_calls import GroupMembership, ProducerIdentity, TransactionCalls
from engine.errors import ApiError, EngineError
from engine.kafka_errors import (
    INVALID_PRODUCER_EPOCH,
    INVALID_PRODUCER_ID_MAPPING,
    INVALID_TXN_STATE,
    PRODUCER_FENCED,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    kafka_error,
)
from engine.model import TopicPartition

TRANSACTION_TIMEOUT_MS: Final = 60_000
_FENCED: Final = frozenset(
    (
        INVALID_PRODUCER_EPOCH,
        PRODUCER_FENCED,
        TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    )
)


class TransactionPhase(Enum):
    """Phases of a transactional producer; see the module's picture."""

    NOT_READY = "not ready"
    READY = "ready"
    OPEN = "open"
    COMMITTING = "committing"
    TO_ABORT = "to abort"
    FENCED = "fenced"


class WrongPhase(EngineError):
    """A call is not allowed in the current phase of the transaction."""

    def __init__(self, action: str, phase: TransactionPhase) -> None:
        super().__init__(f"cannot {action}: the transaction is {phase.value}")
        self.action = action
        self.phase = phase


class TransactionFailed(EngineError):
    """A request or batch of the transaction failed: it can only be aborted."""

    hint = "abort it and send its records again"

    def __init__(self, transactional_id: str, cause: EngineError) -> None:
        super().__init__(f"transaction of {transactional_id}: {cause}")
        self.transactional_id = transactional_id
        self.cause = cause


class ProducerFenced(EngineError):
    """The producer may no longer write: it is fenced."""

    hint = (
        "another producer with this transactional id has begun, or the transaction was open for "
        "longer than its timeout and is aborted; start a new producer"
    )

    def __init__(self, transactional_id: str, cause: EngineError) -> None:
        super().__init__(f"producer of {transactional_id} is fenced: {cause}")
        self.transactional_id = transactional_id
        self.cause = cause


class TransactionalIdDenied(ProducerFenced):
    """The user has no right (or no longer) to write with the transactional id."""

    def __init__(self, transactional_id: str, cause: EngineError) -> None:
        EngineError.__init__(self, f"producer of {transactional_id} may write nothing: {cause}")
        self.hint = (
            "the client's settings name the user; `kctl acls check USER write --transactional-id "
            f"{transactional_id}` shows which rule decides"
        )
        self.transactional_id = transactional_id
        self.cause = cause


class TransactionalProducer:
    """Produces to any partitions, and commits offsets of groups, in transactions."""

    def __init__(
        self,
        client: KafkaClient,
        transactional_id: str,
        options: ProducerOptions | None = None,
        notes: ProducerCallbacks | None = None,
        *,
        timeout_ms: int = TRANSACTION_TIMEOUT_MS,
    ) -> None:
        """Create a producer in NOT_READY; `timeout_ms` is its transaction timeout.

        `acks` and `is_idempotent` of the options are ignored: transactions need acks=all and a
        producer id.
        """
        self._client = client
        self._options = options or ProducerOptions()
        self._notes = notes
        self._calls = TransactionCalls(client, transactional_id, timeout_ms)
        self.phase = TransactionPhase.NOT_READY
        #: Producer id and epoch, None before `init`.
        self._identity: ProducerIdentity | None = None
        #: Creates the batches of the open transaction. None without one.
        self._producer: Producer | None = None
        #: Partitions and groups that the open transaction has at the coordinator.
        self._partitions: set[TopicPartition] = set()
        self._groups: set[str] = set()
        #: Whether a new epoch is needed before the next transaction; and whether a request without
        #: a response may have opened one at the coordinator.
        self._needs_epoch = self._may_have_begun = False
        #: Whether the transactional id has expired at the coordinator, which would refuse EndTxn.
        self._has_expired = False
        #: Results that no call has returned yet, as the call that received them raised.
        self._results: list[BatchResult] = []

    @property
    def transactional_id(self) -> str:
        """Return the transactional id of this producer."""
        return self._calls.transactional_id

    @property
    def transactional_identity(self) -> ProducerIdentity:
        """Return producer id and epoch. Raises WrongPhase before `init` or the first `begin`."""
        if self._identity is None:
            raise WrongPhase("name the producer", self.phase)
        return self._identity

    # Transactions

    def init(self) -> None:
        """Fence earlier instances of the transactional id and abort their transaction.

        Optional: the first `begin` does the same. Raises WrongPhase, ProducerFenced, ApiError.
        """
        if self.phase is not TransactionPhase.NOT_READY:
            raise WrongPhase("initialise", self.phase)
        self._renew(None)

    def begin(self) -> None:
        """Begin a transaction; the first one fences earlier instances as `init` does.

        Raises WrongPhase, ProducerFenced, ApiError.
        """
        if self.phase is TransactionPhase.NOT_READY:
            self._renew(None)
        if self.phase is not TransactionPhase.READY:
            raise WrongPhase("begin", self.phase)
        self.phase = TransactionPhase.OPEN

    def commit(self) -> list[BatchResult]:
        """Send all records and commit the transaction.

        Returns the results of batches not returned yet. Raises WrongPhase, TransactionFailed if a
        batch was not stored, ProducerFenced; and the errors of the request, after which `commit`
        must be called again.
        """
        if self.phase is not TransactionPhase.COMMITTING:
            self._require_open("commit")
        results = self._current().flush()
        self._store_results(results)
        failure = next((r.error for r in results if r.error is not None), None)
        if failure is not None:
            raise self._enter_failed_phase(failure)
        if self._has_begun:
            self._end(is_commit=True)
        self._reset_transaction()
        return self._pop_results()

    def abort(self) -> list[BatchResult]:
        """Abort the transaction; return the results of batches that no call has returned yet.

        Unsent records are dropped. Raises WrongPhase, TransactionFailed, ProducerFenced; and the
        errors of the requests, after which `abort` may be called again.
        """
        if self.phase not in (TransactionPhase.OPEN, TransactionPhase.TO_ABORT):
            raise WrongPhase("abort", self.phase)
        # First: even without a response to EndTxn, this transaction can never be committed.
        self.phase = TransactionPhase.TO_ABORT
        self._current().discard()
        self._store_results(self._current().flush())
        if self._has_expired:
            self._needs_epoch = True
        elif self._has_begun:
            self._end(is_commit=False)
        elif self._may_have_begun:
            self._end_if_begun()
        # If raising the epoch fails, `abort` is called again: it must not send another EndTxn, for
        # the raised epoch may have no transaction.
        self._partitions.clear()
        self._groups.clear()
        self._may_have_begun = False
        if self._needs_epoch:
            self._renew(self._identity)
        self._reset_transaction()
        return self._pop_results()

    def _end(self, *, is_commit: bool) -> None:
        """Send EndTxn; after a final error enter the phase for it.

        If a commit gets no final response the phase is COMMITTING: only `commit` may follow, since
        the coordinator may have committed. Raises the error.
        """
        try:
            self._calls.end(self.transactional_identity, is_commit=is_commit)
        except EngineError as error:
            if _is_final(error):
                raise self._enter_failed_phase(error) from error
            if is_commit:
                self.phase = TransactionPhase.COMMITTING
            raise

    def _end_if_begun(self) -> None:
        """Abort the transaction that a request without a response may have begun.

        INVALID_TXN_STATE means that there is none, and is no error here.
        """
        try:
            self._calls.end(self.transactional_identity, is_commit=False)
        except ApiError as error:
            # No transaction is open: the last one is complete, or there was none.
            if error.code == INVALID_TXN_STATE:
                return
            if _is_final(error):
                raise self._enter_failed_phase(error) from error
            raise

    @property
    def _has_begun(self) -> bool:
        """True if the coordinator is known to have an open transaction of this producer."""
        return bool(self._partitions or self._groups)

    def _reset_transaction(self) -> None:
        """Enter READY without partitions and groups, after the transaction has ended."""
        self.phase = TransactionPhase.READY
        self._partitions.clear()
        self._groups.clear()
        self._needs_epoch = self._may_have_begun = False

    def _renew(self, identity: ProducerIdentity | None) -> None:
        """Get a producer id and epoch (`identity` None), or raise the epoch of `identity`.

        The phase becomes READY. The producer for the next batches is created with them.
        """
        try:
            self._identity = self._calls.init(identity)
        except ApiError as error:
            if error.code in _FENCED:
                raise self._enter_failed_phase(error) from error
            raise
        self._has_expired = False
        self._producer = Producer(self._client, self._options, self._notes, transaction=self)
        self.phase = TransactionPhase.READY

    # Records and offsets

    def add(self, record: OutgoingRecord, place: int = NO_PLACE) -> None:
        """Add a record of the open transaction to its batch.

        Raises WrongPhase, TransactionFailed, and the errors of `Producer.add`.
        """
        self._require_open("add a record")
        self._current().add(record, place)

    def add_fast(self, records: OutgoingValues, places: Sequence[int]) -> None:
        """Add many records of the open transaction, as `Producer.add_fast`.

        Raises the errors of `add`.
        """
        self._require_open("add records")
        self._current().add_fast(records, places)

    def poll(self, wait_ms: int = 0) -> list[BatchResult]:
        """Send the batches that are due, wait up to `wait_ms`, and return the results of batches.

        A failed batch makes the transaction fail. Empty before the first transaction.
        """
        if self._producer is None:
            return []
        self._store_results(self._producer.poll(wait_ms))
        return self._pop_results()

    def flush(self) -> list[BatchResult]:
        """Send all records and return the results of batches; the transaction stays open."""
        self._require_open("send")
        self._store_results(self._current().flush())
        return self._pop_results()

    def send_without_linger(self) -> None:
        """Send all open batches now, without linger."""
        if self._producer is not None:
            self._producer.send_without_linger()

    def due_in_ms(self) -> int | None:
        """Return the ms until the first batch is due; None if there are no records to send."""
        return None if self._producer is None else self._producer.due_in_ms()

    @property
    def is_idle(self) -> bool:
        """True if each added record has its result, and all results were returned."""
        return not self._results and (self._producer is None or self._producer.is_idle)

    @property
    def is_sending(self) -> bool:
        """True if a batch was handed to the sender, and its result was not returned yet."""
        return bool(self._results) or (self._producer is not None and self._producer.is_sending)

    def discard(self) -> None:
        """Drop the records that were not sent; they get no result."""
        if self._producer is not None:
            self._producer.discard()

    def send_offsets(self, group: GroupMembership, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit a group's next offsets, by partition, as part of the transaction.

        They become visible when the transaction commits. Raises WrongPhase, TransactionFailed,
        ProducerFenced.
        """
        self._require_open("send offsets")
        if not offsets:
            return
        if group.group_id not in self._groups:
            self._call(lambda identity: self._calls.add_group(identity, group.group_id))
            self._groups.add(group.group_id)
        self._call(lambda identity: self._calls.commit_offsets(identity, group, offsets))

    def add_partition_once(self, partition: TopicPartition) -> None:
        """Add a partition to the transaction unless it is in it.

        The producer calls this before it sends the partition's first batch.
        """
        if partition not in self._partitions:
            self._call(lambda identity: self._calls.add_partitions(identity, [partition]))
            self._partitions.add(partition)

    # Errors

    def _current(self) -> Producer:
        """Return the producer of the batches; it exists from the first `begin` on."""
        assert self._producer is not None
        return self._producer

    def _require_open(self, action: str) -> None:
        """Raise WrongPhase, which names `action`, unless a transaction is open."""
        if self.phase is not TransactionPhase.OPEN:
            raise WrongPhase(action, self.phase)

    def _store_results(self, results: Sequence[BatchResult]) -> None:
        """Keep the results of batches until a call returns them.

        A failed batch fails the transaction.
        """
        self._results += results
        for result in results:
            if result.error is not None:
                self._needs_epoch = True
                self._enter_failed_phase(result.error)

    def _pop_results(self) -> list[BatchResult]:
        """Return the results that no call has returned yet, and remove them."""
        results, self._results = self._results, []
        return results

    def _call(self, request: Callable[[ProducerIdentity], None]) -> None:
        """Send a request of the open transaction; after any failure it can only be aborted."""
        try:
            request(self.transactional_identity)
        except EngineError as error:
            if not _is_final(error):
                self._needs_epoch = self._may_have_begun = True
            raise self._enter_failed_phase(error) from error

    def _enter_failed_phase(self, cause: EngineError) -> EngineError:
        """Enter FENCED or TO_ABORT by the cause of a failure; return the error to raise.

        Unsent records are dropped: their transaction cannot be committed.
        """
        if self._producer is not None:
            self._producer.discard()
        if isinstance(cause, ApiError) and cause.code in _FENCED:
            self.phase = TransactionPhase.FENCED
            if cause.code == TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
                return TransactionalIdDenied(self.transactional_id, cause)
            return ProducerFenced(self.transactional_id, cause)
        if isinstance(cause, ApiError) and cause.code == INVALID_PRODUCER_ID_MAPPING:
            self._has_expired = True
        if self.phase is not TransactionPhase.FENCED:
            self.phase = TransactionPhase.TO_ABORT
        return TransactionFailed(self.transactional_id, cause)


def _is_final(error: EngineError) -> bool:
    """Return True if the coordinator's code is not retriable: the request was not executed."""
    return isinstance(error, ApiError) and not kafka_error(error.code).is_retriable
