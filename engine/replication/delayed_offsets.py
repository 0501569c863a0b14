"""A delayed request that waits until each of its partitions has reached an offset.

The subclass decides which offset counts: the high watermark for a produce, the low watermark for
DeleteRecords. A partition that is removed from this broker gets an error. At the deadline the
remaining partitions get REQUEST_TIMED_OUT. The request completes when no partition waits.
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
    """Waits for the offsets of its partitions; who completes it must call `keep_promise`."""

    __slots__ = ("_find", "_required", "_results", "promise")

    def __init__(
        self,
        deadline_ms: int,
        results: dict[TopicPartition, A],
        required: Mapping[TopicPartition, int],
        find: Callable[[TopicPartition], Partition],
    ) -> None:
        """Create an operation that waits for the offsets in `required` until `deadline_ms`.

        `results` are the present results. `find` returns a partition or raises its ApiError.
        """
        super().__init__(deadline_ms)
        self._results = results
        #: Required offset of each waiting partition; a partition is removed when it is done or has
        #: failed.
        self._required = dict(required)
        self._find = find
        #: Kept with the results of all partitions, then deleted to avoid a reference cycle.
        self.promise: Promise[dict[TopicPartition, A]] = Promise()
        self.promise.source = self

    @abstractmethod
    def final_result(self, partition: Partition, offset: int, result: A) -> A | None:
        """Return the final result of a partition, None while the partition waits for `offset`.

        `result` is the present result. An ApiError that is raised becomes the error of the result.
        """

    def failed(self, result: A, error: ApiError) -> A:
        """Return the result of a partition with an error."""
        return result._replace(error=error)

    def can_complete(self) -> bool:
        """True if no partition waits any more; each waiting partition is checked first."""
        for topic_partition in tuple(self._required):
            self._check_partition(topic_partition)
        return not self._required

    def _check_partition(self, topic_partition: TopicPartition) -> None:
        """Check one waiting partition; if it has reached its offset or failed, store its result."""
        result = self._results[topic_partition]
        settled: A | None
        try:
            partition = self._find(topic_partition)
            settled = self.final_result(partition, self._required[topic_partition], result)
        except ApiError as failure:
            settled = self.failed(result, failure)
        if settled is not None:
            self._results[topic_partition] = settled
            del self._required[topic_partition]

    def keep_promise(self) -> None:
        """Keep the promise with the results; the operation must be completed."""
        promise, results = self.promise, self.collect_results()
        # The same as `drop`, without a call.
        del self._results, self._required, self.promise
        promise.keep(results)

    def drop(self) -> None:
        """Release the results and the promise; the promise is not kept."""
        del self._results, self._required, self.promise

    def collect_results(self) -> dict[TopicPartition, A]:
        """Return the results of a completed operation; waiting partitions get RequestTimedOut."""
        assert self.is_completed
        for topic_partition, offset in self._required.items():
            timed_out = RequestTimedOut(topic_partition, offset)
            self._results[topic_partition] = self._results[topic_partition]._replace(
                error=timed_out
            )
        return self._results
