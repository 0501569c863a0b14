"""Fetches of very many partitions, read over several turns of the loop.

```
 read some ─ turn ─ read some … ─┬─ enough bytes, an error, no wait ──────────────────> results
                                 └─ watch all keys ─ check some ─ turn ─ check some … > waits
                                      an event of a partition: check that partition │
 results <── read some ─ turn ─ read some … <─── enough bytes, deadline ────────────┘
```

A fetch is watched before the first check, so that no event between two checks is lost. The read
slices keep files open: a `Reading` releases them once, unless a response takes them over.

Source: FET-2, FET-3, PUR-2, PUR-5; Kafka also reads the partitions of a fetch in sequence while
other threads append.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from engine.host.turns import Share
from engine.limits import ROWS_PER_SHARE
from engine.model import TopicPartition
from engine.replication.delayed_fetch import (
    DelayedFetch,
    FetchResults,
    ReadNow,
    WaitingPartition,
    release_results,
)
from engine.replication.effects import Effect
from engine.replication.partition import Partition
from engine.replication.partition_access import PartitionAccess
from engine.replication.partition_reader import PartitionReader, RemainingBytes
from engine.replication.partition_types import FetchParams, FetchSpec


class LargeDelayedFetch(DelayedFetch):
    """A delayed fetch of very many partitions; each event checks one partition.

    On completion the promise gets an empty list, and the code that waits for it reads the
    partitions.
    """

    __slots__ = ("_available", "_total_bytes", "_waiting_of", "is_abandoned")

    def __init__(
        self,
        deadline_ms: int,
        params: FetchParams,
        waiting: Sequence[WaitingPartition],
        find: Callable[[TopicPartition], Partition],
        is_throttled: Callable[[Partition, int], bool],
    ) -> None:
        """Create the delayed fetch of very many partitions.

        The arguments are those of `DelayedFetch`.
        """
        super().__init__(deadline_ms, params, waiting, find, is_throttled)
        self._waiting_of = {each.topic_partition: each for each in waiting}
        #: Readable bytes of each checked partition, and their sum.
        self._available: dict[TopicPartition, int] = {}
        self._total_bytes = 0
        #: Whether the fetch was abandoned: no request waits for its result.
        self.is_abandoned = False

    def keep(self, _read: ReadNow) -> None:
        """End the wait: keep the promise with an empty list.

        The partitions are then read in turns.
        """
        promise = self.promise
        self.drop()
        promise.keep([])

    def drop(self) -> None:
        """Release the partitions and the promise."""
        super().drop()
        self._waiting_of, self._available = {}, {}

    def abandon(self) -> bool:
        """End the wait without a response; return False if the fetch was completed before."""
        self.is_abandoned = not self.is_completed
        if self.force_complete():
            self.keep(lambda _params, _specs: [])
        return self.is_abandoned

    def can_complete_after(self, key: object) -> bool:
        """True if there are min_bytes, after the partition `key` was counted again.

        The bytes of all other partitions are those of the last check: after an append to one
        partition, a fetch of very many partitions is not counted from the beginning.
        """
        waiting = self._waiting_of.get(key)  # type: ignore[call-overload]
        if waiting is None:
            return False
        available_bytes = self._readable_bytes(waiting)
        if available_bytes is None:
            return True
        topic_partition = waiting.topic_partition
        self._total_bytes += available_bytes - self._available.get(topic_partition, 0)
        self._available[topic_partition] = available_bytes
        return self._total_bytes >= self.params.min_bytes


class Reading:
    """The slices that a fetch of very many partitions has read up to now."""

    __slots__ = ("_all", "_is_over", "results")

    def __init__(self, all_readings: dict[Reading, None]) -> None:
        """Create the results of a fetch that is read in turns; their files are open meanwhile.

        The reading is listed in `all_readings` until `end` or `hand_over`.
        """
        self.results: FetchResults = []
        #: Whether `end` or `hand_over` was called.
        self._is_over = False
        self._all = all_readings
        all_readings[self] = None

    def is_over(self) -> bool:
        """True if nothing may be read any more, and the slices may not be used."""
        return self._is_over

    def release(self) -> None:
        """Release the files of the slices that were read.

        More partitions may be read afterwards.
        """
        results, self.results = self.results, []
        release_results(results)

    def end(self) -> None:
        """Release the files, unless a response has taken them over; may be called twice.

        Called at the end of the request, and for all readings when the broker stops.
        """
        if not self._is_over:
            self.hand_over()
            release_results(self.results)

    def hand_over(self) -> None:
        """Leave the files to the sender of the response, who must release them."""
        self._is_over = True
        del self._all[self]


class LargeFetches:
    """Serves fetches of very many partitions of one broker."""

    def __init__(self, access: PartitionAccess, reader: PartitionReader) -> None:
        """Create the fetches of very many partitions, with the parts that they use."""
        self._clock, hosted, self._delayed, performer = access
        self._find = hosted.find
        self._perform = performer.perform
        self._reader = reader
        #: Readings that are in use, to release their files at the stop.
        self._readings: dict[Reading, None] = {}
        self._is_stopped = False

    @property
    def reading_count(self) -> int:
        """Return the number of fetches without a response."""
        return len(self._readings)

    def begin(self) -> Reading:
        """Return a new reading for a fetch; the caller must call `end` or `hand_over` on it."""
        reading = Reading(self._readings)
        if self._is_stopped:
            reading.end()
        return reading

    def stop(self) -> None:
        """End all readings; new ones are over from their begin."""
        self._is_stopped = True
        for reading in tuple(self._readings):
            reading.end()

    async def fetch(
        self,
        params: FetchParams,
        specs: Sequence[tuple[TopicPartition, FetchSpec]],
        reading: Reading,
        share: Share,
        on_read: Callable[[], None],
        *,
        topic_ids: Mapping[str, str],
    ) -> None:
        """Read partitions into `reading` over several turns, as `Fetches.fetch` does in one.

        `topic_ids` are those of the request, empty for topics requested by name. `on_read` is
        called when only the wait remains. Returns early if the broker stops or the fetch is
        abandoned.
        """
        deadline_ms = self._clock.monotonic_ms() + params.max_wait_ms
        await self._read_partitions(params, specs, reading, share, topic_ids, is_noting=True)
        if reading.is_over() or not _must_wait(params, reading.results):
            return
        await share.next()
        waiting = [
            WaitingPartition(topic_partition, spec, result.records.start)
            for (topic_partition, spec), (_, result) in zip(specs, reading.results, strict=True)
            if result.records is not None
        ]
        reading.release()
        if reading.is_over():
            return
        await self._wait_for_bytes(deadline_ms, params, waiting, reading, share, on_read)
        if not reading.is_over():
            await share.next()
            await self._read_partitions(params, specs, reading, share, topic_ids, is_noting=False)

    async def _read_partitions(
        self,
        params: FetchParams,
        specs: Sequence[tuple[TopicPartition, FetchSpec]],
        reading: Reading,
        share: Share,
        topic_ids: Mapping[str, str],
        *,
        is_noting: bool,
    ) -> None:
        """Read the partitions into `reading` over several turns of the event loop.

        With `is_noting` a follower's fetch offsets are recorded and effects performed: only the
        first read of a fetch does this.
        """
        left = RemainingBytes(params, topic_ids)
        for start in range(0, len(specs), ROWS_PER_SHARE):
            if share.is_over():
                await share.next()
            if reading.is_over():
                return
            some = specs[start : start + ROWS_PER_SHARE]
            effects: list[Effect] | None = [] if is_noting else None
            reading.results += self._reader.read_partitions(params, some, effects, left)
            if effects is not None:
                self._perform(effects)
            if is_noting and params.is_from_follower:
                # A follower's fetch has its log start offset.
                for topic_partition, _ in some:
                    self._delayed.check_deletes(topic_partition)

    async def _wait_for_bytes(
        self,
        deadline_ms: int,
        params: FetchParams,
        waiting: Sequence[WaitingPartition],
        reading: Reading,
        share: Share,
        on_read: Callable[[], None],
    ) -> None:
        """Wait until enough bytes are readable for the fetch, or until the deadline."""
        operation = LargeDelayedFetch(
            deadline_ms, params, waiting, self._find, self._reader.is_throttled
        )
        promise = operation.promise
        keys = [each.topic_partition for each in waiting]
        self._delayed.watch_fetch(operation, keys)
        for number, key in enumerate(keys):
            if number % ROWS_PER_SHARE == 0 and share.is_over():
                await share.next()
            if operation.is_completed:
                break
            if operation.can_complete_after(key):
                if operation.force_complete():
                    operation.keep(lambda _params, _specs: [])
                break
        on_read()
        await promise
        if operation.is_abandoned:
            reading.end()


def _must_wait(params: FetchParams, results: FetchResults) -> bool:
    """True if the fetch has to wait: less than `min_bytes`, no error, and a wait is requested."""
    if params.max_wait_ms <= 0 or not results:
        return False
    total_bytes = 0
    for _, result in results:
        if result.error is not None or result.records is None:
            return False
        total_bytes += result.records.size_bytes
    return total_bytes < params.min_bytes
