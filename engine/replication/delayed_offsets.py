"""A request that waits until each of its partitions has reached an offset.

The subclass decides which offset counts: the watermark for a produce, the low watermark for a
deletion. A partition that is not here any more ends its wait with its error; at the deadline
those that still wait have timed out. Complete when no partition waits.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Generic, Protocol, Self, TypeVar

from engine.errors import ApiError
from engine.host.promise import Promise
from engine.model import TopicPartition
from engine.replication.errors import RequestTimedOut
from engine.replication.partition import Partition
from engine.timing.purgatory import DelayedOperation


class PartitionResult(Protocol):
    """One partition's result; a named tuple."""

    def _replace(self, *, error: ApiError | None) -> Self: ...


A = TypeVar("A", bound=PartitionResult)


class DelayedOffsets(DelayedOperation, Generic[A]):
    """Waits for the offsets of its partitions; the code that completes it keeps `promise`."""

    __slots__ = ("_find", "_required", "_results", "promise")

    def __init__(
        self,
        deadline_ms: int,
        results: dict[TopicPartition, A],
        required: Mapping[TopicPartition, int],
        find: Callable[[TopicPartition], Partition],
    ) -> None:
        """Wait for the offsets in `required`; `find` raises the error of a missing partition."""
        super().__init__(deadline_ms)
        self._results = results
        #: Offset that each partition's high watermark must reach; partitions leave when it has, or
        #: has failed.
        self._required = dict(required)
        self._find = find
        #: Kept with the results of all partitions; deleted then, so that nothing is referenced in a
        #: circle.
        self.promise: Promise[dict[TopicPartition, A]] = Promise()
        self.promise.source = self

    @abstractmethod
    def settled(self, partition: Partition, offset: int, result: A) -> A | None:
        """Return the result of a partition, from the one so far; None while it waits.

        An ApiError that is raised becomes the result's.
        """

    def failed(self, result: A, error: ApiError) -> A:
        """Return the result of a partition that will not reach its offset."""
        return result._replace(error=error)

    def can_complete(self) -> bool:
        """Return True once every partition is done; done partitions are not checked again."""
        for topic_partition in tuple(self._required):
            self._check(topic_partition)
        return not self._required

    def _check(self, topic_partition: TopicPartition) -> None:
        """Settle a partition that has reached its offset, or whose replica is gone."""
        result = self._results[topic_partition]
        settled: A | None
        try:
            partition = self._find(topic_partition)
            settled = self.settled(partition, self._required[topic_partition], result)
        except ApiError as failure:
            settled = self.failed(result, failure)
        if settled is not None:
            self._results[topic_partition] = settled
            del self._required[topic_partition]

    def keep(self) -> None:
        """Keep the promise of a completed operation."""
        promise, results = self.promise, self.results()
        # As `drop` does, without a call.
        del self._results, self._required, self.promise
        promise.keep(results)

    def drop(self) -> None:
        """Release the results and the promise."""
        del self._results, self._required, self.promise

    def results(self) -> dict[TopicPartition, A]:
        """Return the results of a completed operation; partitions still waiting have timed out."""
        assert self.is_completed
        for topic_partition, offset in self._required.items():
            timed_out = RequestTimedOut(topic_partition, offset)
            self._results[topic_partition] = self._results[topic_partition]._replace(
                error=timed_out
            )
        return self._results
