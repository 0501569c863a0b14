"""Requests that wait until the brokers' metadata shows what they wrote.

| operation | is done for a topic when |
|---|---|
| create, more partitions | each of its partitions has a leader in the metadata |
| elect leaders | each partition that got a leader is led by it in the metadata |
| delete | the metadata has no such topic |

Those topics that are not done by the deadline are answered with REQUEST_TIMED_OUT; what was
written goes on all the same.

Source: DelayedCreatePartitions, DelayedDeleteTopics, DelayedElectLeader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from engine.host.ports import Clock, Timers
from engine.model import TopicPartition
from engine.replication.metadata_cache import MetadataCache
from engine.timing.purgatory import DelayedOperation, Purgatory
from engine.timing.wheel import TimingWheel

#: Told of the topics that were not done in time.
OnWaited: TypeAlias = Callable[[list[str]], None]

_PURGE_INTERVAL = 1000
_NO_LEADER = -1


class _DelayedTopics(DelayedOperation):
    """Topics that are not done yet; each is looked at until it is."""

    __slots__ = ("_is_done", "on_waited", "pending")

    def __init__(
        self,
        deadline_ms: int,
        topics: Iterable[str],
        is_done: Callable[[str], bool],
        on_waited: OnWaited,
    ) -> None:
        super().__init__(deadline_ms)
        self.pending = list(reversed(list(topics)))
        self._is_done = is_done
        self.on_waited = on_waited

    def can_complete(self) -> bool:
        """Tell whether all are done."""
        while self.pending and self._is_done(self.pending[-1]):
            self.pending.pop()
        return not self.pending

    def late(self) -> list[str]:
        """Return what is not done now."""
        return [each for each in reversed(self.pending) if not self._is_done(each)]


class TopicWaiting:
    """The requests of one broker that wait for its metadata."""

    def __init__(self, cache: MetadataCache, clock: Clock, timers: Timers) -> None:
        self._cache = cache
        self._clock = clock
        self._timers = timers
        wheel: TimingWheel[_DelayedTopics] = TimingWheel(clock.monotonic_ms())
        self._purgatory: Purgatory[_DelayedTopics] = Purgatory(
            wheel, purge_interval=_PURGE_INTERVAL
        )

    def for_leaders(
        self, partition_counts: Mapping[str, int], timeout_ms: int, on_waited: OnWaited
    ) -> None:
        """Wait until topics have so many partitions, each with a leader."""

        def is_done(topic: str) -> bool:
            partitions = self._cache.topics.get(topic, {})
            led = sum(each.leader_id != _NO_LEADER for each in partitions.values())
            return led >= partition_counts[topic]

        self._wait(partition_counts, timeout_ms, is_done, on_waited)

    def for_new_leaders(
        self, leaders: Mapping[TopicPartition, int], timeout_ms: int, on_waited: OnWaited
    ) -> None:
        """Wait until the metadata shows partitions led by brokers."""
        topics: dict[str, list[TopicPartition]] = {}
        for partition in leaders:
            topics.setdefault(partition.topic, []).append(partition)

        def is_done(topic: str) -> bool:
            found = ((each, self._cache.partition(each)) for each in topics[topic])
            return all(it is not None and it.leader_id == leaders[each] for each, it in found)

        self._wait(topics, timeout_ms, is_done, on_waited)

    def for_removal(self, topics: Iterable[str], timeout_ms: int, on_waited: OnWaited) -> None:
        """Wait until topics are gone."""
        self._wait(topics, timeout_ms, lambda topic: topic not in self._cache.topics, on_waited)

    def check(self, topics: Iterable[str]) -> None:
        """Look again at what waits for topics whose metadata changed."""
        for topic in topics:
            for operation in self._purgatory.check(topic):
                operation.on_waited([])

    def _wait(
        self,
        topics: Iterable[str],
        timeout_ms: int,
        is_done: Callable[[str], bool],
        on_waited: OnWaited,
    ) -> None:
        keys = list(topics)
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        operation = _DelayedTopics(deadline_ms, keys, is_done, on_waited)
        if self._purgatory.try_complete_else_watch(operation, keys):
            operation.on_waited([])
        elif not operation.is_completed:
            self._timers.call_at(deadline_ms, self._expire)

    def _expire(self) -> None:
        for operation in self._purgatory.advance(self._clock.monotonic_ms()):
            operation.on_waited(operation.late())
