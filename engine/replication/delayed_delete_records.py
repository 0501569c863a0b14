"""A deletion of records that waits until no live replica shows them.

```
 partition refused ──────────────────────────────────> its error, never waited for
 partition here no more, led by another, failed ─────> that error
 low watermark ≥ requested offset ───────────────────> success, with the low watermark
 deadline ───────────────────────────────────────────> REQUEST_TIMED_OUT
```

Complete when no partition waits. Source: HW-18, PUR-11; Kafka's DelayedDeleteRecords.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

from engine.errors import ApiError
from engine.model import TopicPartition
from engine.replication.errors import RequestTimedOut
from engine.replication.partition import Partition
from engine.timing.purgatory import DelayedOperation


class DeleteRecordsResult(NamedTuple):
    """One partition's answer; `low_watermark` is the least log start of the live replicas."""

    error: ApiError | None
    low_watermark: int = -1


DeleteRecordsReply: TypeAlias = Callable[[dict[TopicPartition, DeleteRecordsResult]], None]


class DelayedDeleteRecords(DelayedOperation):
    """Waits for the low watermarks of its partitions; `reply` is run by who completes it."""

    __slots__ = ("_find", "_required", "_results", "reply")

    def __init__(
        self,
        deadline_ms: int,
        results: dict[TopicPartition, DeleteRecordsResult],
        required: Mapping[TopicPartition, int],
        find: Callable[[TopicPartition], Partition],
        reply: DeleteRecordsReply,
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
            try:
                partition = self._find(topic_partition)
                partition.require(None, is_leader_required=True)
            except ApiError as failure:
                self._results[topic_partition] = DeleteRecordsResult(failure)
            else:
                low_watermark = partition.low_watermark()
                if low_watermark < offset:
                    continue
                self._results[topic_partition] = DeleteRecordsResult(None, low_watermark)
            del self._required[topic_partition]
        return not self._required

    def results(self) -> dict[TopicPartition, DeleteRecordsResult]:
        """Return the answers of a completed operation; what still waited has timed out."""
        assert self.is_completed
        for topic_partition, offset in self._required.items():
            timed_out = RequestTimedOut(topic_partition, offset)
            found = self._results[topic_partition]
            self._results[topic_partition] = found._replace(error=timed_out)
        self._required.clear()
        return self._results
