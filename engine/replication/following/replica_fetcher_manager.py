"""Assign partitions to fetchers: num.replica.fetchers for each leader.

```
fetch_from ── fetcher of (leader, number) ── created if absent ──> add
stop       ── removed from its fetcher ── no partition left ───> the fetcher is closed
```

A partition has the same fetcher number as in Kafka.

Source: PART-8; Kafka's ReplicaFetcherManager.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from engine.java_text import java_string_hash
from engine.model import TopicPartition
from engine.replication.effects import FetchFrom
from engine.replication.following.fetch_state import FetchState
from engine.replication.following.followed_partitions import (
    FollowedPartitions,
    ReplicaFetcherConfig,
)
from engine.replication.following.follower_logs import FollowerLogs
from engine.replication.following.leader_end_point import FetcherPorts
from engine.replication.following.replica_fetcher import ReplicaFetcher
from engine.replication.replication_quota import ReplicationQuota


def fetcher_number(topic_partition: TopicPartition, fetcher_count: int) -> int:
    """Return the number of the leader's fetcher that follows a partition, from 0 (PART-8)."""
    topic, partition = topic_partition
    hashed = (31 * java_string_hash(topic) + partition) & 0xFFFF_FFFF
    signed = (hashed ^ 0x8000_0000) - 0x8000_0000
    # Java's smallest int has no positive counterpart: Kafka uses 0.
    return (0 if signed == -0x8000_0000 else abs(signed)) % fetcher_count


class ReplicaFetcherManager:
    """The fetchers of one broker; implements `engine.replication.ports.ReplicaFetching`."""

    def __init__(
        self,
        ports: FetcherPorts,
        config: ReplicaFetcherConfig,
        *,
        fetcher_count: int,
        logs: Callable[[], FollowerLogs],
        quota: ReplicationQuota,
    ) -> None:
        """Create the manager, which has no fetcher yet.

        A leader gets at most `fetcher_count` of them (num.replica.fetchers). `logs` is called for
        each new fetcher.
        """
        self._ports = ports
        self._config = config
        self._fetcher_count = fetcher_count
        self._logs = logs
        self._quota = quota
        #: Fetchers by leader id and number below `fetcher_count`.
        self._fetchers: dict[tuple[int, int], ReplicaFetcher] = {}
        self._is_stopped = False
        #: Whether new partitions may be followed; False after `begin_no_more`.
        self._begins = True

    @property
    def fetchers(self) -> dict[tuple[int, int], ReplicaFetcher]:
        """Return the fetchers by leader id and number."""
        return dict(self._fetchers)

    def followed(self) -> dict[tuple[int, int], Mapping[TopicPartition, FetchState]]:
        """Return the fetch states of each fetcher's partitions, by leader id and number."""
        return {key: fetcher.followed.states for key, fetcher in self._fetchers.items()}

    def fetch_from(self, order: FetchFrom) -> None:
        """Fetch a partition from a leader, in place of its former leader or epoch."""
        topic_partition, leader_id, leader_epoch = order
        if self._is_stopped or not self._begins:
            self._remove_partition(topic_partition, spared=None)
            return
        number = fetcher_number(topic_partition, self._fetcher_count)
        key = leader_id, number
        fetcher = self._fetchers.get(key)
        if fetcher is None:
            followed = FollowedPartitions(
                self._logs(), self._ports.clock, self._quota, self._config
            )
            fetcher = self._fetchers[key] = ReplicaFetcher(leader_id, followed, self._ports, number)
        fetcher.add(topic_partition, leader_epoch)
        self._remove_partition(topic_partition, spared=fetcher)

    def stop(self, topic_partition: TopicPartition) -> None:
        """Stop fetching a partition; does nothing if it is not fetched."""
        self._remove_partition(topic_partition, spared=None)

    def resize(self, fetcher_count: int) -> None:
        """Distribute the partitions over another number of fetchers for each leader."""
        if fetcher_count == self._fetcher_count or self._is_stopped:
            return
        self._fetcher_count = fetcher_count
        fetchers, self._fetchers = self._fetchers, {}
        for (leader_id, _), fetcher in fetchers.items():
            fetcher.close()
            for topic_partition, state in fetcher.followed.states.items():
                self.fetch_from(FetchFrom(topic_partition, leader_id, state.leader_epoch))

    def begin_no_more(self) -> None:
        """Continue the present fetches, but follow no new leader from now on.

        Called when the broker shuts down.
        Differs: a broker of Kafka in controlled shutdown follows new leaders.
        """
        self._begins = False

    def close(self) -> None:
        """Close all fetchers; `fetch_from` is ignored from now on."""
        self._is_stopped = True
        fetchers, self._fetchers = self._fetchers, {}
        for fetcher in fetchers.values():
            fetcher.close()

    def _remove_partition(
        self, topic_partition: TopicPartition, *, spared: ReplicaFetcher | None
    ) -> None:
        """Remove a partition from all fetchers except `spared`.

        Fetchers without partitions are closed.
        """
        for key, fetcher in tuple(self._fetchers.items()):
            if fetcher is not spared:
                fetcher.followed.remove(topic_partition)
            if not fetcher.followed.states:
                del self._fetchers[key]
                fetcher.close()
