"""A fetch that waits for bytes.

```
 complete when                                           Kafka's case
 a partition is not here, not led, offline, fenced       A … E
 the fetch offset is behind the readable end             F  (truncated)
 … or on an older segment than it                        F  (rolled)
 bytes up to the readable ends, summed, ≥ min bytes      G
 a follower's log has parted from this one               H
 deadline
```

The answer is read anew on completion (PUR-8). Most that wait are consumers which have read all of
one partition: a `DelayedTail` knows these cases for them.

Source: PUR-5, PUR-6; Kafka's DelayedFetch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from engine.errors import ApiError, StorageError
from engine.log.log_types import FetchSlice, OffsetMetadata
from engine.model import TopicPartition
from engine.replication.partition import Partition
from engine.replication.partition_types import EpochEnd, FetchParams, FetchSpec
from engine.replication.watermark import Isolation
from engine.timing.purgatory import DelayedOperation


class FetchResult(NamedTuple):
    """One partition's answer; offsets are −1 where an error left them unknown.

    Whoever sends `records` releases them.
    """

    error: ApiError | None
    records: FetchSlice | None = None
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    diverging_epoch: EpochEnd | None = None

    @property
    def size_bytes(self) -> int:
        """Return how many bytes of records there are."""
        return 0 if self.records is None else self.records.size_bytes


FetchResults: TypeAlias = list[tuple[TopicPartition, FetchResult]]
FetchReply: TypeAlias = Callable[[FetchResults], None]
#: Reads partitions as they are now.
ReadAnew: TypeAlias = Callable[
    [FetchParams, Iterable[tuple[TopicPartition, FetchSpec]]], FetchResults
]


class WaitingPartition(NamedTuple):
    """What is asked of a partition, and the place where its read stopped."""

    topic_partition: TopicPartition
    spec: FetchSpec
    start: OffsetMetadata


class DelayedFetch(DelayedOperation):
    """Waits for the bytes of its partitions; `reply` is run by who completes it."""

    __slots__ = ("_find", "params", "reply", "waiting")

    def __init__(
        self,
        deadline_ms: int,
        params: FetchParams,
        waiting: Sequence[WaitingPartition],
        find: Callable[[TopicPartition], Partition],
        reply: FetchReply,
    ) -> None:
        super().__init__(deadline_ms)
        self.params = params
        self.waiting = waiting
        self._find = find
        self.reply = reply

    def answer(self, read: ReadAnew) -> None:
        """Reply with what is there now."""
        specs = [(waiting.topic_partition, waiting.spec) for waiting in self.waiting]
        self.reply(read(self.params, specs))

    def can_complete(self) -> bool:
        """Tell whether there is enough to read, or something that waiting does not mend."""
        total_bytes = 0
        for topic_partition, spec, start in self.waiting:
            try:
                partition = self._find(topic_partition)
                end = partition.end_for(self.params, spec)
                diverging = partition.find_divergence(spec)
            except (ApiError, StorageError):
                return True
            if diverging is not None or start.offset > end.offset:
                return True
            if start.offset < end.offset:
                if start.segment_base_offset < end.segment_base_offset:
                    return True
                if start.segment_base_offset == end.segment_base_offset:
                    total_bytes += min(end.position - start.position, spec.max_bytes)
        return total_bytes >= self.params.min_bytes


class DelayedTail(DelayedOperation):
    """Waits for what comes behind the end of one partition, which a consumer has read.

    `on_over` is run by who completes it, and reads anew. The reader does not say which epoch it has
    read to, so that its log cannot part from this one.
    """

    __slots__ = ("_on_over", "_params", "_partitions", "_waiting")

    def __init__(
        self,
        deadline_ms: int,
        params: FetchParams,
        waiting: WaitingPartition,
        partitions: Mapping[TopicPartition, Partition],
        on_over: Callable[[], None],
    ) -> None:
        self.deadline_ms = deadline_ms
        self._bucket = None
        self.is_completed = False
        self.is_expired = False
        self._params = params
        self._waiting = waiting
        self._partitions = partitions
        self._on_over = on_over

    def answer(self, _read: ReadAnew) -> None:
        """Let the reader see what is there now."""
        self._on_over()

    def can_complete(self) -> bool:
        """Tell what a `DelayedFetch` of this partition alone would tell."""
        topic_partition, spec, start = self._waiting
        partition = self._partitions.get(topic_partition)
        if partition is None:
            return True
        _, _, min_bytes, _, isolation, is_leader_required, _ = self._params
        leader_epoch = spec[2]
        if (leader_epoch is not None and leader_epoch != partition.leader_epoch) or (
            is_leader_required and partition.leader_id != partition.broker_id
        ):
            return True
        log = partition.log
        end = partition.high_watermark
        if isolation is Isolation.COMMITTED:
            end = log.last_stable_offset(end)
        offset, segment_base_offset, position = start
        if end <= offset:
            return end < offset
        if end < log.log_end_offset:
            try:
                _, end_base_offset, end_position = log.locate(end)
            except StorageError:
                return True
        else:
            active = log.active_segment
            end_base_offset, end_position = active.base_offset, active.size_bytes
        if segment_base_offset != end_base_offset:
            return segment_base_offset < end_base_offset
        return min(end_position - position, spec[1]) >= min_bytes
