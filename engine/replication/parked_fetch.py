"""Parked fetch of a follower: waits for records of its partitions, each completed by itself.

```
            ┌──────── took: the next fetch offset is after those records ────────┐
            v                                                                    │
 parked ────┴─ look(partition) ─┬─ nothing new ─> stays parked                   │
                                ├─ records, fast ──> given ── on its turn ── follower appends
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

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, TypeAlias

from engine.errors import ApiError, StorageError
from engine.host.promise import Promise
from engine.log.fast_log_reader import read_slice_fast
from engine.log.log_types import FetchSlice
from engine.model import TopicPartition, new_tuple
from engine.replication.delayed_fetch import FetchResults, ReadNow
from engine.replication.follower_session import SessionPosition, is_unchanged
from engine.replication.following.fetch_state import LeaderAnswer
from engine.replication.partition import Partition
from engine.replication.partition_types import FetchParams, FetchSpec
from engine.timing.purgatory import DelayedOperation

#: Takes an answer to a spec, on a turn of its own, and tells the fetch what became of it.
Give: TypeAlias = "Callable[[LocalParkedFetch, TopicPartition, FetchSpec, LeaderAnswer], None]"
#: Answers a session's request with records of one partition; with nothing done, False if the
#: session is another by now, and a StorageError where the records cannot be read.
Respond: TypeAlias = "Callable[[SessionParkedFetch, Partition, bytes | FetchSlice], bool]"


#: Makes the parked fetch from a deadline, the parameters, the partitions and the leader's side.
Park: TypeAlias = "Callable[[int, FetchParams, Iterable[TopicPartition], LeaderSide], ParkedFetch]"


class LeaderSide(NamedTuple):
    """What a parked fetch needs of the replica manager that it waits at."""

    partitions: Mapping[TopicPartition, Partition]
    is_throttled: Callable[[Partition, int], bool]
    note_read: Callable[[TopicPartition, int], None]
    took: Callable[[ParkedFetch, TopicPartition, FetchSpec], None]
    end: Callable[[ParkedFetch], None]


class ParkedFetch(DelayedOperation):
    """Waits for records of the partitions of a session; `keep` is run by who completes it."""

    __slots__ = ("_here", "_leader", "_positions", "params", "promise")

    def __init__(
        self,
        deadline_ms: int,
        params: FetchParams,
        keys: Iterable[TopicPartition],
        leader: LeaderSide,
        positions: Mapping[TopicPartition, SessionPosition],
    ) -> None:
        """`positions` are the session's: where it fetches from, and what it was told last."""
        super().__init__(deadline_ms)
        self.params = params
        partitions = leader.partitions
        self._here = {key: partitions[key] for key in keys}
        self._positions = positions
        self._leader = leader
        self.promise: Promise[FetchResults] = Promise()
        self.promise.source = self

    def keep(self, read: ReadNow) -> None:
        """Keep the promise with what is there now and was not told; the others are not read."""
        self.promise.keep_with(lambda: self._news(read))

    def _news(self, read: ReadNow) -> FetchResults:
        """Return what was not told, and let go of the partitions."""
        try:
            specs = self._untold()
        finally:
            self.drop()
        return read(self.params, specs) if specs else []

    def _untold(self) -> list[tuple[TopicPartition, FetchSpec]]:
        replica_id, partitions = self.params.replica_id, self._leader.partitions
        return [
            (key, position.spec)
            for key, here in self._here.items()
            if not is_unchanged(here, replica_id, position := self._positions[key])
            or partitions.get(key) is not here
        ]

    def drop(self) -> None:
        """Let go of the partitions and the promise."""
        self._here, self._positions = {}, {}
        del self.promise

    def can_complete(self) -> bool:
        """Return whether there is something to read, or something that waiting does not mend."""
        return any(map(self._is_news, self._here))

    def has_news_of(self, keys: Iterable[TopicPartition]) -> bool:
        """Tell the same of some of its partitions."""
        return any(map(self._is_news, keys))

    def _is_news(self, key: TopicPartition) -> bool:
        partition, spec = self._here[key], self._positions[key].spec
        if self._is_changed(key, partition, spec):
            return True
        offset, end = spec.fetch_offset, partition.log.log_end_offset
        is_throttled = self._leader.is_throttled(partition, self.params.replica_id)
        try:
            is_parted = partition.find_divergence(spec) is not None
            return (
                is_parted
                or end < offset
                or (end > offset and not is_throttled and _has_records_behind(partition, offset))
            )
        except (ApiError, StorageError):
            return True

    def _is_changed(self, key: TopicPartition, partition: Partition, spec: FetchSpec) -> bool:
        return self._leader.partitions.get(key) is not partition or not partition.serves(
            spec.current_leader_epoch
        )

    def look(self, key: object) -> bool:
        """Give a partition's records on the fast path; return whether the fetch is over."""
        found = self._here.get(key)  # type: ignore[call-overload]
        if found is None:
            return self.can_complete()
        partition: Partition = found
        topic_partition = partition.topic_partition
        spec = self._positions[topic_partition].spec
        fetch_offset, max_bytes, leader_epoch, fetched_epoch, _ = spec
        # As `_is_changed`: each append comes here for each follower.
        if self._leader.partitions.get(topic_partition) is not partition or not partition.serves(
            leader_epoch
        ):
            return True
        log = partition.log
        end = log.log_end_offset
        if fetch_offset == end:
            return False
        if (
            end < fetch_offset
            or fetched_epoch != leader_epoch
            or self.params.replica_id not in partition.in_sync.isr
        ):
            return self._is_news(topic_partition)
        newest = partition.newest
        if (
            newest is not None
            and newest[:3] == (fetch_offset, end, leader_epoch)
            and fetch_offset >= log.log_start_offset
        ):
            return self._hand_on(partition, spec, newest.data)
        try:
            records = read_slice_fast(log, fetch_offset, min(max_bytes, self.params.max_bytes), end)
        except StorageError:
            return True
        return records is None or self._hand_on(partition, spec, records)

    @abstractmethod
    def _hand_on(self, partition: Partition, spec: FetchSpec, records: bytes | FetchSlice) -> bool:
        """Give records to the follower; takes them over. True if the fetch is over instead."""


