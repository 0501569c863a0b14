"""DeleteRecords that wait until the low watermark reaches the requested offset.

```
 partition refused ──────────────────────────────────> its error, without a wait
 partition removed, led by another broker, failed ───> that error
 low watermark ≥ requested offset ───────────────────> success, with the low watermark
 deadline ───────────────────────────────────────────> REQUEST_TIMED_OUT
```

Complete when no partition waits. Source: HW-18, PUR-11; Kafka's DelayedDeleteRecords.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from engine.errors import ApiError
from engine.model import TopicPartition
from engine.replication.delayed_offsets import DelayedOffsets
from engine.replication.partition import Partition


class DeleteRecordsResult(NamedTuple):
    """One partition's result; `low_watermark` is the lowest log start offset of live replicas."""

    error: ApiError | None
    low_watermark: int = -1


DeleteRecordsResults: TypeAlias = dict[TopicPartition, DeleteRecordsResult]


class DelayedDeleteRecords(DelayedOffsets[DeleteRecordsResult]):
    """Waits for the low watermarks of its partitions."""

    __slots__ = ()

    def failed(self, result: DeleteRecordsResult, error: ApiError) -> DeleteRecordsResult:
        """Return the result for a partition that failed, without a low watermark."""
        return DeleteRecordsResult(error)

    def final_result(
        self, partition: Partition, offset: int, result: DeleteRecordsResult
    ) -> DeleteRecordsResult | None:
        """Return the result once all live replicas deleted the records before `offset`, or None.

        The result has the low watermark, which has then reached `offset`.
        """
        partition.ensure_serves(None, is_leader_required=True)
        low_watermark = partition.low_watermark()
        return result._replace(low_watermark=low_watermark) if low_watermark >= offset else None
