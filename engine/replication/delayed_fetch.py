"""A fetch that waits for bytes.

```
 complete when                                           Kafka's case
 a partition is not here, not led, offline, fenced       A … E
 the fetch offset is above the readable end              F  (truncated)
 … or on an older segment than it                        F  (rolled)
 bytes up to the readable ends, summed, ≥ min bytes      G
 a follower's log has diverged from this one             H
 deadline
```

The response is read again on completion (PUR-8). Most delayed fetches are of consumers
which have read all of one partition: a `FastDelayedFetch` knows these cases for them.

Source: PUR-5, PUR-6; Kafka's DelayedFetch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from engine.errors import ApiError, StorageError
from engine.host.promise import Promise
from engine.log.log_types import FetchSlice, OffsetMetadata
from engine.model import TopicPartition
from engine.replication.partition import Partition
from engine.replication.partition_types import EpochEnd, FetchParams, FetchSpec
from engine.replication.watermark import readable_end
from engine.timing.purgatory import DelayedOperation


class FetchResult(NamedTuple):
    """One partition's result; offsets are −1 where an error left them unknown.

    The sender of `records` releases them. `preferred_replica` is the replica to read from instead.
    """

    error: ApiError | None
    records: FetchSlice | None = None
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    diverging_epoch: EpochEnd | None = None
    preferred_replica: int | None = None

    @property
    def size_bytes(self) -> int:
        """Return how many bytes of records there are."""
        return 0 if self.records is None else self.records.size_bytes


FetchResults: TypeAlias = list[tuple[TopicPartition, FetchResult]]


def release_results(results: FetchResults) -> None:
    """Release the files of results that are not sent; released ones stay so."""
    for _, result in results:
        if result.records is not None:
            result.records.release()


#: Reads partitions as they are now.
ReadNow: TypeAlias = Callable[
    [FetchParams, Iterable[tuple[TopicPartition, FetchSpec]]], FetchResults
]


class WaitingPartition(NamedTuple):
    """A partition of a waiting fetch, and the position where its read stopped."""

    topic_partition: TopicPartition
    spec: FetchSpec
    start: OffsetMetadata


class DelayedFetch(DelayedOperation):
    """Waits for the bytes of its partitions; the code that completes it runs `keep`."""

    __slots__ = ("_find", "_is_throttled", "params", "promise", "waiting")

    def __init__(
        self,
        deadline_ms: int,
        params: FetchParams,
        waiting: Sequence[WaitingPartition],
        find: Callable[[TopicPartition], Partition],
        is_throttled: Callable[[Partition, int], bool],
    ) -> None:
        """`is_throttled` returns whether a throttle leaves a partition out for a replica.

        `find` returns a partition of this broker, or raises an ApiError.
        """
        super().__init__(deadline_ms)
        self.params = params
        self.waiting = waiting
        self._find = find
        self._is_throttled = is_throttled
        #: Kept with the results when the fetch completes; deleted then, so that nothing is
        #: referenced in a circle.
        self.promise: Promise[FetchResults] = Promise()
        self.promise.source = self

    def keep(self, read: ReadNow) -> None:
        """Keep the promise with the records that are there now."""
        promise = self.promise
        specs = [(waiting.topic_partition, waiting.spec) for waiting in self.waiting]
        self.drop()
        promise.keep_with(lambda: read(self.params, specs))

    def drop(self) -> None:
        """Release the partitions and the promise."""
        self.waiting = ()
        del self.promise

    def can_complete(self) -> bool:
        """Return True if a response is due: enough bytes, or an error that waiting cannot end."""
        total_bytes = 0
        for waiting in self.waiting:
            available_bytes = self._bytes_of(waiting)
            if available_bytes is None:
                return True
            total_bytes += available_bytes
        return total_bytes >= self.params.min_bytes

    def _bytes_of(self, waiting: WaitingPartition) -> int | None:
        """Return the readable bytes of a partition; None if waiting cannot resolve its error."""
        topic_partition, spec, start = waiting
        try:
            partition = self._find(topic_partition)
            is_throttled = self._is_throttled(partition, self.params.replica_id)
            available_bytes = bytes_after(
                partition, self.params, spec, start, is_throttled=is_throttled
            )
            is_over = available_bytes is None or partition.find_divergence(spec) is not None
        except (ApiError, StorageError):
            return None
        return None if is_over else available_bytes


class FastDelayedFetch(DelayedOperation):
    """Waits for records after the end of one partition, which a consumer has read.

    The code that completes it runs `read`, and the result keeps the promise. The request has no
    last fetched epoch, so that its log cannot diverge from this one.
    """

    __slots__ = ("_params", "_partitions", "_read", "_waiting", "promise")

    def __init__(
        self,
        deadline_ms: int,
        params: FetchParams,
        waiting: WaitingPartition,
        partitions: Mapping[TopicPartition, Partition],
        read: Callable[[], Any],
    ) -> None:
        """`read` returns the response.

        The fields of the base class are set here, without its call.
        """
        self.deadline_ms = deadline_ms
        self._bucket = None
        self.is_completed = False
        self.is_expired = False
        self._params = params
        self._waiting = waiting
        self._partitions = partitions
        self._read = read
        self.promise: Promise[Any] = Promise()
        self.promise.source = self

    def keep(self, _read: ReadNow) -> None:
        """Keep the promise with the records that are there now."""
        promise, read = self.promise, self._read
        self.drop()
        promise.keep_with(read)

    def drop(self) -> None:
        """Release the reader and the promise."""
        del self._read, self.promise

    def can_complete(self) -> bool:
        """Return whether a response is due, as a `DelayedFetch` of this partition alone would."""
        topic_partition, spec, start = self._waiting
        partition = self._partitions.get(topic_partition)
        if partition is None:
            return True
        try:
            available_bytes = bytes_after(partition, self._params, spec, start)
        except StorageError:
            return True
        return available_bytes is None or available_bytes >= self._params.min_bytes


def bytes_after(
    partition: Partition,
    params: FetchParams,
    spec: FetchSpec,
    start: OffsetMetadata,
    *,
    is_throttled: bool = False,
) -> int | None:
    """Return the number of readable bytes after the position where a read stopped.

    None if waiting is over without regard to bytes: cases A, C and F. A throttled replica has 0
    bytes, on a new segment too. Raises StorageError.
    """
    _, _, _, _, isolation, is_leader_required, _, _ = params
    _, max_bytes, leader_epoch, _, _ = spec
    if not partition.serves(leader_epoch, is_leader_required=is_leader_required):
        return None
    log = partition.log
    watermark = partition.high_watermark
    end = readable_end(isolation, log.log_end_offset, watermark, log.last_stable_offset(watermark))
    offset, base_offset, position = start
    if end <= offset:
        return 0 if end == offset else None
    if end < log.log_end_offset:
        _, end_base_offset, end_position = log.locate(end)
    else:
        active = log.active_segment
        end_base_offset, end_position = active.base_offset, active.size_bytes
    if base_offset != end_base_offset:
        return None if base_offset < end_base_offset and not is_throttled else 0
    return 0 if is_throttled else min(end_position - position, max_bytes)