def _has_records_behind(partition: Partition, offset: int) -> bool:
    """Return whether a read at an offset below the log's end would find a batch, or fail.

    A log whose last records were cut off may have none behind an offset that a cleaning has passed.
    """
    log = partition.log
    return offset < log.log_start_offset or log.locate(offset).offset < log.log_end_offset


class LocalParkedFetch(ParkedFetch):
    """That of a follower of the same process, which takes an answer with each turn."""

    __slots__ = ("_give", "_given")

    def __init__(
        self,
        deadline_ms: int,
        params: FetchParams,
        keys: Iterable[TopicPartition],
        leader: LeaderSide,
        positions: Mapping[TopicPartition, SessionPosition],
        give: Give,
    ) -> None:
        super().__init__(deadline_ms, params, keys, leader, positions)
        # What the follower has not appended yet.
        self._given: set[TopicPartition] = set()
        self._give = give

    def look(self, key: object) -> bool:
        """Do nothing about what the follower has on its way."""
        if key not in self._given or self._is_over_for(key):
            return super().look(key)
        return False

    def _is_over_for(self, key: object) -> bool:
        partition: Partition = self._here[key]  # type: ignore[index]
        topic_partition = partition.topic_partition
        return self._is_changed(topic_partition, partition, self._positions[topic_partition].spec)

    def _hand_on(self, partition: Partition, spec: FetchSpec, records: bytes | FetchSlice) -> bool:
        if not isinstance(records, bytes):
            region = records
            try:
                records = region.read()
            except StorageError:
                return True
            finally:
                region.release()
        topic_partition = partition.topic_partition
        self._leader.note_read(topic_partition, len(records))
        self._given.add(topic_partition)
        watermark, start = partition.high_watermark, partition.log.log_start_offset
        self._positions[topic_partition].note_offsets(watermark, start)
        answer = new_tuple(LeaderAnswer, (0, watermark, start, records, None))
        self._give(self, topic_partition, spec, answer)
        return False

    def drop(self) -> None:
        """Let go of the follower too."""
        super().drop()
        self._given = set()
        del self._give

    def took(self, key: TopicPartition, following: FetchSpec | None) -> None:
        """Note that the follower has appended what it was given, and fetches on as it says.

        None if it did not: the fetch is over then. One that is over already changes nothing.
        """
        if self.is_completed:
            return
        self._given.discard(key)
        position = self._positions[key]
        if following is None:
            # What it was told with the records, it may have passed over.
            position.note_offsets(-1, -1)
            self._leader.end(self)
            return
        position.spec = following
        self._leader.took(self, key, following)
        # There may be more for it by now.
        if not self.is_completed and self.look(key):
            self._leader.end(self)


