"""Parked fetch of a follower: waits for records of its partitions, each completed by itself.

```
            ┌──────── took: the next fetch offset is after those records ────────┐
            v                                                                    │
 parked ────┴─ check(partition) ┬─ nothing new ─> stays parked                   │
                                ├─ records, fast ──> sent  ── on its turn ── follower appends
                                └─ all else ─> complete: read again, as any delayed fetch
```

A follower that keeps up gets each append. To complete its fetch for that, and to begin another,
reads all partitions that it follows, twice; an append to one partition completes that partition
alone, and the fetch stays parked for the others until its deadline (500 ms by default). Then it
completes, and the follower fetches all of them again.

Source: PUR-5, PUR-7, FET-2; D8, D21. On the fast path: the follower is in sync and has all of the
leader's epoch that was there before.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, TypeAlias

from engine.errors import ApiError, StorageError
from engine.host.promise import Promise
from engine.log.fast_log_reader import read_slice_fast
from engine.log.log_types import FetchSlice
from engine.model import TopicPartition
from engine.replication.delayed_fetch import FetchResults, ReadNow
from engine.replication.follower_session import SessionPosition, is_unchanged
from engine.replication.partition import Partition
from engine.replication.partition_types import FetchParams, FetchSpec
from engine.timing.purgatory import DelayedOperation

#: Makes the parked fetch from a deadline, the parameters, the partitions and the leader's side.
Park: TypeAlias = "Callable[[int, FetchParams, Iterable[TopicPartition], LeaderSide], ParkedFetch]"


class LeaderSide(NamedTuple):
    """The parts of the replica manager that a parked fetch needs."""

    partitions: Mapping[TopicPartition, Partition]
    is_throttled: Callable[[Partition, int], bool]
    note_read: Callable[[TopicPartition, int], None]
    took: Callable[[ParkedFetch, TopicPartition, FetchSpec], None]
    end: Callable[[ParkedFetch], None]


class FollowerEncoder(ABC):
    """Sends records and responses to a follower by its transport."""

    __slots__ = ()

    #: A request waits for a response: without one, the slices of a read would not be released.
    is_requested: bool

    @abstractmethod
    def may_send(self, key: TopicPartition) -> bool:
        """Return whether records of a partition can be sent now; else they are checked later."""

    @abstractmethod
    def hold(self, key: TopicPartition) -> None:
        """Note that a partition may have news that cannot be sent now."""

    @abstractmethod
    def send(
        self,
        fetch: ParkedFetch,
        partition: Partition,
        position: SessionPosition,
        records: bytes | FetchSlice,
    ) -> bool:
        """Send records from a position on, and take them over; False with nothing done.

        Raises StorageError where they cannot be read, with nothing done.
        """

    @abstractmethod
    def drop(self) -> None:
        """Release the follower."""


class ParkedFetch(DelayedOperation):
    """Waits for records of the partitions of a session; the code that completes it runs `keep`."""

    __slots__ = ("_encoder", "_here", "leader", "params", "positions", "promise")

    def __init__(
        self,
        deadline_ms: int,
        params: FetchParams,
        keys: Iterable[TopicPartition],
        leader: LeaderSide,
        positions: Mapping[TopicPartition, SessionPosition],
        encoder: FollowerEncoder,
    ) -> None:
        """Begin; `positions` are the session's: its fetch offsets, and the offsets last sent."""
        super().__init__(deadline_ms)
        self.params = params
        partitions = leader.partitions
        #: The partitions on this broker, by key.
        self._here = {key: partitions[key] for key in keys}
        self.positions = positions
        self.leader = leader
        self._encoder = encoder
        #: Kept with the results when the fetch ends; deleted then, so that nothing is referenced in
        #: a circle.
        self.promise: Promise[FetchResults] = Promise()
        self.promise.source = self
        for key, here in self._here.items():
            sent = positions[key]
            if (
                sent.high_watermark != here.high_watermark
                or sent.log_start_offset != here.log.log_start_offset
            ):
                encoder.hold(key)

    def keep(self, read: ReadNow) -> None:
        """Keep the promise with the news of now; unchanged partitions are not read."""
        self.promise.keep_with(lambda: self._news(read))

    def _news(self, read: ReadNow) -> FetchResults:
        """Return the news, and release the partitions."""
        try:
            specs = self._unsent() if self._encoder.is_requested else []
        finally:
            self.drop()
        return read(self.params, specs) if specs else []

    def _unsent(self) -> list[tuple[TopicPartition, FetchSpec]]:
        """Return the partitions to read: with new records or offsets, or replaced objects."""
        replica_id, partitions = self.params.replica_id, self.leader.partitions
        return [
            (key, position.spec)
            for key, here in self._here.items()
            if not is_unchanged(here, replica_id, position := self.positions[key])
            or partitions.get(key) is not here
        ]

    def drop(self) -> None:
        """Release the partitions, the promise and the follower."""
        self._here, self.positions = {}, {}
        self._encoder.drop()
        del self.promise

    def can_complete(self) -> bool:
        """Return whether a response is due: new records, or an error that waiting cannot end."""
        return any(map(self._is_news, self._here))

    def has_news_of(self, keys: Iterable[TopicPartition]) -> bool:
        """Return whether a response is due for some of its partitions, as `can_complete`."""
        return any(map(self._is_news, keys))

    def _is_news(self, key: TopicPartition) -> bool:
        """Return True if a partition has records, a divergence or an error to respond with."""
        partition, spec = self._here[key], self.positions[key].spec
        if self._is_changed(key, partition, spec):
            return True
        offset, end = spec.fetch_offset, partition.log.log_end_offset
        is_throttled = self.leader.is_throttled(partition, self.params.replica_id)
        try:
            is_parted = partition.find_divergence(spec) is not None
            return (
                is_parted
                or end < offset
                or (end > offset and not is_throttled and _has_records_after(partition, offset))
            )
        except (ApiError, StorageError):
            return True

    def _is_changed(self, key: TopicPartition, partition: Partition, spec: FetchSpec) -> bool:
        """Return whether a partition was replaced, or does not serve the leader epoch."""
        return self.leader.partitions.get(key) is not partition or not partition.serves(
            spec.current_leader_epoch
        )

    def can_complete_after(self, key: object) -> bool:
        """Send a partition's records on the fast path; return whether the fetch is over."""
        found = self._here.get(key)  # type: ignore[call-overload]
        if found is None:
            return self.can_complete()
        partition: Partition = found
        topic_partition = partition.topic_partition
        position = self.positions[topic_partition]
        fetch_offset, max_bytes, leader_epoch, fetched_epoch, _ = position.spec
        # As `_is_changed`: each append comes here for each follower.
        if self.leader.partitions.get(topic_partition) is not partition or not partition.serves(
            leader_epoch
        ):
            return True
        if not self._encoder.may_send(topic_partition):
            return False
        log = partition.log
        end = log.log_end_offset
        if fetch_offset == end:
            self._encoder.hold(topic_partition)
            return False
        if (
            end < fetch_offset
            or fetched_epoch != leader_epoch
            or self.params.replica_id not in partition.in_sync.isr
        ):
            self._encoder.hold(topic_partition)
            return self._is_news(topic_partition)
        newest = partition.newest
        if (
            newest is not None
            and newest[:3] == (fetch_offset, end, leader_epoch)
            and fetch_offset >= log.log_start_offset
        ):
            return self._send(partition, position, newest.data)
        try:
            records = read_slice_fast(log, fetch_offset, min(max_bytes, self.params.max_bytes), end)
        except StorageError:
            return True
        return records is None or self._send(partition, position, records)

    def _send(
        self, partition: Partition, position: SessionPosition, records: bytes | FetchSlice
    ) -> bool:
        """Send records, and take them over; True if the fetch is over instead."""
        size = len(records) if isinstance(records, bytes) else records.size_bytes
        try:
            is_sent = self._encoder.send(self, partition, position, records)
        except StorageError:
            # Read once more, with all others, it is an error of its partition.
            is_sent = False
        if not is_sent:
            if not isinstance(records, bytes):
                records.release()
            return True
        topic_partition = partition.topic_partition
        self.leader.note_read(topic_partition, size)
        partition.note_sent_to_follower(self.params.replica_id, size)
        if not self.is_completed:
            # As in its session: those that had no bytes yet come first.
            self._here[topic_partition] = self._here.pop(topic_partition)
        return False

    def holds(self, key: TopicPartition) -> bool:
        """Return True if the fetch is still parked for a partition whose state is as then."""
        partition = self._here.get(key)
        return (
            partition is not None
            and not self.is_completed
            and not self._is_changed(key, partition, self.positions[key].spec)
        )


def _has_records_after(partition: Partition, offset: int) -> bool:
    """Return whether a read at an offset below the log's end would find a batch, or fail.

    A log whose last records were truncated may have none after an offset passed by a cleaning.
    """
    log = partition.log
    return offset < log.log_start_offset or log.locate(offset).offset < log.log_end_offset
