"""Transactional producers of the simulated cluster.

```
InitProducerId ──> AddPartitionsToTxn, Produce … ──> EndTxn ──┐
      ^                 ^                                     │
      │ fenced, gave up │ answered at once                    │
      └─────────────────┴─────────────────────────────────────┘
```

1. InitProducerId ends the transaction that the instance before this one has left open.
2. A transaction adds partitions, each once; each gets batches, and each is sent until accepted.
3. EndTxn commits or aborts, and is sent until it is answered. If an attempt had no answer the next
   transaction begins with another epoch (1): at this level of Kafka a late EndTxn ends any
   transaction of that epoch that is open then.
4. A producer that waits for a leader may give up: it aborts (3), with a request on its way that
   may come after the marker. Then it begins again (1). Some abort at once, and the batch is late.
5. An instance that crashes leaves its transaction as it is. The next one begins (1) after a while,
   before or after the transaction has timed out; at the end there may be none.
6. An instance that stands still may go on in a transaction that has timed out meanwhile, or with
   ids that another has fenced.

Instances of one transactional id that do not know of each other fence each other.

Source: TransactionManager of 3.9.1; `transaction_requests.py` has the requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random

from engine.model import TopicPartition
from engine.sim.clients import ClusterRequests
from engine.sim.sent_transactions import (
    Ids,
    SentOutcome,
    SentTransaction,
    TransactorEvents,
)
from engine.sim.transaction_requests import (
    TRANSACTION_TIMEOUT_MS,
    InstanceEnds,
    TransactionRequests,
)
from engine.transactions.states import TransactionState
from engine.transactions.transaction import Transaction

#: How often an instance crashes in a transaction, and how often it aborts one.
_CRASH_SHARE, _ABORT_SHARE = 0.15, 0.25
#: How often a batch is late, and how late (4); how often an instance stands still between two (6).
_LATE_SHARE, _LATE_MS_MAX = 0.08, (40, 1_500)
_STILL_SHARE = 0.06


class Transactor:
    """Instances of one transactional id, one after the other."""

    def __init__(
        self,
        requests: ClusterRequests,
        transactional_id: str,
        partitions: Sequence[TopicPartition],
        random: Random,
        events: TransactorEvents,
        *,
        gives_up: bool,
    ) -> None:
        """Set up one instance of a transactional id; `gives_up` lets its last batches arrive late.

        Late batches of an ended instance hang a transaction unless leaders verify it (KIP-890).
        """
        #: Share of batches that are sent late, when the end of their transaction is requested
        #: before.
        self._late_share = _LATE_SHARE * gives_up
        self.name = requests.name
        topics = sorted({partition.topic for partition in partitions})
        self._requests = TransactionRequests(
            requests, transactional_id, topics, random, events, gives_up=gives_up
        )
        self._partitions = list(partitions)
        self._random = random
        self._events = events
        self._next_number = 0
        #: Whether the run ends, and whether the last instance has ended.
        self._is_finishing = self._has_ended = False

    @property
    def is_done(self) -> bool:
        """Return whether it is at its end, with nothing open and nothing on its way."""
        return self._has_ended and not self._requests.late_count

    @property
    def committed_count(self) -> int:
        """Return how many transactions it has committed."""
        return self._requests.committed_count

    def finish(self) -> None:
        """Begin no other transaction; the one that is open comes to its end."""
        self._is_finishing = True

    async def run(self) -> None:
        """Run instances until it is to finish."""
        while not self._is_finishing:
            try:
                ids = await self._requests.init_ids()
                while not self._is_finishing:
                    await self._transact(ids)
                    await self._requests.pause(self._random.randrange(1, 600))
            except InstanceEnds as end:
                self._events.record(self.name, f"an instance ends: {end.why}")
                await self._requests.pause(self._random.randrange(1, 2 * TRANSACTION_TIMEOUT_MS))
        if self._draws(0.5):
            # What a crashed instance has left is ended by the next one, or by its time-out (5).
            await self._requests.init_ids()
        self._has_ended = True

    async def _transact(self, ids: Ids) -> None:
        """Run one transaction: some batches, then commit or abort; it may pause or crash anywhere.

        Raises InstanceEnds if the instance crashed or was fenced.
        """
        transaction = SentTransaction(f"{self.name}@{self._next_number}", *ids)
        self._events.began(transaction)
        try:
            crashes_at = self._random.randrange(8) if self._draws(_CRASH_SHARE) else None
            added: set[TopicPartition] = set()
            for step in range(self._random.choice((1, 1, 2, 4))):
                if step == crashes_at:
                    raise InstanceEnds("it crashes in a transaction")
                if self._draws(_STILL_SHARE):
                    await self._requests.pause(
                        self._random.randrange(1, 2 * TRANSACTION_TIMEOUT_MS)
                    )
                await self._write(ids, transaction, added)
            if crashes_at is not None and self._draws(0.5):
                raise InstanceEnds("it crashes before the end of a transaction")
            await self._requests.end(ids, transaction, is_commit=not self._draws(_ABORT_SHARE))
        except InstanceEnds:
            if transaction.outcome is SentOutcome.OPEN:
                transaction.outcome = SentOutcome.ABORTED
            raise

    def _draws(self, share: float) -> bool:
        """Return True with this probability."""
        return self._random.random() < share

    async def _write(
        self, ids: Ids, transaction: SentTransaction, added: set[TopicPartition]
    ) -> None:
        """Send one batch of the transaction, after its partition was added (step 2 of the module).

        A batch that is given up, or deliberately sent late, aborts the transaction and raises
        InstanceEnds.
        """
        partition = self._random.choice(self._partitions)
        if partition not in added:
            await self._requests.add_partition(ids, partition)
            added.add(partition)
        count = self._random.choice((1, 1, 2, 5))
        numbers = range(self._next_number, self._next_number + count)
        self._next_number += count
        why = "it gave a batch up"
        if self._draws(self._late_share):
            why = "a batch of it is late"
            delay_ms = self._random.randrange(self._random.choice(_LATE_MS_MAX))
            self._requests.produce_late(ids, transaction, partition, numbers, delay_ms)
        elif await self._requests.produce(ids, transaction, partition, numbers):
            return
        await self._requests.end(ids, transaction, is_commit=False)
        raise InstanceEnds(why)


class NextInstance:
    """Starts another instance of a transactional id, which ends the transactions left open (5)."""

    def __init__(
        self,
        requests: ClusterRequests,
        transactional_id: str,
        random: Random,
        events: TransactorEvents,
    ) -> None:
        """Use the transactional id once more, for no record."""
        self._requests = TransactionRequests(requests, transactional_id, (), random, events)

    async def run(self) -> None:
        """Take over the id."""
        await self._requests.init_ids()


def ids_that_outlast_their_timeout(
    transactions: Iterable[Transaction], wall_ms: int
) -> frozenset[str]:
    """Return the ids whose open transaction began at a later time than a coordinator's clock has.

    The clock was set back since: the time-out comes later by as much, in Kafka too.
    """
    return frozenset(
        transaction.transactional_id
        for transaction in transactions
        if transaction.state is TransactionState.ONGOING and transaction.start_ms > wall_ms
    )
