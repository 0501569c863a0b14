"""A produce with acks=-1 that waits until the in-sync replicas have its records.

```
 partition failed on append ─────────────────────────> its error, without a wait
 partition removed, led by another broker, failed ───> that error
 high watermark ≥ required offset, ISR large enough ─> success
                                   ISR too small ────> NOT_ENOUGH_REPLICAS_AFTER_APPEND
 deadline ───────────────────────────────────────────> REQUEST_TIMED_OUT
```

Complete when no partition waits. Source: ISR-9, R8, PUR-4, PART-6; Kafka's DelayedProduce.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from engine.errors import ApiError
from engine.model import TopicPartition
from engine.replication.delayed_offsets import DelayedOffsets
from engine.replication.errors import NotEnoughReplicasAfterAppend
from engine.replication.partition import Partition


class ProduceResult(NamedTuple):
    """One partition's result; offsets and time are −1 if unknown."""

    error: ApiError | None
    base_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1


ProduceResults: TypeAlias = dict[TopicPartition, ProduceResult]


class DelayedProduce(DelayedOffsets[ProduceResult]):
    """Waits for the high watermarks of its partitions.

    A partition that fails keeps the offsets in its result, as in Kafka: the leader has the records.
    """

    __slots__ = ()

    def can_complete_after(self, key: object) -> bool:
        """Check only the partition `key` of an event; True if no partition waits any more.

        High watermark, leader and ISR change only by events of their own partition. A check of
        every partition at every event would be quadratic for a produce to thousands of partitions.
        """
        if key in self._required:
            self._check_partition(key)
        return not self._required

    def final_result(
        self, partition: Partition, offset: int, result: ProduceResult
    ) -> ProduceResult | None:
        """Return the result once the high watermark has reached `offset`, None before.

        Raises NotEnoughReplicasAfterAppend.
        """
        enough = partition.check_enough_replicas(offset)
        if not enough.is_reached:
            return None
        if enough.isr_count < enough.min_isr_count:
            raise NotEnoughReplicasAfterAppend(
                partition.topic_partition, enough.isr_count, enough.min_isr_count
            )
        return result
