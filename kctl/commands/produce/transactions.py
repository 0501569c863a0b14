"""`kctl produce --transactional-id`: divide the input into transactions.

```
records ── begin before the first ── N taken ──┬─ commit: counted, with a row for each batch
                                               └─ each K-th with --abort-every: abort
the input ends: commit the open transaction     an error, Ctrl-C: abort it
```
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from engine.client.batch_sender import BatchResult
from engine.client.outgoing_batch import NO_PLACE
from engine.client.producing import OutgoingRecord, OutgoingValues
from engine.client.transactional_producer import TransactionalProducer, TransactionPhase
from kctl.arguments import UnreadableArgument, counted
from kctl.commands.produce.request import ProduceRequest, producer_options


class TransactionOptions(NamedTuple):
    """Options of transactions; `per_transaction` None means one transaction for all records."""

    transactional_id: str
    per_transaction: int | None
    abort_every: int | None


def transaction_options(request: ProduceRequest) -> TransactionOptions | None:
    """Return the transactions' options, None without a transactional id.

    Errors: UnreadableArgument for an option that needs an id, or one that contradicts it.
    """
    transactional_id = request.transactional_id
    if transactional_id is None:
        transactional_id = request.settings.get("transactional.id")
    if transactional_id is None:
        for name in ("per_transaction", "abort_every", "transaction_timeout_ms"):
            if getattr(request, name) is not None:
                option = f"--{name.removesuffix('_ms').replace('_', '-')}"
                raise UnreadableArgument("an option", option, "--transactional-id with it")
        return None
    if not transactional_id:
        raise UnreadableArgument("a value of --transactional-id", "", "a text")
    options = producer_options(request)
    if options.acks != -1 or options.is_idempotent is False:
        given = "--no-idempotence" if options.is_idempotent is False else f"acks {options.acks}"
        raise UnreadableArgument("an option of --transactional-id", given, "acks all with an id")
    return TransactionOptions(transactional_id, request.per_transaction, request.abort_every)


class TransactionalInput:
    """Accepts records like a producer, and ends a transaction after a number of records.

    Returns the results of committed transactions only.
    """

    def __init__(self, producer: TransactionalProducer, options: TransactionOptions) -> None:
        """Create a sink that divides records into transactions of `producer`; none is open yet."""
        self._producer = producer
        self._options = options
        #: Results of the open transaction, and results of committed ones to return.
        self._results: list[BatchResult] = []
        self._committed: list[BatchResult] = []
        #: Number of records in the open transaction.
        self._record_count = 0
        #: Place of the open transaction's first record; None without an open transaction.
        self.first_open_place: int | None = None
        self.committed_count = 0
        self.aborted_count = 0
        self.aborted_record_count = 0

    # Interface of a producer

    @property
    def transactional_id(self) -> str:
        """Return the producer's transactional id."""
        return self._options.transactional_id

    def add(self, record: OutgoingRecord, place: int = NO_PLACE) -> None:
        """Add a record to the open transaction, beginning one before it if none is open.

        A full transaction ends after it. Errors: those of TransactionalProducer.
        """
        self._begin_before(place)
        self._producer.add(record, place)
        self._count_records(1)

    def add_fast(self, records: OutgoingValues, places: Sequence[int]) -> None:
        """Add records of one form in one call, divided into transactions like single records."""
        done, count = 0, len(records.values)
        while done < count:
            self._begin_before(places[done])
            end = min(count, done + self._room(count))
            piece = records._replace(
                values=records.values[done:end],
                keys=None if records.keys is None else records.keys[done:end],
            )
            self._producer.add_fast(piece, places[done:end])
            self._count_records(end - done)
            done = end

    def poll(self, wait_ms: int = 0) -> list[BatchResult]:
        """Send due batches; return the results of transactions committed since the last call."""
        self._results += self._producer.poll(wait_ms)
        return self._take_committed()

    def flush(self) -> list[BatchResult]:
        """Send due batches; unlike other producers, this leaves the transaction open.

        Returns results like `poll`.
        """
        return self.poll()

    def due_in_ms(self) -> int | None:
        """Return the time in ms until the first batch is due, None if there is nothing to send."""
        return self._producer.due_in_ms()

    @property
    def is_idle(self) -> bool:
        """Return True if no batch is due or in flight."""
        return self._producer.is_idle

    # Transactions

    def finish(self) -> list[BatchResult]:
        """Commit the open transaction at the end of the input; return results like `poll`."""
        if self._producer.phase is TransactionPhase.OPEN:
            self._end_transaction()
        return self._take_committed()

    def give_up(self) -> None:
        """Abort the open transaction, if any; called after an error or Ctrl-C.

        Errors: those of TransactionalProducer.
        """
        if self._producer.phase in (TransactionPhase.OPEN, TransactionPhase.TO_ABORT):
            self._abort_transaction()

    @property
    def may_be_committed(self) -> bool:
        """Return True if the commit of the last transaction got no response.

        Its outcome is unknown then, and it must not be aborted.
        """
        return self._producer.phase is TransactionPhase.COMMITTING

    def summary(self) -> str:
        """Return the numbers of committed and aborted transactions as text."""
        text = f"{counted(self.committed_count, 'transaction')} committed"
        if self.aborted_count:
            records = counted(self.aborted_record_count, "record")
            text += f", {self.aborted_count} aborted with {records}"
        return text

    def _begin_before(self, place: int) -> None:
        """Begin a transaction, unless one is open; its first record is at `place`."""
        if self.first_open_place is None:
            self._producer.begin()
            self.first_open_place = place

    def _room(self, count: int) -> int:
        """Return the number of records, up to `count`, that the open transaction may still get."""
        limit = self._options.per_transaction
        return count if limit is None else limit - self._record_count

    def _count_records(self, count: int) -> None:
        """Count records of the open transaction, and end it once it is full."""
        self._record_count += count
        if self._record_count == self._options.per_transaction:
            self._end_transaction()

    def _end_transaction(self) -> None:
        """Commit the transaction, or abort it if its number is a multiple of --abort-every."""
        every = self._options.abort_every
        number = self.committed_count + self.aborted_count + 1
        if every is not None and number % every == 0:
            # Unsent records would leave no aborted transaction in the log.
            self._producer.flush()
            self._abort_transaction()
            return
        self._committed += self._results + self._producer.commit()
        self.committed_count += 1
        self._reset()

    def _abort_transaction(self) -> None:
        """Abort the transaction, and count it and its records."""
        self._producer.abort()
        self.aborted_count += 1
        self.aborted_record_count += self._record_count
        self._reset()

    def _reset(self) -> None:
        """Forget the transaction that has ended: none is open now."""
        self._results, self._record_count, self.first_open_place = [], 0, None

    def _take_committed(self) -> list[BatchResult]:
        """Return the results of batches committed since the last call, and forget them."""
        committed, self._committed = self._committed, []
        return committed