def local_park(positions: Mapping[TopicPartition, SessionPosition], give: Give) -> Park:
    """Return what makes the fetch of a session whose follower takes answers by `give`."""

    def park(
        deadline_ms: int,
        params: FetchParams,
        keys: Iterable[TopicPartition],
        leader: LeaderSide,
    ) -> LocalParkedFetch:
        return LocalParkedFetch(deadline_ms, params, keys, leader, positions, give)

    return park


class SessionParkedFetch(ParkedFetch):
    """That of a follower of another process: answered, and asked again by its session.

    ```
     asked ──── look: records of one partition ────> answered ──── ask: that one moved ────> asked
       └──────── all else, the deadline ────> over <───────────────── (what came meanwhile) ───┘
                      answered ── the deadline ──> over, and nothing is read: nobody asked
    ```

    A session is told of all that is new at once: where others have moved too, it is over.
    """

    __slots__ = ("_moved", "_respond", "_unseen", "is_requested")

    def __init__(
        self,
        deadline_ms: int,
        params: FetchParams,
        keys: Iterable[TopicPartition],
        leader: LeaderSide,
        positions: Mapping[TopicPartition, SessionPosition],
        respond: Respond,
    ) -> None:
        super().__init__(deadline_ms, params, keys, leader, positions)
        self._respond = respond
        #: There is a request to answer.
        self.is_requested = True
        # What may have more to tell than records, and what had an event between two requests.
        self._moved: set[object] = {
            key
            for key, here in self._here.items()
            if (last := positions[key]).high_watermark != here.high_watermark
            or last.log_start_offset != here.log.log_start_offset
        }
        self._unseen: set[object] = set()

    def _untold(self) -> list[tuple[TopicPartition, FetchSpec]]:
        """Return nothing where no request waits for it.

        What is read for nobody would be sent, and released, by nobody.
        """
        return super()._untold() if self.is_requested else []

    def drop(self) -> None:
        """Let go of the session too."""
        super().drop()
        self._moved, self._unseen = set(), set()
        del self._respond

    def look(self, key: object) -> bool:
        """Answer the request with the records of a partition, if that is on the fast path."""
        if not self.is_requested:
            self._unseen.add(key)
            return False
        is_over = super().look(key)
        if self.is_requested:
            self._moved.add(key)
        return is_over

    def _hand_on(self, partition: Partition, spec: FetchSpec, records: bytes | FetchSlice) -> bool:
        topic_partition, moved = partition.topic_partition, self._moved
        moved.discard(topic_partition)
        try:
            is_answered = not moved and self._respond(self, partition, records)
        except StorageError:
            # Read once more, with all others, it is an error of its partition.
            is_answered = False
        if not is_answered:
            if not isinstance(records, bytes):
                records.release()
            return True
        size = len(records) if isinstance(records, bytes) else records.size_bytes
        self._leader.note_read(topic_partition, size)
        self.is_requested = False
        if not self.is_completed:
            # As in its session: those that had no bytes yet come first.
            self._here[topic_partition] = self._here.pop(topic_partition)
        return False

    def may_ask(self, key: TopicPartition) -> bool:
        """Return whether the session's next request may be of this partition alone."""
        partition = self._here.get(key)
        if partition is None or self.is_requested or self.is_completed:
            return False
        return not self._is_changed(key, partition, self._positions[key].spec)

    def ask(self, key: TopicPartition) -> None:
        """Park for the session's next request: the follower has all below its position now."""
        partition, following = self._here[key], self._positions[key].spec
        self.is_requested = True
        unseen, self._unseen = self._unseen, set()
        if following.fetch_offset != partition.log.log_end_offset:
            unseen.add(key)
        self._moved |= unseen
        # What is there is answered as it was when it was read, before the follower is noted.
        for changed in unseen:
            if self.is_requested and self.look(changed):
                self._leader.end(self)
                break
        self._leader.took(self, key, following)
