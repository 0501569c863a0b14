"""The fast path of a fetch cycle: append one partition's records, and fetch that partition again.

```
 response ─ read ─┬─ records of one partition, as it was requested ─ take ─ appended ─┬─> request
    ^             │                                                                   │
    │             └─ any other response: a general cycle of `ReplicaFetcher` <─────────┘
    └──────────────────────────────── the leader waits <─────────────────────────────────┘
```

A session's request has the partitions whose position changed. If only the partition changed whose
records were just appended, the request is encoded without a check of the other partitions. After
the maximal wait time of a fetch a general cycle follows, which includes partitions that had a
back-off, were throttled or were added.

Source: REPL-5, PART-9; D21.
"""

from __future__ import annotations

from typing import NamedTuple

from engine.host.ports import Clock
from engine.model import TopicPartition, new_tuple
from engine.replication.following.fetch_session_handler import FetchSessionHandler
from engine.replication.following.fetch_state import PartitionResponse
from engine.replication.following.followed_partitions import FollowedPartitions
from engine.wire.fast_replica_bytes import LAST_VERSION, read_replica_response_fast
from engine.wire.fetch_bytes import FIRST_WITH_REPLICA_STATE


class _Fetched(NamedTuple):
    """Records of one partition that continue its log; a view of their frame."""

    topic_partition: TopicPartition
    answer: PartitionResponse


class FastFetchCycle:
    """The fast cycles of one fetcher; implements `engine.client.connection.FastExchange`."""

    def __init__(
        self,
        client_id: str,
        followed: FollowedPartitions,
        session: FetchSessionHandler,
        clock: Clock,
    ) -> None:
        """Create the fast path of one fetcher's cycle; nothing is sent before `begin`."""
        self._client_id = client_id.encode()
        self._followed = followed
        self._session = session
        self._clock = clock
        #: Monotonic time at which a general cycle has to follow: other partitions may be due.
        self._until_ms = 0
        #: Version of Fetch that the general cycle negotiated.
        self._version = 0
        #: The partition that got records in the last response; None before the first one.
        self._moved: TopicPartition | None = None

    def begin(self) -> None:
        """Allow fast cycles from now on, after the request of a general cycle."""
        self._until_ms = self._clock.monotonic_ms() + self._followed.config.max_wait_ms

    def read(self, frame: memoryview, version: int) -> _Fetched | None:
        """Return partition and records of a response; None if it does not fit the fast path.

        It must be a response of the current session with one partition that is awaited.
        """
        if not FIRST_WITH_REPLICA_STATE <= version <= LAST_VERSION:
            return None
        fetched = read_replica_response_fast(frame)
        if fetched is None:
            return None
        session_id, topic_id, index, watermark, start, records = fetched
        topic_partition = self._session.find_partition(session_id, topic_id, index)
        if topic_partition is None or not self._followed.awaits(topic_partition):
            return None
        self._version = version
        answer = new_tuple(PartitionResponse, (0, watermark, start, records, None))
        return new_tuple(_Fetched, (topic_partition, answer))

    def take(self, fetched: _Fetched) -> bool:
        """Append the records; return True if the next cycle may take the fast path too."""
        topic_partition, answer = fetched
        followed = self._followed
        goes_on = followed.append_given(topic_partition, answer)
        self._session.took_fast()
        if not goes_on:
            return False
        self._moved = topic_partition
        return followed.is_as_requested and self._clock.monotonic_ms() < self._until_ms

    def request(self, correlation_id: int) -> bytes:
        """Return the frame of the next request, and mark its partition as requested."""
        moved = self._moved
        assert moved is not None
        # Done here and not in `take`: a request that is not sent changes nothing at the leader.
        spec = self._followed.request_on(moved)
        return self._session.encode_fast(
            self._client_id, correlation_id, self._version, moved, spec
        )
