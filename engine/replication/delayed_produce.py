"""A produce with acks=-1 that waits until the in-sync replicas have its records.

```
 partition failed on append ─────────────────────────> its error, never waited for
 partition here no more, led by another, failed ─────> that error
 high watermark ≥ required offset, set large enough ─> success
                                   set too small ────> NOT_ENOUGH_REPLICAS_AFTER_APPEND
 deadline ───────────────────────────────────────────> REQUEST_TIMED_OUT
```

Complete when no partition waits. Source: PUR-4, PART-6; Kafka's DelayedProduce.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

from engine.errors import ApiError
from engine.model import TopicPartition
from engine.replication.errors import NotEnoughReplicasAfterAppend, RequestTimedOut
from engine.replication.partition import Partition
from engine.timing.purgatory import DelayedOperation


class ProduceResult(NamedTuple):
    """One partition's answer; offsets and time are −1 where it has none."""

    error: ApiError | None
    base_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1


ProduceReply: TypeAlias = Callable[[dict[TopicPartition, ProduceResult]], None]


class DelayedProduce(DelayedOperation):
    """Waits for the watermarks of its partitions; `reply` is run by who completes it."""

    __slots__ = ("_find", "_required", "_results", "reply")

    def __init__(
        self,
        deadline_ms: int,
        results: dict[TopicPartition, ProduceResult],
        required: Mapping[TopicPartition, int],
        find: Callable[[TopicPartition], Partition],
        reply: ProduceReply,
    ) -> None:
        """Wait for the offsets in `required`; `find` raises what a missing partition answers."""
        super().__init__(deadline_ms)
        self._results = results
        self._required = dict(required)
        self._find = find
        self.reply = reply

    def can_complete(self) -> bool:
        """Tell whether no partition waits; those that are done are not looked at again."""
        for topic_partition, offset in tuple(self._required.items()):
            error = None
            try:
                enough = self._find(topic_partition).enough_replicas_reached(offset)
            except ApiError as failure:
                error = failure
            else:
                if not enough.is_reached:
                    continue
                if enough.isr_count < enough.min_isr_count:
                    error = NotEnoughReplicasAfterAppend(
                        topic_partition, enough.isr_count, enough.min_isr_count
                    )
            del self._required[topic_partition]
            if error is not None:
                self._fail(topic_partition, error)
        return not self._required

    def results(self) -> dict[TopicPartition, ProduceResult]:
        """Return the answers of a completed operation; what still waited has timed out."""
        assert self.is_completed
        for topic_partition, offset in self._required.items():
            self._fail(topic_partition, RequestTimedOut(topic_partition, offset))
        self._required.clear()
        return self._results

    def _fail(self, topic_partition: TopicPartition, error: ApiError) -> None:
        # Kafka keeps the offsets in the answer: the records are there, if not everywhere.
        self._results[topic_partition] = self._results[topic_partition]._replace(error=error)
