"""DeleteRecords on the partitions of one broker.

```
 delete_records ─ each log start rises ─┬─ on all live replicas ───────────────────> results
                                        └─ DelayedDeleteRecords ── fetches, deadline ─> kept
```

Source: HW-18, REPL-15, PUR-4; Kafka's ReplicaManager.deleteRecords.
"""

from __future__ import annotations

from collections.abc import Mapping

from engine.errors import ApiError, StorageError
from engine.host.promise import Promise
from engine.model import TopicPartition
from engine.replication.delayed_delete_records import (
    DelayedDeleteRecords,
    DeleteRecordsResult,
    DeleteRecordsResults,
)
from engine.replication.effects import Effect
from engine.replication.errors import InvalidTopic
from engine.replication.partition_access import PartitionAccess


class RecordDeletions:
    """Serves DeleteRecords of one broker."""

    def __init__(self, access: PartitionAccess) -> None:
        """Create the DeleteRecords of a replica manager.

        `access` has the manager's parts that it uses.
        """
        self._clock, hosted, delayed, performer = access
        self._find, self._answer_to = hosted.find, hosted.answer_to
        #: Internal topics, whose records clients may not delete.
        self._refused = hosted.refused_to_clients
        self._watch = delayed.watch_delete
        self._perform = performer.perform

    def delete_records(
        self, offsets: Mapping[TopicPartition, int], timeout_ms: int
    ) -> DeleteRecordsResults | Promise[DeleteRecordsResults]:
        """Delete the records below an offset of each partition, by its log start offset (HW-18).

        The result is complete when the live replicas have followed, at most after `timeout_ms`; it
        is then a promise. Internal topics are refused.
        """
        results: DeleteRecordsResults = {}
        required: dict[TopicPartition, int] = {}
        effects: list[Effect] = []
        for topic_partition, offset in offsets.items():
            try:
                if topic_partition.topic in self._refused:
                    raise InvalidTopic(topic_partition.topic)
                done = self._find(topic_partition).delete_records_before(offset)
            except (ApiError, StorageError) as failure:
                error = self._answer_to(topic_partition, failure)
                results[topic_partition] = DeleteRecordsResult(error)
                continue
            results[topic_partition] = DeleteRecordsResult(None, done.low_watermark)
            if done.low_watermark < done.requested_offset:
                required[topic_partition] = done.requested_offset
            effects += done.effects
        if not required:
            self._perform(effects)
            return results
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        deletion = DelayedDeleteRecords(deadline_ms, results, required, self._find)
        promise = deletion.promise
        # A later partition may have failed with the directory of an earlier one.
        if deletion.can_complete():
            deletion.force_complete()
            deletion.keep_promise()
        else:
            self._watch(deletion, required)
        self._perform(effects)
        return promise
