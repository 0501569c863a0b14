"""The fast path of a fetch cycle: records of one partition come, and it asks from behind them.

```
 response ─ read ─┬─ records of one partition, as it was asked for ─ take ─ appended ─┬─> request
    ^             │                                                                   │
    │             └─ all else: decoded as any response, a round of `LeaderFetcher`    └─> that too
    └──────────────────────────────── the leader waits <─────────────────────────────────┘
```

A request of a session names what has moved. Where that is the one partition whose records have just
been appended, and nothing else has changed since a whole round was asked, it is written without
looking at the others. The leader's wait is the time of all such rounds together: then a whole one
is asked again, and with it what had a back-off, was throttled or was added.

Source: REPL-5, PART-9; D21.
"""

from __future__ import annotations

from typing import NamedTuple

from engine.broker.follower_session import FollowerSession
from engine.host.ports import Clock
from engine.model import TopicPartition, new_tuple
from engine.replication.fetch_state import LeaderAnswer
from engine.replication.partition_types import FetchSpec
from engine.replication.replica_fetcher import ReplicaFetcher
from engine.wire.fast_replica_bytes import LAST_VERSION, read_replica_response_fast
from engine.wire.fetch_bytes import FIRST_WITH_REPLICA_STATE


class _Fetched(NamedTuple):
    """Records of one partition, which is followed from where they begin; a view of their frame."""

    topic_partition: TopicPartition
    spec: FetchSpec
    answer: LeaderAnswer


class FastFetchCycle:
    """Rounds of one fetcher, see `engine.client.connection.FastExchange`."""

    def __init__(
        self, client_id: str, fetcher: ReplicaFetcher, session: FollowerSession, clock: Clock
    ) -> None:
        self._client_id = client_id.encode()
        self._fetcher = fetcher
        self._session = session
        self._clock = clock
        self._requested: dict[TopicPartition, FetchSpec] = {}
        self._until_ms = 0
        self._version = 0
        self._moved: TopicPartition | None = None

    def begin(self, requested: dict[TopicPartition, FetchSpec]) -> None:
        """Go on from a whole round; what it asks for is kept as it is by then."""
        self._requested = requested
        self._until_ms = self._clock.monotonic_ms() + self._fetcher.config.max_wait_ms

    def read(self, frame: memoryview, version: int) -> _Fetched | None:
        """Return the fields of a response of this version, None for one off the fast path."""
        if not FIRST_WITH_REPLICA_STATE <= version <= LAST_VERSION:
            return None
        fetched = read_replica_response_fast(frame)
        if fetched is None:
            return None
        session_id, topic_id, index, watermark, start, records = fetched
        topic_partition = self._session.find(session_id, topic_id, index)
        if topic_partition is None:
            return None
        spec = self._requested.get(topic_partition)
        if spec is None or not self._fetcher.awaits(topic_partition, spec):
            return None
        self._version = version
        answer = new_tuple(LeaderAnswer, (0, watermark, start, records, None))
        return new_tuple(_Fetched, (topic_partition, spec, answer))

    def take(self, fetched: _Fetched) -> bool:
        """Append the records; returns whether the next fetch cycle takes the fast path."""
        topic_partition, spec, answer = fetched
        fetcher = self._fetcher
        following = fetcher.take_given(topic_partition, spec, answer)
        self._session.took_fast()
        if following is None:
            return False
        self._requested[topic_partition] = following
        self._moved = topic_partition
        return fetcher.is_as_requested and self._clock.monotonic_ms() < self._until_ms

    def request(self, correlation_id: int) -> bytes:
        """Return the frame of the next request."""
        assert self._moved is not None
        return self._session.encode_fast(
            self._client_id,
            correlation_id,
            self._version,
            self._moved,
            self._requested[self._moved],
        )
