"""A near follower's fetch that waits, and is given records of one partition amid its wait.

```
            ┌────────────── took: fetched on from behind them ───────────────┐
            v                                                                │
 standing ──┴─ look(partition) ─┬─ nothing new ─> stands                     │
                                ├─ records, usual ─> given ── on its turn ── follower appends
                                └─ all else ─> complete: read anew, as any delayed fetch
```

A follower that keeps up is told of each append. To end its fetch for that, and to begin another,
looks at all partitions that it follows, twice; this looks at the one that has changed. Its
deadline stands: each 500 ms it completes, and the follower asks for all of them again.

Source: PUR-5, PUR-7, FET-2; D8, D21. What is usual: the follower is in sync and has all of the
leader's epoch that was there before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

from engine.errors import ApiError, StorageError
from engine.host.promise import Promise
from engine.log.usual_log_reader import read_slice_usual
from engine.model import TopicPartition, new_tuple
from engine.replication.delayed_fetch import FetchResults, ReadNow
from engine.replication.fetch_state import LeaderAnswer
from engine.replication.partition import Partition
from engine.replication.partition_types import FetchParams, FetchSpec
from engine.timing.purgatory import DelayedOperation

#: Takes an answer to a spec, on a turn of its own, and tells the fetch what became of it.
Give: TypeAlias = "Callable[[StandingFetch, TopicPartition, FetchSpec, LeaderAnswer], None]"


class LeaderSide(NamedTuple):
    """What a standing fetch needs of the replica manager that it waits at."""

    partitions: Mapping[TopicPartition, Partition]
    is_held_back: Callable[[Partition, int], bool]
    note_read: Callable[[TopicPartition, int], None]
    took: Callable[[StandingFetch, TopicPartition, FetchSpec], None]
    end: Callable[[StandingFetch], None]


class StandingFetch(DelayedOperation):
    """Waits for records of its partitions; `keep` is run by who completes it."""

    __slots__ = ("_give", "_given", "_leader", "_waiting", "params", "promise")

    def __init__(
        self,
        deadline_ms: int,
        params: FetchParams,
        waiting: Mapping[TopicPartition, FetchSpec],
        leader: LeaderSide,
        give: Give,
    ) -> None:
        super().__init__(deadline_ms)
        self.params = params
        partitions = leader.partitions
        self._waiting = {key: (partitions[key], spec) for key, spec in waiting.items()}
        # What the follower has not appended yet.
        self._given: set[TopicPartition] = set()
        self._leader = leader
        self._give = give
        self.promise: Promise[FetchResults] = Promise()

    def keep(self, read: ReadNow) -> None:
        """Keep the promise with what is there now."""
        specs = [(key, spec) for key, (_, spec) in self._waiting.items()]
        self.promise.keep(read(self.params, specs))

    def can_complete(self) -> bool:
        """Tell whether there is something to read, or something that waiting does not mend."""
        return any(map(self._is_news, self._waiting))

    def _is_news(self, key: TopicPartition) -> bool:
        partition, spec = self._waiting[key]
        if self._is_changed(key, partition, spec):
            return True
        try:
            is_parted = partition.find_divergence(spec) is not None
        except (ApiError, StorageError):
            return True
        end = partition.log.log_end_offset
        is_held_back = self._leader.is_held_back(partition, self.params.replica_id)
        return (
            is_parted or end < spec.fetch_offset or (end > spec.fetch_offset and not is_held_back)
        )

    def _is_changed(self, key: TopicPartition, partition: Partition, spec: FetchSpec) -> bool:
        return (
            self._leader.partitions.get(key) is not partition
            or partition.leader_id != partition.broker_id
            or partition.leader_epoch != spec.current_leader_epoch
        )

    def look(self, key: object) -> bool:
        """Give the records of a partition, if that is usual; tell whether the fetch is over."""
        waiting = self._waiting.get(key)  # type: ignore[call-overload]
        if waiting is None:
            return self.can_complete()
        partition, spec = waiting
        if self._is_changed(partition.topic_partition, partition, spec):
            return True
        fetch_offset, max_bytes, leader_epoch, fetched_epoch, _ = spec
        log = partition.log
        end = log.log_end_offset
        if fetch_offset == end or key in self._given:
            return False
        if (
            end < fetch_offset
            or fetched_epoch != leader_epoch
            or self.params.replica_id not in partition.in_sync.isr
        ):
            return self._is_news(partition.topic_partition)
        try:
            records = read_slice_usual(
                log, fetch_offset, min(max_bytes, self.params.max_bytes), end
            )
            if records is None:
                return True
            if not isinstance(records, bytes):
                region, records = records, records.read()
                region.release()
        except StorageError:
            return True
        topic_partition = partition.topic_partition
        self._leader.note_read(topic_partition, len(records))
        self._given.add(topic_partition)
        answer = new_tuple(
            LeaderAnswer, (0, partition.high_watermark, log.log_start_offset, records, None)
        )
        self._give(self, topic_partition, spec, answer)
        return False

    def took(self, key: TopicPartition, following: FetchSpec | None) -> None:
        """Note that the follower has appended what it was given, and fetches on as it says.

        None if it did not: the fetch is over then. One that is over already changes nothing.
        """
        if self.is_completed:
            return
        self._given.discard(key)
        if following is None:
            self._leader.end(self)
            return
        partition, _ = self._waiting[key]
        self._waiting[key] = (partition, following)
        self._leader.took(self, key, following)
