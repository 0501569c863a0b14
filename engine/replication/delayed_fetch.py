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

The answer is read anew on completion (PUR-8). Source: PUR-5, PUR-6; Kafka's DelayedFetch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from engine.errors import ApiError, StorageError
from engine.log.log_types import FetchSlice, OffsetMetadata
from engine.model import TopicPartition
from engine.replication.partition import Partition
from engine.replication.partition_types import EpochEnd, FetchParams, FetchSpec
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
