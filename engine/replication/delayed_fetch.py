"""A delayed fetch: it waits until `min_bytes` are readable.

```
 complete when                                           Kafka's case
 a partition is missing, not led, offline, fenced        A … E
 the fetch offset is above the readable end              F  (truncated)
 the fetch offset is on an older segment than that       F  (rolled)
 bytes up to the readable ends, summed, ≥ min bytes      G
 a follower's log has diverged from this one             H
 deadline
```

On completion the partitions are read again for the response (PUR-8). Most delayed fetches come from
consumers at the end of one partition: for them there is `FastDelayedFetch`.

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
    """One partition's result; an offset of −1 is unknown because of an error.

    The code that sends `records` must release them. `preferred_replica` is the broker to read from
    instead, None for this broker.
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
        """Return the size of the records in bytes, 0 without records."""
        return 0 if self.records is None else self.records.size_bytes


FetchResults: TypeAlias = list[tuple[TopicPartition, FetchResult]]


def release_results(results: FetchResults) -> None:
    """Release the files of results that are not sent; may be called twice."""
    for _, result in results:
        if result.records is not None:
            result.records.release()


#: Reads partitions in their present state.
ReadNow: TypeAlias = Callable[
    [FetchParams, Iterable[tuple[TopicPartition, FetchSpec]]], FetchResults
]


class WaitingPartition(NamedTuple):
    """A partition of a waiting fetch, and the log position where its read stopped."""

    topic_partition: TopicPartition
    spec: FetchSpec
    start: OffsetMetadata


class DelayedFetch(DelayedOperation):
    """Waits for the bytes of its partitions; the code that completes it must call `keep`."""

    __slots__ = ("_find", "_is_throttled", "params", "promise", "waiting")

    def __init__(
        self,
        deadline_ms: int,
        params: FetchParams,
        waiting: Sequence[WaitingPartition],
        find: Callable[[TopicPartition], Partition],
        is_throttled: Callable[[Partition, int], bool],
    ) -> None:
        """Create a fetch that waits until `deadline_ms` (monotonic).

        `find` returns a partition of this broker, or raises ApiError. `is_throttled` returns True
        if the replication throttle leaves a partition out of a replica's fetch.
        """
        super().__init__(deadline_ms)
        self.params = params
        self.waiting = waiting
        self._find = find
        self._is_throttled = is_throttled
        #: Kept with the results on completion, then deleted to avoid a reference cycle.
        self.promise: Promise[FetchResults] = Promise()
        self.promise.source = self

    def keep(self, read: ReadNow) -> None:
        """Read the partitions now and keep the promise with the results."""
        promise = self.promise
        specs = [(waiting.topic_partition, waiting.spec) for waiting in self.waiting]
        self.drop()
        promise.keep_with(lambda: read(self.params, specs))

    def drop(self) -> None:
        """Release the partitions and the promise; the promise is not kept."""
        self.waiting = ()
        del self.promise

    def can_complete(self) -> bool:
        """True if enough bytes are readable (min_bytes), or a partition has an error or a
        divergence.
        """
        total_bytes = 0
        for waiting in self.waiting:
            available_bytes = self._readable_bytes(waiting)
            if available_bytes is None:
                return True
            total_bytes += available_bytes
        return total_bytes >= self.params.min_bytes

    def _readable_bytes(self, waiting: WaitingPartition) -> int | None:
        """Return the bytes of a partition that are readable now.

        None if the fetch has to complete.
        """
        topic_partition, spec, start = waiting
        try:
            partition = self._find(topic_partition)
            is_throttled = self._is_throttled(partition, self.params.replica_id)
            available_bytes = readable_bytes_after(
                partition, self.params, spec, start, is_throttled=is_throttled
            )
            is_over = available_bytes is None or partition.find_divergence(spec) is not None
        except (ApiError, StorageError):
            return None
        return None if is_over else available_bytes


class FastDelayedFetch(DelayedOperation):
    """Waits for records after the end of one partition that a consumer has read completely.

    The code that completes it must call `keep`, which keeps the promise with the result of
    `read`. The request has no last fetched epoch, so divergence is not checked.
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
        """Create a consumer's fetch of one partition, which waits until `deadline_ms` (monotonic).

        `read` returns the response at its end. Sets the fields of the base class itself, to save a
        call.
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
        """Keep the promise with the response that `read` makes; `_read` is for other fetches."""
        promise, read = self.promise, self._read
        self.drop()
        promise.keep_with(read)

    def drop(self) -> None:
        """Release `read` and the promise; the promise is not kept."""
        del self._read, self.promise

    def can_complete(self) -> bool:
        """True if enough bytes are readable (min_bytes), or the partition is unreadable."""
        topic_partition, spec, start = self._waiting
        partition = self._partitions.get(topic_partition)
        if partition is None:
            return True
        try:
            available_bytes = readable_bytes_after(partition, self._params, spec, start)
        except StorageError:
            return True
        return available_bytes is None or available_bytes >= self._params.min_bytes


def readable_bytes_after(
    partition: Partition,
    params: FetchParams,
    spec: FetchSpec,
    start: OffsetMetadata,
    *,
    is_throttled: bool = False,
) -> int | None:
    """Return the number of readable bytes after `start`, where a read stopped.

    None if the fetch has to complete in any case: cases A, C and F. A throttled replica has 0
    bytes, also on a new segment. Raises StorageError.
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
