"""The fast path of an append with acks=-1: one batch to one partition that has followers.

```
append ─┬─ refused ──────────────────────────> its error
        ├─ the in-sync set has it ───────────> result
        └─ DelayedProduce ─ watermark, deadline ─> kept
```

Source: ISR-9, PUR-10; D21. What is off the fast path is for `ReplicaManager.append_records`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from engine.errors import ApiError, StorageError
from engine.host.ports import Clock
from engine.host.promise import Promise
from engine.model import TopicPartition, new_tuple
from engine.naming import INTERNAL_TOPICS
from engine.replication.delayed_produce import DelayedProduce, ProduceResult, ProduceResults
from engine.replication.partition import Partition


class ProduceSide(NamedTuple):
    """What an append needs of its replica manager.

    `watch` lets a produce wait; `complete_behind` tells of a partition that was appended to, and
    of its watermark before.
    """

    clock: Clock
    partitions: Mapping[TopicPartition, Partition]
    find: Callable[[TopicPartition], Partition]
    watch: Callable[[DelayedProduce, Mapping[TopicPartition, int]], None]
    failed: Callable[[TopicPartition, ApiError | StorageError], ProduceResult]
    complete_behind: Callable[[Partition, int], None]


class AwaitedAppend:
    """Appends of one replica manager."""

    def __init__(self, side: ProduceSide) -> None:
        self._side = side
        self._partitions = side.partitions

    def append_fast(
        self,
        topic_partition: TopicPartition,
        batches: memoryview,
        timeout_ms: int,
        *,
        is_internal_allowed: bool = False,
    ) -> ProduceResult | Promise[ProduceResults] | None:
        """Append and return the result, or a promise of it within `timeout_ms`.

        None when nothing has been done: the partition is not here, not led or without followers,
        too few are in sync, or it is not one batch in no transaction.
        """
        partition = self._partitions.get(topic_partition)
        if (
            partition is None
            or not partition.followers
            or partition.is_under_min_isr
            or (topic_partition.topic in INTERNAL_TOPICS and not is_internal_allowed)
        ):
            return None
        watermark = partition.high_watermark
        try:
            info = partition.append_fast(batches)
        except (ApiError, StorageError) as failure:
            return self._side.failed(topic_partition, failure)
        if info is None:
            return None
        first_offset, last_offset, _, append_time_ms, log_start_offset, _, _, is_duplicate = info
        result = new_tuple(ProduceResult, (None, first_offset, append_time_ms, log_start_offset))
        awaited: ProduceResult | Promise[ProduceResults] = result
        if partition.high_watermark <= last_offset:
            # Watched before others are told of it: what they do may complete it.
            awaited = self._await(topic_partition, result, last_offset + 1, timeout_ms)
        if not is_duplicate:
            self._side.complete_behind(partition, watermark)
        return awaited

    def _await(
        self,
        topic_partition: TopicPartition,
        result: ProduceResult,
        required_offset: int,
        timeout_ms: int,
    ) -> Promise[ProduceResults]:
        clock, _, find, watch, _, _ = self._side
        deadline_ms = clock.monotonic_ms() + timeout_ms
        required = {topic_partition: required_offset}
        produce = DelayedProduce(deadline_ms, {topic_partition: result}, required, find)
        watch(produce, required)
        return produce.promise
