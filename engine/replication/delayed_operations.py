"""The delayed operations of a broker, in a purgatory for each kind, and their completion.

```
event of a partition ── check ──┐
deadline ── advance ────────────┼─ completed ── each promise kept, even if keeping another one fails
broker stops ── drain ──────────┘
```

Source: PUR-4 … PUR-12; the three DelayedOperationPurgatory of Kafka's ReplicaManager.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from engine.host.each import do_each
from engine.model import TopicPartition
from engine.replication.delayed_delete_records import DelayedDeleteRecords
from engine.replication.delayed_fetch import DelayedFetch, FastDelayedFetch, ReadNow
from engine.replication.delayed_produce import DelayedProduce
from engine.replication.parked_fetch import ParkedFetch
from engine.replication.ports import ReplicaManagerConfig
from engine.timing.purgatory import Purgatory
from engine.timing.wheel import TimingWheel

#: A delayed fetch, by the path that serves it.
AnyFetch: TypeAlias = DelayedFetch | FastDelayedFetch | ParkedFetch


class DelayedOperations:
    """The delayed produces, fetches and DeleteRecords of a broker.

    `read_now` reads partitions for the response of a fetch. `on_waiting` gets the deadline
    (monotonic) of each operation that starts to wait.
    """

    def __init__(
        self,
        config: ReplicaManagerConfig,
        now_ms: int,
        read_now: ReadNow,
        on_waiting: Callable[[int], None],
    ) -> None:
        """Create the purgatories of produces, fetches and deletions, empty; `now_ms` is monotonic.

        `read_now` reads for a fetch that completes. `on_waiting` gets the deadline of each
        operation.
        """
        self._read_now = read_now
        self._on_waiting = on_waiting
        self.produces: Purgatory[DelayedProduce] = Purgatory(
            TimingWheel(now_ms), purge_interval=config.producer_purgatory_purge_interval_requests
        )
        self.fetches: Purgatory[AnyFetch] = Purgatory(
            TimingWheel(now_ms), purge_interval=config.fetch_purgatory_purge_interval_requests
        )
        self.deletes: Purgatory[DelayedDeleteRecords] = Purgatory(
            TimingWheel(now_ms),
            purge_interval=config.delete_records_purgatory_purge_interval_requests,
        )
        #: Watched keys of the purgatories: most events complete no delayed operation, and check
        #: only these.
        self._produce_keys = self.produces.watched_keys
        self._delete_keys = self.deletes.watched_keys
        self._fetch_keys = self.fetches.watched_keys

    def watch_produce(self, produce: DelayedProduce, keys: Iterable[TopicPartition]) -> None:
        """Watch the keys of a produce whose condition was just found false."""
        self.produces.watch(produce, keys)
        self._on_waiting(produce.deadline_ms)

    def watch_fetch(self, fetch: AnyFetch, keys: Iterable[TopicPartition]) -> None:
        """Watch the keys of a fetch whose condition was just found false."""
        self.fetches.watch(fetch, keys)
        self._on_waiting(fetch.deadline_ms)

    def watch_delete(self, deletion: DelayedDeleteRecords, keys: Iterable[TopicPartition]) -> None:
        """Watch the keys of a DeleteRecords whose condition was just found false."""
        self.deletes.watch(deletion, keys)
        self._on_waiting(deletion.deadline_ms)

    def check_all(self, topic_partition: TopicPartition) -> None:
        """Complete the operations of all kinds of a partition whose condition is true."""
        # Each kind is checked, even after an exception in another one.
        try:
            if topic_partition in self._produce_keys:
                self.check_produces(topic_partition)
        finally:
            try:
                if topic_partition in self._delete_keys:
                    self.check_deletes(topic_partition)
            finally:
                if topic_partition in self._fetch_keys:
                    self.check_fetches(topic_partition)

    def check_produces(self, topic_partition: TopicPartition) -> None:
        """Complete the produces that wait for a partition and whose condition is true."""
        if topic_partition in self._produce_keys:
            completed = self.produces.complete_for(topic_partition)
            if completed:
                do_each(completed, DelayedProduce.keep_promise)

    def check_deletes(self, topic_partition: TopicPartition) -> None:
        """Complete the DeleteRecords that wait for a partition and whose condition is true."""
        if topic_partition in self._delete_keys:
            completed = self.deletes.complete_for(topic_partition)
            if completed:
                do_each(completed, DelayedDeleteRecords.keep_promise)

    def check_fetches(self, topic_partition: TopicPartition) -> None:
        """Complete the fetches that wait for a partition and whose condition is true."""
        if topic_partition in self._fetch_keys:
            completed = self.fetches.complete_for(topic_partition)
            if completed:
                do_each(completed, self.keep_fetch)

    def keep_fetch(self, fetch: AnyFetch) -> None:
        """Read the partitions of a completed fetch, and keep its promise with the results."""
        fetch.keep(self._read_now)

    def expire(self, now_ms: int) -> None:
        """Complete the operations whose deadline is not after `now_ms` (monotonic)."""
        self._keep_promises(
            self.produces.advance(now_ms),
            self.deletes.advance(now_ms),
            self.fetches.advance(now_ms),
        )

    def drain(self) -> None:
        """Complete every operation as if its deadline had passed: the broker stops."""
        self._keep_promises(self.produces.drain(), self.deletes.drain(), self.fetches.drain())

    def _keep_promises(
        self,
        produces: list[DelayedProduce],
        deletions: list[DelayedDeleteRecords],
        fetches: list[AnyFetch],
    ) -> None:
        """Keep the promises of completed operations; an exception of one does not lose another."""
        try:
            do_each(produces, DelayedProduce.keep_promise)
        finally:
            try:
                do_each(deletions, DelayedDeleteRecords.keep_promise)
            finally:
                do_each(fetches, self.keep_fetch)

    def next_deadline_ms(self) -> int | None:
        """Return the earliest deadline (monotonic), None if no operation waits."""
        deadlines = (
            self.produces.next_deadline_ms(),
            self.fetches.next_deadline_ms(),
            self.deletes.next_deadline_ms(),
        )
        return min((due for due in deadlines if due is not None), default=None)
