"""A request that waits until each of its partitions has reached an offset.

What reaching means is the subclass's: the watermark for a produce, the low watermark for a
deletion. A partition that is not here any more ends its own wait with its error; at the deadline
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
    """One partition's answer; a named tuple."""

    def _replace(self, *, error: ApiError | None) -> Self: ...


A = TypeVar("A", bound=PartitionResult)


class DelayedOffsets(DelayedOperation, Generic[A]):
    """Waits for the offsets of its partitions; `promise` is kept by who completes it."""

    __slots__ = ("_find", "_required", "_results", "promise")

    def __init__(
        self,
        deadline_ms: int,
        results: dict[TopicPartition, A],
        required: Mapping[TopicPartition, int],
        find: Callable[[TopicPartition], Partition],
    ) -> None:
        """Wait for the offsets in `required`; `find` raises what a missing partition answers."""
        super().__init__(deadline_ms)
        self._results = results
        self._required = dict(required)
        self._find = find
        self.promise: Promise[dict[TopicPartition, A]] = Promise()

    @abstractmethod
    def outcome(self, partition: Partition, offset: int, answer: A) -> A | None:
        """Return the answer of a partition, from the one so far; None while it waits.

        An ApiError that is raised becomes the answer's.
        """

    def failed(self, answer: A, error: ApiError) -> A:
        """Return the answer of a partition that will not reach its offset."""
        return answer._replace(error=error)

    def can_complete(self) -> bool:
        """Tell whether no partition waits; those that are done are not looked at again."""
        for topic_partition, offset in tuple(self._required.items()):
            answer = self._results[topic_partition]
            found: A | None
            try:
                found = self.outcome(self._find(topic_partition), offset, answer)
            except ApiError as failure:
                found = self.failed(answer, failure)
            if found is not None:
                self._results[topic_partition] = found
                del self._required[topic_partition]
        return not self._required

    def keep(self) -> None:
        """Give the answers of a completed operation to who waits for them."""
        self.promise.keep(self.results())

    def results(self) -> dict[TopicPartition, A]:
        """Return the answers of a completed operation; what still waited has timed out."""
        assert self.is_completed
        for topic_partition, offset in self._required.items():
            timed_out = RequestTimedOut(topic_partition, offset)
            self._results[topic_partition] = self._results[topic_partition]._replace(
                error=timed_out
            )
        self._required.clear()
        return self._results
