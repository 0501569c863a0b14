"""The rows of a watched cluster: values alone, one kind of row for each view."""

from __future__ import annotations

from typing import NamedTuple


class WatchedBroker(NamedTuple):
    """A broker: `state` is up, silent (registered, and does not answer) or gone."""

    broker_id: int
    state: str
    is_controller: bool
    host: str
    rack: str | None
    leader_count: int
    replica_count: int
    out_of_sync_count: int
    size_bytes: int | None
    usable_bytes: int | None
    bytes_per_s: int | None
    records_per_s: float | None


class WatchedPartition(NamedTuple):
    """A partition at its leader; `trouble` is one of TROUBLES, silent-leader, or None."""

    topic: str
    partition: int
    trouble: str | None
    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    size_bytes: int | None
    log_start_offset: int | None
    end_offset: int | None
    bytes_per_s: int | None
    records_per_s: float | None


class WatchedTopic(NamedTuple):
    """A topic with its size at the leaders and its write rates."""

    topic: str
    partition_count: int
    replication_factor: int
    trouble_count: int
    size_bytes: int
    bytes_per_s: int | None
    records_per_s: float | None


class WatchedGroup(NamedTuple):
    """A group: unread records, how fast they become more, and for how long the oldest waits."""

    group: str
    state: str
    member_count: int | None
    lag: int
    lag_per_s: float | None
    lag_s: float | None
    verdict: str
    reason: str


class WatchedLag(NamedTuple):
    """A partition that a group reads or has read."""

    topic: str
    partition: int
    committed_offset: int | None
    end_offset: int | None
    lag: int | None
    lag_s: float | None
    verdict: str
    client_id: str | None
    client_host: str | None
    reason: str


class WatchedMove(NamedTuple):
    """A reassignment under way; bytes are those of the replicas that it adds."""

    topic: str
    partition: int
    original: tuple[int, ...]
    target: tuple[int, ...]
    copied_bytes: int
    total_bytes: int | None
    bytes_per_s: float | None
    left_s: float | None


class WatchedReplica(NamedTuple):
    """A replica of a partition; `path` and sizes are None where its broker does not say them."""

    broker_id: int
    state: str
    role: str
    is_in_sync: bool
    path: str | None
    size_bytes: int | None
    offset_lag: int | None


class Frame(NamedTuple):
    """A cluster as the last sample has it; `partitions` are all of them.

    `sampled_at_ms` is by the wall clock. `controller_id` is None with KRaft, whose brokers do not
    say it, and -1 without a controller. `failures` are requests without a usable response, in
    words.
    """

    sampled_at_ms: int
    cluster_id: str | None
    controller_id: int | None
    brokers: tuple[WatchedBroker, ...]
    partitions: tuple[WatchedPartition, ...]
    topics: tuple[WatchedTopic, ...]
    groups: tuple[WatchedGroup, ...]
    moves: tuple[WatchedMove, ...]
    failures: tuple[str, ...]

    @property
    def troubled(self) -> list[WatchedPartition]:
        """Return the partitions in trouble."""
        return [row for row in self.partitions if row.trouble is not None]
