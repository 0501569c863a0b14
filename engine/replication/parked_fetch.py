"""A follower's parked fetch: sends records of single partitions and stays parked for the rest.

```
            ┌──────── took: the next fetch offset is after those records ────────┐
            v                                                                    │
 parked ────┴─ check(partition) ┬─ no change ────> stays parked                  │
                                ├─ records, fast ─> sent ── a later turn ── follower appends
                                └─ any other change ─> complete: read again, as any delayed fetch
```

A follower that keeps up gets each append. If each append completed the fetch, all followed
partitions would be read twice for it. So an append to one partition sends only that partition, and
the fetch stays parked for the other ones until its deadline (500 ms by default). Then it completes,
and the follower fetches all partitions again.

Source: PUR-5, PUR-7, FET-2; D8, D21. Conditions of the fast path: the follower is in sync, and has
all earlier records of the leader's epoch.
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

#: Creates a parked fetch from a deadline, the parameters, the partitions and the leader side.
Park: TypeAlias = "Callable[[int, FetchParams, Iterable[TopicPartition], LeaderSide], ParkedFetch]"


class LeaderSide(NamedTuple):
    """The functions of the replica manager that a parked fetch calls."""

    partitions: Mapping[TopicPartition, Partition]
    is_throttled: Callable[[Partition, int], bool]
    note_read: Callable[[TopicPartition, int], None]
    took: Callable[[ParkedFetch, TopicPartition, FetchSpec], None]
    end: Callable[[ParkedFetch], None]


class FollowerEncoder(ABC):
    """Sends records and responses to a follower by its transport."""

    __slots__ = ()

    #: Whether a request waits for a response: without one, slices would not be released.
    is_requested: bool

    @abstractmethod
    def may_send(self, key: TopicPartition) -> bool:
        """True if records of a partition can be sent now; if not, a later check sends them."""

    @abstractmethod
    def hold(self, key: TopicPartition) -> None:
        """Note that a partition may have changes that cannot be sent now."""

    @abstractmethod
    def send(
        self,
        fetch: ParkedFetch,
        partition: Partition,
        position: SessionPosition,
        records: bytes | FetchSlice,
    ) -> bool:
        """Send records from a position on; True if they are sent, and released by the encoder.

        Returns False, with nothing done, if other changes must be sent too. Raises StorageError,
        with nothing done, if the records cannot be read.
        """

    @abstractmethod
    def drop(self) -> None:
        """Release the follower, when the parked fetch ends."""


class ParkedFetch(DelayedOperation):
    """Waits for records of a session's partitions; the code that completes it must call `keep`."""

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
        """Create a follower's fetch that waits, sending records of one partition at a time.

        `positions` are the session's fetch offsets, and the offsets that were sent last.
        """
        super().__init__(deadline_ms)
        self.params = params
        partitions = leader.partitions
        #: The partitions on this broker, by key.
        self._here = {key: partitions[key] for key in keys}
        self.positions = positions
        self.leader = leader
        self._encoder = encoder
        #: Kept with the results on completion, then deleted to avoid a reference cycle.
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
        """Keep the promise with the results of the changed partitions; others are not read."""
        self.promise.keep_with(lambda: self._read_changed(read))

    def _read_changed(self, read: ReadNow) -> FetchResults:
        """Return the results of the changed partitions, empty if no request waits; release all."""
        try:
            specs = self._changed_partitions() if self._encoder.is_requested else []
        finally:
            self.drop()
        return read(self.params, specs) if specs else []

    def _changed_partitions(self) -> list[tuple[TopicPartition, FetchSpec]]:
        """Return the partitions that the response must contain.

        These have new records or offsets, or another object than when the fetch was parked, as
        after a deletion.
        """
        replica_id, partitions = self.params.replica_id, self.leader.partitions
        return [
            (key, position.spec)
            for key, here in self._here.items()
            if not is_unchanged(here, replica_id, position := self.positions[key])
            or partitions.get(key) is not here
        ]

    def drop(self) -> None:
        """Release the partitions, the promise and the encoder."""
        self._here, self.positions = {}, {}
        self._encoder.drop()
        del self.promise

    def can_complete(self) -> bool:
        """True if any partition has records or an error to respond with."""
        return any(map(self._has_news, self._here))

    def can_complete_with(self, keys: Iterable[TopicPartition]) -> bool:
        """True if one of these partitions has records or an error to respond with."""
        return any(map(self._has_news, keys))

    def _has_news(self, key: TopicPartition) -> bool:
        """True if a partition has records, a divergence or an error to respond with."""
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
        """True if a partition was replaced, or does not serve the fetch's leader epoch any more."""
        return self.leader.partitions.get(key) is not partition or not partition.serves(
            spec.current_leader_epoch
        )

    def can_complete_after(self, key: object) -> bool:
        """Send the new records of the partition `key` on the fast path, if that is possible.

        True if the fetch must complete instead, by a general read of its partitions.
        """
        found = self._here.get(key)  # type: ignore[call-overload]
        if found is None:
            return self.can_complete()
        partition: Partition = found
        topic_partition = partition.topic_partition
        position = self.positions[topic_partition]
        fetch_offset, max_bytes, leader_epoch, fetched_epoch, _ = position.spec
        # The same as `_is_changed`, without a call: this runs for each append and each follower.
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
            return self._has_news(topic_partition)
        newest = partition.newest
        if (
            newest is not None
            and newest[:3] == (fetch_offset, end, leader_epoch)
            and fetch_offset >= log.log_start_offset
        ):
            return self._send_records(partition, position, newest.data)
        try:
            records = read_slice_fast(log, fetch_offset, min(max_bytes, self.params.max_bytes), end)
        except StorageError:
            return True
        return records is None or self._send_records(partition, position, records)

    def _send_records(
        self, partition: Partition, position: SessionPosition, records: bytes | FetchSlice
    ) -> bool:
        """Send a partition's records to the follower; True if they could not be sent.

        The fetch must then complete, by a general read.
        """
        size = len(records) if isinstance(records, bytes) else records.size_bytes
        try:
            is_sent = self._encoder.send(self, partition, position, records)
        except StorageError:
            # The general read turns it into an error of the partition.
            is_sent = False
        if not is_sent:
            if not isinstance(records, bytes):
                records.release()
            return True
        topic_partition = partition.topic_partition
        self.leader.note_read(topic_partition, size)
        partition.note_sent_to_follower(self.params.replica_id, size)
        if not self.is_completed:
            # The same order as in its session: partitions without bytes come first.
            self._here[topic_partition] = self._here.pop(topic_partition)
        return False

    def holds_unchanged(self, key: TopicPartition) -> bool:
        """True if the fetch still waits, and the partition is the same as when it was parked."""
        partition = self._here.get(key)
        return (
            partition is not None
            and not self.is_completed
            and not self._is_changed(key, partition, self.positions[key].spec)
        )


def _has_records_after(partition: Partition, offset: int) -> bool:
    """True if a read at an offset below the log end would find a batch, or fail.

    After compaction and truncation a log may have no batch between `offset` and its end.
    """
    log = partition.log
    return offset < log.log_start_offset or log.locate(offset).offset < log.log_end_offset
