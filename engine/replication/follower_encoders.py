"""The two encoders for a follower's parked fetch: calls in one process, frames between processes.

| | local | remote |
|---|---|---|
| records are sent | in each turn of the loop, for each partition | in one response to one request |
| other changes | when the fetch ends | in the response; without records they end the fetch |

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

#: Passes a response to the follower on a separate turn; it calls `on_appended` of the encoder
#: afterwards.
Give: TypeAlias = "Callable[[LocalEncoder, TopicPartition, FetchSpec, PartitionResponse], None]"
#: Sends a response with records of one partition. Returns False, with nothing done, if the session
#: has been replaced; raises StorageError if the records cannot be read.
Respond: TypeAlias = "Callable[[Partition, bytes | FetchSlice], bool]"


class LocalEncoder(FollowerEncoder):
    """The encoder for a follower in the same process, which gets records in each loop turn."""

    __slots__ = ("_fetch", "_give", "_given")

    is_requested = True

    def __init__(self, give: Give) -> None:
        """Create the encoder for a follower in this process.

        `give` passes records to its fetcher.
        """
        self._give = give
        #: The parked fetch that sent records last; None before the first ones.
        self._fetch: ParkedFetch | None = None
        #: Partitions whose records the follower has not appended yet.
        self._given: set[TopicPartition] = set()

    @property
    def is_over(self) -> bool:
        """True if a call of `on_appended` is ignored.

        That is so if nothing was sent, or the encoder was dropped.
        """
        return self._fetch is None

    def may_send(self, key: TopicPartition) -> bool:
        """True if the follower has appended all records of the partition that it got."""
        return key not in self._given

    def hold(self, key: TopicPartition) -> None:
        """Do nothing: changes without records are sent when the fetch ends."""

    def send(
        self,
        fetch: ParkedFetch,
        partition: Partition,
        position: SessionPosition,
        records: bytes | FetchSlice,
    ) -> bool:
        """Pass records, high watermark and log start offset to the local follower; return True.

        The follower appends them in a later turn of the event loop, and then calls `on_appended`.
        """
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
        """Release the follower: nothing is passed to it any more."""
        self._given, self._fetch = set(), None
        del self._give

    def on_appended(self, key: TopicPartition, following: FetchSpec | None) -> None:
        """Process that the follower appended the records it got.

        `following` is its next fetch of the partition, None if the append failed: then the parked
        fetch ends, so that the follower's next request has its true position. Does nothing after
        `drop`.
        """
        fetch = self._fetch
        if fetch is None:
            return
        self._given.discard(key)
        position, leader = fetch.positions[key], fetch.leader
        if following is None:
            # The follower may not have applied the offsets that came with the records.
            position.note_offsets(-1, -1)
            leader.end(fetch)
            return
        position.spec = following
        leader.took(fetch, key, following)
        # More records may have been appended meanwhile.
        if not fetch.is_completed and fetch.can_complete_after(key):
            leader.end(fetch)


def create_local_park(positions: Mapping[TopicPartition, SessionPosition], give: Give) -> Park:
    """Return a factory of parked fetches whose follower gets records by `give`."""

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
    """The encoder for a follower in another process: it responds, and the session requests again.

    ```
     waits ─── check: records of one partition ────> answered ─ request for that partition ─> waits
       └──── all other changes, deadline ───> over <─────── (other partitions changed) ─────────┘
                      answered ── the deadline ──> over, without a read: there is no request
    ```

    The response of a session has all changes at once: if other partitions have changed too, the
    fetch ends.
    """

    __slots__ = ("_moved", "_respond", "_unseen", "is_requested")

    def __init__(self, respond: Respond) -> None:
        """Create the encoder for a follower over a connection.

        `respond` sends a response with one partition's records.
        """
        self._respond = respond
        #: Whether a request of the follower has no response yet.
        self.is_requested = True
        #: `_moved`: partitions that may have changes other than records. `_unseen`: partitions with
        #: an event between two requests.
        self._moved: set[TopicPartition] = set()
        self._unseen: set[TopicPartition] = set()

    def may_send(self, key: TopicPartition) -> bool:
        """True if a request waits for a response.

        Otherwise the event of `key` is noted for the next.
        """
        if not self.is_requested:
            self._unseen.add(key)
        return self.is_requested

    def hold(self, key: TopicPartition) -> None:
        """Record a change of `key` without records: no other partition may be sent alone."""
        self._moved.add(key)

    def send(
        self,
        fetch: ParkedFetch,
        partition: Partition,
        position: SessionPosition,
        records: bytes | FetchSlice,
    ) -> bool:
        """Respond with one partition's records; True if they are sent.

        False, with nothing sent, if another partition has changes too, or the session has advanced.
        """
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
        """Release the session: nothing is sent any more."""
        self._moved, self._unseen = set(), set()
        del self._respond

    def may_fetch_alone(self, fetch: ParkedFetch, key: TopicPartition) -> bool:
        """True if the session's next request may name this partition only.

        That holds if no request has come since the last response, and the parked fetch has the
        partition with unchanged values.
        """
        return not self.is_requested and fetch.holds_unchanged(key)

    def on_request(self, fetch: ParkedFetch, key: TopicPartition) -> None:
        """Continue the parked fetch with the session's next request, which names `key`.

        The follower has appended all records below its fetch offset.
        """
        self.is_requested = True
        unseen, self._unseen = self._unseen, set()
        following, leader = fetch.positions[key].spec, fetch.leader
        if following.fetch_offset != leader.partitions[key].log.log_end_offset:
            unseen.add(key)
        self._moved |= unseen
        # The response must have the state from before the follower's offset is recorded.
        for changed in unseen:
            if self.is_requested and fetch.can_complete_after(changed):
                leader.end(fetch)
                break
        leader.took(fetch, key, following)
