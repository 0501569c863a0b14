"""The rows of a watched cluster, as plain values; each view has its type of row."""

from __future__ import annotations

from typing import NamedTuple


class WatchedBroker(NamedTuple):
    """A broker; `state` is up, silent (registered, but does not respond) or gone."""

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
    """A partition; sizes and offsets are the leader's. `trouble`.

    TROUBLES, silent-leader or None.
    """

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
    """A topic with the total size of its leader replicas, and its write rates."""

    topic: str
    partition_count: int
    replication_factor: int
    trouble_count: int
    size_bytes: int
    bytes_per_s: int | None
    records_per_s: float | None


class WatchedGroup(NamedTuple):
    """A group: its lag in records, the growth of the lag, and the lag in seconds."""

    group: str
    state: str
    member_count: int | None
    lag: int
    lag_per_s: float | None
    lag_s: float | None
    verdict: str
    reason: str


class WatchedLag(NamedTuple):
    """The lag of a group in a partition that it reads or has read."""

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
    """A reassignment in progress; bytes are those of the replicas that it adds."""

    topic: str
    partition: int
    original: tuple[int, ...]
    target: tuple[int, ...]
    copied_bytes: int
    total_bytes: int | None
    bytes_per_s: float | None
    left_s: float | None


class WatchedReplica(NamedTuple):
    """A replica of a partition; `path` and sizes are None if its broker did not return them."""

    broker_id: int
    state: str
    role: str
    is_in_sync: bool
    path: str | None
    size_bytes: int | None
    offset_lag: int | None


class Frame(NamedTuple):
    """The state of a cluster in the last sample; `partitions` has all of them.

    `sampled_at_ms` is by the wall clock. `controller_id` is None with KRaft, whose brokers do not
    return it, and -1 without a controller. `failures` describes requests without a usable response.
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
        """The partitions of which a replica or the leader is in trouble."""
        return [row for row in self.partitions if row.trouble is not None]
