"""Requests that wait until the broker's metadata shows their effect.

| operation | is complete for a topic when |
|---|---|
| create, more partitions | each of its partitions has a leader in the metadata |
| elect leaders | each partition with a new leader has it in the metadata |
| delete | the metadata has no such topic |

Topics that are not complete by the deadline get REQUEST_TIMED_OUT; their changes continue.

Source: DelayedCreatePartitions, DelayedDeleteTopics, DelayedElectLeader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from engine.host.each import do_each
from engine.host.ports import Clock
from engine.host.promise import Promise
from engine.model import TopicPartition
from engine.replication.metadata_cache import MetadataCache
from engine.timing.purgatory import DelayedOperation, Purgatory, PurgatoryCount
from engine.timing.wheel import TimingWheel

_PURGE_INTERVAL = 1000
_NO_LEADER = -1


class _DelayedTopics(DelayedOperation):
    """A request whose topics are not all complete."""

    __slots__ = ("_is_done", "late_topics", "pending")

    def __init__(
        self,
        deadline_ms: int,
        topics: Iterable[str],
        is_done: Callable[[str], bool],
    ) -> None:
        """Create the operation of a request that waits until the change of each topic is complete.

        `is_done` returns True if the change of a topic is.
        """
        super().__init__(deadline_ms)
        #: Topics that are not complete; the next one to check is last.
        self.pending = list(reversed(list(topics)))
        self._is_done = is_done
        #: The promise of the topics that were not complete in time; deleted when it is kept, to
        #: avoid a reference cycle.
        self.late_topics: Promise[list[str]] = Promise()
        self.late_topics.source = self

    def can_complete(self) -> bool:
        """Return True if the change of each topic is complete."""
        while self.pending and self._is_done(self.pending[-1]):
            self.pending.pop()
        return not self.pending

    def keep(self) -> None:
        """Keep the promise with the topics that are not complete now.

        Called once, after the purgatory marked the operation as completed.
        """
        promise = self.late_topics
        late = [topic for topic in reversed(self.pending) if not self._is_done(topic)]
        self.drop()
        promise.keep(late)

    def abandon(self) -> bool:
        """Complete the operation as at its deadline, if it waits.

        Returns False if it was completed.
        """
        if not self.force_complete():
            return False
        self.keep()
        return True

    def drop(self) -> None:
        """Release the topics, the condition and the promise."""
        self.pending = []
        del self._is_done, self.late_topics


class TopicWaiting:
    """The requests of one broker that wait for its metadata.

    `on_waiting` is called with the deadline (monotonic) of each request that starts to wait, for
    `advance`. Each method returns a promise of the topics that were not complete in time; it is
    kept at once if there is nothing to wait for.
    """

    def __init__(
        self, metadata_cache: MetadataCache, clock: Clock, on_waiting: Callable[[int], None]
    ) -> None:
        """Create the purgatory of topic requests, without operations.

        `on_waiting` is called with the deadline (monotonic) of each request that has to wait.
        """
        self._metadata_cache = metadata_cache
        self._clock = clock
        self._on_waiting = on_waiting
        wheel: TimingWheel[_DelayedTopics] = TimingWheel(clock.monotonic_ms())
        self._purgatory: Purgatory[_DelayedTopics] = Purgatory(
            wheel, purge_interval=_PURGE_INTERVAL
        )

    @property
    def delayed_count(self) -> int:
        """The number of waiting requests."""
        return self._purgatory.delayed_count

    @property
    def purgatory_count(self) -> PurgatoryCount:
        """The numbers of waiting requests and of watched entries, for the metrics."""
        return self._purgatory.count

    def await_leaders(
        self, partition_counts: Mapping[str, int], timeout_ms: int
    ) -> Promise[list[str]]:
        """Wait until each topic has the given number of partitions with a leader.

        Promises the topics that do not have them after `timeout_ms`, in order.
        """

        def is_done(topic: str) -> bool:
            """Return True if the topic has enough leaders."""
            partitions = self._metadata_cache.topics.get(topic, {})
            led = sum(partition.leader_id != _NO_LEADER for partition in partitions.values())
            return led >= partition_counts[topic]

        return self._await_all(partition_counts, timeout_ms, is_done)

    def await_new_leaders(
        self, leaders: Mapping[TopicPartition, int], timeout_ms: int
    ) -> Promise[list[str]]:
        """Wait until the metadata has the given leader of each partition, after an election.

        Promises the topics for which it does not after `timeout_ms`.
        """
        topics: dict[str, list[TopicPartition]] = {}
        for partition in leaders:
            topics.setdefault(partition.topic, []).append(partition)

        def is_led(partition: TopicPartition) -> bool:
            """Return True if the partition has the new leader."""
            metadata = self._metadata_cache.partition(partition)
            return metadata is not None and metadata.leader_id == leaders[partition]

        def is_done(topic: str) -> bool:
            """Return True if each partition of the topic has its new leader."""
            return all(is_led(partition) for partition in topics[topic])

        return self._await_all(topics, timeout_ms, is_done)

    def for_removal(self, topics: Iterable[str], timeout_ms: int) -> Promise[list[str]]:
        """Wait until the metadata does not have the topics any more.

        Promises the topics that it still has after `timeout_ms`.
        """
        return self._await_all(
            topics, timeout_ms, lambda topic: topic not in self._metadata_cache.topics
        )

    def check(self, topics: Iterable[str]) -> None:
        """Complete the requests whose changes are complete, after a change of `topics`."""
        do_each(sorted(topics), self._check)

    def _check(self, topic: str) -> None:
        """Complete the requests that wait for a topic and whose changes are complete."""
        do_each(self._purgatory.complete_for(topic), _DelayedTopics.keep)

    def _await_all(
        self, topics: Iterable[str], timeout_ms: int, is_done: Callable[[str], bool]
    ) -> Promise[list[str]]:
        """Promise the topics that are not complete after `timeout_ms`; kept early if all are."""
        keys = list(topics)
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        operation = _DelayedTopics(deadline_ms, keys, is_done)
        late_topics = operation.late_topics
        if self._purgatory.try_complete_else_watch(operation, keys):
            operation.keep()
        elif not operation.is_completed:
            self._on_waiting(deadline_ms)
        return late_topics

    def advance(self) -> None:
        """Complete the requests whose deadline has passed; the broker's timer calls this."""
        do_each(self._purgatory.advance(self._clock.monotonic_ms()), _DelayedTopics.keep)

    def next_deadline_ms(self) -> int | None:
        """Return the time of the next necessary `advance` (monotonic), None if no request waits."""
        return self._purgatory.next_deadline_ms()

    def stop(self) -> None:
        """Complete all waiting requests as at their deadline, so that each gets a response."""
        do_each(self._purgatory.drain(), _DelayedTopics.keep)
