"""The two transports between a leader and its followers: calls in a process, and frames.

| | local | remote |
|---|---|---|
| records come | with each turn, partition by partition | one response to one request |
| other news | at the end of the fetch | with the records, so that alone it ends the fetch |

Source: D12, D27.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from engine.errors import StorageError
from engine.log.log_types import FetchSlice
from engine.model import TopicPartition, new_tuple
from engine.replication.follower_session import SessionPosition
from engine.replication.following.fetch_state import PartitionResponse
from engine.replication.parked_fetch import FollowerEncoder, LeaderSide, Park, ParkedFetch
from engine.replication.partition import Partition
from engine.replication.partition_types import FetchParams, FetchSpec

#: Takes a response for a spec, on a separate turn, and notifies the encoder of its result.
Give: TypeAlias = "Callable[[LocalEncoder, TopicPartition, FetchSpec, PartitionResponse], None]"
#: Answers a session's request with records of one partition; with nothing done, False if the
#: session is another by now, and a StorageError where the records cannot be read.
Respond: TypeAlias = "Callable[[Partition, bytes | FetchSlice], bool]"


class LocalEncoder(FollowerEncoder):
    """Encoder of a follower in the same process, which gets a response in each turn of the loop."""

    __slots__ = ("_fetch", "_give", "_given")

    is_requested = True

    def __init__(self, give: Give) -> None:
        """`give` passes records to the follower's fetcher."""
        self._give = give
        #: The parked fetch to which records were given last; None before.
        self._fetch: ParkedFetch | None = None
        #: Partitions whose records the follower has not appended yet.
        self._given: set[TopicPartition] = set()

    @property
    def is_over(self) -> bool:
        """Return whether the fetch takes no positions any more."""
        return self._fetch is None

    def may_send(self, key: TopicPartition) -> bool:
        """Return whether the follower has nothing of a partition on its way."""
        return key not in self._given

    def hold(self, key: TopicPartition) -> None:
        """Do nothing: the end of the fetch finds it."""

    def send(
        self,
        fetch: ParkedFetch,
        partition: Partition,
        position: SessionPosition,
        records: bytes | FetchSlice,
    ) -> bool:
        """Pass records, high watermark and log start offset to a follower in this process."""
        if not isinstance(records, bytes):
            region, records = records, records.read()
            region.release()
        self._fetch = fetch
        topic_partition = partition.topic_partition
        self._given.add(topic_partition)
        watermark, start = partition.high_watermark, partition.log.log_start_offset
        position.note_offsets(watermark, start)
        answer = new_tuple(PartitionResponse, (0, watermark, start, records, None))
        self._give(self, topic_partition, position.spec, answer)
        return True

    def drop(self) -> None:
        """Release the follower."""
        self._given, self._fetch = set(), None
        del self._give

    def took(self, key: TopicPartition, following: FetchSpec | None) -> None:
        """Note that the follower appended its records.

        `following` is its next fetch of the partition. `following` is None if the append failed:
        the parked fetch ends, so that the follower's next request reports its true position. A
        fetch that has completed already is left alone.
        """
        fetch = self._fetch
        if fetch is None:
            return
        self._given.discard(key)
        position, leader = fetch.positions[key], fetch.leader
        if following is None:
            # The follower may have passed over the offsets that came with the records.
            position.note_offsets(-1, -1)
            leader.end(fetch)
            return
        position.spec = following
        leader.took(fetch, key, following)
        # There may be more for it by now.
        if not fetch.is_completed and fetch.can_complete_after(key):
            leader.end(fetch)


def local_park(positions: Mapping[TopicPartition, SessionPosition], give: Give) -> Park:
    """Return the factory of a fetch whose follower takes responses by `give`."""

    def park(
        deadline_ms: int,
        params: FetchParams,
        keys: Iterable[TopicPartition],
        leader: LeaderSide,
    ) -> ParkedFetch:
        """Return a parked fetch that passes records to the local follower by `give`."""
        return ParkedFetch(deadline_ms, params, keys, leader, positions, LocalEncoder(give))

    return park


class RemoteEncoder(FollowerEncoder):
    """The encoder for a follower of another process: responds, and its session requests again.

    ```
     waits ─── check: records of one partition ────> answered ─ request: that one moved ───> waits
       └──────── all else, the deadline ────> over <──────────────── (other news meanwhile) ───┘
                      answered ── the deadline ──> over, and nothing is read: no request
    ```

    A session is sent all news at once: where other partitions have moved too, it is over.
    """

    __slots__ = ("_moved", "_respond", "_unseen", "is_requested")

    def __init__(self, respond: Respond) -> None:
        """`respond` sends the response with one partition's records."""
        self._respond = respond
        #: Whether the follower has sent a request that has no response.
        self.is_requested = True
        #: Partitions that may have other news than records; below, those with an event between two
        #: requests.
        self._moved: set[TopicPartition] = set()
        self._unseen: set[TopicPartition] = set()

    def may_send(self, key: TopicPartition) -> bool:
        """Return whether there is a request to answer."""
        if not self.is_requested:
            self._unseen.add(key)
        return self.is_requested

    def hold(self, key: TopicPartition) -> None:
        """Let no other partition be sent before this one."""
        self._moved.add(key)

    def send(
        self,
        fetch: ParkedFetch,
        partition: Partition,
        position: SessionPosition,
        records: bytes | FetchSlice,
    ) -> bool:
        """Answer the request, if the response has all news."""
        moved = self._moved
        moved.discard(partition.topic_partition)
        if moved:
            return False
        # Before the response leaves: the connection may end with it.
        self.is_requested = False
        try:
            is_sent = self._respond(partition, records)
        except StorageError:
            self.is_requested = True
            raise
        self.is_requested = not is_sent
        return is_sent

    def drop(self) -> None:
        """Release the session."""
        self._moved, self._unseen = set(), set()
        del self._respond

    def accepts_request(self, fetch: ParkedFetch, key: TopicPartition) -> bool:
        """Return whether the session's next request may be of this partition alone."""
        return not self.is_requested and fetch.holds(key)

    def on_request(self, fetch: ParkedFetch, key: TopicPartition) -> None:
        """Take the session's next request: the follower has all records below its position now."""
        self.is_requested = True
        unseen, self._unseen = self._unseen, set()
        following, leader = fetch.positions[key].spec, fetch.leader
        if following.fetch_offset != leader.partitions[key].log.log_end_offset:
            unseen.add(key)
        self._moved |= unseen
        # The response has the state as it was when it was read, before the follower is noted.
        for changed in unseen:
            if self.is_requested and fetch.can_complete_after(changed):
                leader.end(fetch)
                break
        leader.took(fetch, key, following)
