"""Transactional producers of the simulated cluster.

```
InitProducerId ──> AddPartitionsToTxn, Produce … ──> EndTxn ──┐
      ^                 ^                                     │
      │ fenced, gave up │ response at once                    │
      └─────────────────┴─────────────────────────────────────┘
```

1. InitProducerId aborts the transaction that the previous instance has left open.
2. A transaction adds partitions, each once; each gets batches, and each is sent until accepted.
3. EndTxn commits or aborts, and is sent until there is a response. If an attempt had no response,
   the next transaction begins with another epoch (1): in this version of Kafka a late EndTxn ends
   any open transaction of that epoch.
4. A producer that waits for a leader may give up: it aborts (3), with a request in flight that may
   arrive after the marker. Then it begins again (1). Some abort at once, and the batch is late.
5. An instance that crashes leaves its transaction open. The next one begins (1) after a while,
   before or after the transaction has timed out; at the end of the run there may be none.
6. An instance that pauses may continue a transaction that has timed out meanwhile, or use ids that
   another instance has fenced.

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

#: Probabilities that an instance crashes in a transaction, and that it aborts one.
_CRASH_SHARE, _ABORT_SHARE = 0.15, 0.25
#: Probability and largest delays of a late batch (4); probability of a pause between two batches
#: (6).
_LATE_SHARE, _LATE_MS_MAX = 0.08, (40, 1_500)
_STILL_SHARE = 0.06


class Transactor:
    """Successive instances of one transactional id."""

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
        """Create a producer; with `gives_up`, batches may arrive after their transaction.

        Late batches hang a transaction unless leaders verify it (KIP-890).
        """
        #: Share of batches that are sent only after the end of their transaction was requested.
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
        #: Whether `finish` was called, and whether the last instance has ended.
        self._is_finishing = self._has_ended = False

    @property
    def is_done(self) -> bool:
        """Return True if the producer has ended and no late batch is in flight."""
        return self._has_ended and not self._requests.late_count

    @property
    def committed_count(self) -> int:
        """Return the number of transactions that were committed."""
        return self._requests.committed_count

    def finish(self) -> None:
        """Begin no more transactions; an open one is completed."""
        self._is_finishing = True

    async def run(self) -> None:
        """Run instances until `finish`."""
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
            # The transaction of a crashed instance is ended by the next one, or by its time-out
            # (5).
            await self._requests.init_ids()
        self._has_ended = True

    async def _transact(self, ids: Ids) -> None:
        """Run one transaction: some batches, then commit or abort; it may pause or crash.

        Raises InstanceEnds if the instance crashed or was fenced.
        """
        transaction = SentTransaction(f"{self.name}@{self._next_number}", *ids)
        self._events.record_begin(transaction)
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
        """Return True with the probability `share`."""
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
    """Another instance of a transactional id, which only ends transactions left open (5)."""

    def __init__(
        self,
        requests: ClusterRequests,
        transactional_id: str,
        random: Random,
        events: TransactorEvents,
    ) -> None:
        """Create an instance that writes no records."""
        self._requests = TransactionRequests(requests, transactional_id, (), random, events)

    async def run(self) -> None:
        """Initialize the transactional id, which aborts its open transaction."""
        await self._requests.init_ids()


def ids_that_outlast_their_timeout(
    transactions: Iterable[Transaction], wall_ms: int
) -> frozenset[str]:
    """Return the ids whose open transaction began later than a coordinator's clock shows.

    The clock was set back since: the time-out is delayed by as much, in Kafka too.
    """
    return frozenset(
        transaction.transactional_id
        for transaction in transactions
        if transaction.state is TransactionState.ONGOING and transaction.start_ms > wall_ms
    )
