"""Fetch records from the partitions of one broker.

```
 fetch ─ each partition is read ─┬─ enough bytes, an error, no wait ─────────────> results
                                 └─ DelayedFetch ─ append, watermark, deadline ─> read again ─> kept
 wait_fast ─ a consumer at the end of one partition ─ the same
 large ─ some partitions ─ next turn ─ some partitions … ─ the same
```

Source: FET-2, FET-3, PUR-5, PUR-7, PUR-9; Kafka's ReplicaManager.fetchMessages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from engine.host.promise import Promise
from engine.model import TopicPartition
from engine.replication.delayed_fetch import (
    DelayedFetch,
    FastDelayedFetch,
    FetchResults,
    WaitingPartition,
    release_results,
)
from engine.replication.effects import Effect
from engine.replication.follower_session import SessionPosition
from engine.replication.large_fetch import LargeFetches
from engine.replication.parked_fetch import LeaderSide, Park, ParkedFetch
from engine.replication.partition_access import PartitionAccess
from engine.replication.partition_reader import PartitionReader
from engine.replication.partition_types import FetchParams, FetchSpec
from engine.replication.replication_quota import ReplicationQuota

T = TypeVar("T")


class Fetches:
    """Serves the fetches of one broker."""

    def __init__(
        self, access: PartitionAccess, reader: PartitionReader, leader_quota: ReplicationQuota
    ) -> None:
        """Create the fetches of a replica manager.

        `access` has the manager's parts that they use.
        """
        self._clock, hosted, delayed, performer = access
        self._partitions = hosted.partitions
        self._find = hosted.find
        self._perform = performer.perform
        self._watch, self._keep = delayed.watch_fetch, delayed.keep_fetch
        self._check_deletes = delayed.check_deletes
        self._deletes = delayed.deletes
        #: Watched keys of waiting DeleteRecords, which followers' fetches may complete.
        self._delete_keys = delayed.deletes.watched_keys
        self._reader = reader
        #: The parts of this broker that parked fetches of followers use.
        self._leader_side = LeaderSide(
            self._partitions,
            reader.is_throttled,
            leader_quota.record,
            self._record_fetch_offset,
            self._end,
        )
        #: Fetches of very many partitions, which are read over several turns of the loop.
        self.large = LargeFetches(access, reader)

    def fetch(
        self,
        params: FetchParams,
        specs: Sequence[tuple[TopicPartition, FetchSpec]],
        park: Park | None = None,
        session: Mapping[TopicPartition, SessionPosition] | None = None,
    ) -> FetchResults | Promise[FetchResults]:
        """Read partitions in the given order; complete with `min_bytes` or at the deadline.

        The fetch completes at once with an error, a diverging log, or without partitions (PUR-9). A
        follower's fetch offsets are recorded, which may complete delayed produces (PUR-7). `park`,
        if given, creates the operation of a fetch that has to wait. `session` is the follower's
        fetch session: partitions without a change are left out of the result.
        """
        effects: list[Effect] = []
        results = self._reader.read_partitions(params, specs, effects, session=session)
        is_over = params.max_wait_ms <= 0 or not specs
        total_bytes = 0
        for _, result in results:
            if result.error is not None or result.records is None:
                is_over = True
            else:
                total_bytes += result.records.size_bytes
        fetched: FetchResults | Promise[FetchResults] = results
        if not is_over and total_bytes < params.min_bytes:
            operation = self._create_operation(params, specs, results, park)
            release_results(results)
            fetched = operation.promise
            # The condition is checked only once: nothing runs in between, and the check has no
            # effects.
            if (
                operation.can_complete_with(key for key, _ in results)
                if isinstance(operation, ParkedFetch)
                else operation.can_complete()
            ):
                operation.force_complete()
                self._keep(operation)
            else:
                self._watch(operation, [topic_partition for topic_partition, _ in specs])
        self._perform(effects)
        if params.is_from_follower and self._deletes.delayed_count:
            # Its fetch has its log start offset.
            for topic_partition, _ in specs:
                self._check_deletes(topic_partition)
        return fetched

    def _create_operation(
        self,
        params: FetchParams,
        specs: Sequence[tuple[TopicPartition, FetchSpec]],
        results: FetchResults,
        park: Park | None,
    ) -> DelayedFetch | ParkedFetch:
        """Return the delayed operation of a fetch that has to wait.

        It is made by `park`, or is a DelayedFetch.
        """
        deadline_ms = self._clock.monotonic_ms() + params.max_wait_ms
        if park is not None:
            return park(deadline_ms, params, [key for key, _ in specs], self._leader_side)
        waiting = [
            WaitingPartition(topic_partition, spec, result.records.start)
            for (topic_partition, spec), (_, result) in zip(specs, results, strict=True)
            if result.records is not None
        ]
        return DelayedFetch(deadline_ms, params, waiting, self._find, self._reader.is_throttled)

    def _record_fetch_offset(
        self, fetch: ParkedFetch, topic_partition: TopicPartition, spec: FetchSpec
    ) -> None:
        """Record the offset that a follower with a parked fetch has reached; perform the effects.

        If that offset is not valid the fetch ends, and its response has the error.
        """
        effects = self._reader.record_position(fetch.params.replica_id, topic_partition, spec)
        if effects is None:
            # The response of the fetch has the error.
            self._end(fetch)
            return
        self._perform(effects)
        if self._delete_keys:
            self._check_deletes(topic_partition)

    def _end(self, fetch: ParkedFetch) -> None:
        """Complete a parked fetch and respond, unless it is completed."""
        if fetch.force_complete():
            self._keep(fetch)

    def wait_fast(
        self,
        deadline_ms: int,
        params: FetchParams,
        waiting: WaitingPartition,
        read: Callable[[], T],
    ) -> Promise[T]:
        """Park the fetch of a consumer that has read one partition to its end.

        The promise is kept with the result of `read` on completion.
        """
        operation = FastDelayedFetch(deadline_ms, params, waiting, self._partitions, read)
        self._watch(operation, (waiting.topic_partition,))
        return operation.promise
