"""The arguments and results of a partition: states, reads and appends."""

from __future__ import annotations

from typing import NamedTuple

from engine.log.log_types import AppendInfo, FetchSlice
from engine.replication.effects import Effect
from engine.replication.topic_counts import TopicCounts
from engine.replication.watermark import Isolation

#: The replica id of a consumer.
CONSUMER_ID = -1


class PartitionState(NamedTuple):
    """The state that the controller decided. `leader_id` is −1 without a leader.

    While a reassignment goes on, `assigned_replicas` are those that come and those that go too.
    """

    leader_id: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int
    assigned_replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()


class ReplicationConfig(NamedTuple):
    """The settings of in-sync sets, with the defaults of Kafka 3.9.

    `is_read_only` refuses producers' appends.
    """

    replica_lag_time_max_ms: int = 30_000
    min_insync_replicas: int = 1
    is_read_only: bool = False


class RoleChange(NamedTuple):
    """The result of a new state; one with older epochs is not applied."""

    is_applied: bool
    is_new_leader_epoch: bool = False
    effects: tuple[Effect, ...] = ()


class IsrDecision(NamedTuple):
    """The controller's response to a proposal: an error code of Kafka's, or the new state."""

    error_code: int
    isr: tuple[int, ...] = ()
    leader_epoch: int = -1
    partition_epoch: int = -1


class LeaderAppend(NamedTuple):
    """An append's result, and the offset that the watermark must reach for acks=-1 (exclusive)."""

    info: AppendInfo
    required_offset: int
    effects: tuple[Effect, ...]


class FetchSpec(NamedTuple):
    """The request for one partition; None and −1 where it does not set a value."""

    fetch_offset: int
    max_bytes: int
    current_leader_epoch: int | None = None
    last_fetched_epoch: int | None = None
    log_start_offset: int = -1


class FetchClient(NamedTuple):
    """The rack of a consumer, and the listener of its connection."""

    rack_id: str
    listener: str


class FetchParams(NamedTuple):
    """Parameters of a whole fetch; `replica_id` below 0 is a consumer.

    `is_leader_required` is False for consumers that may read from followers (KIP-392).
    `is_max_bytes_hard` is set below version 3: a first batch that is larger is truncated.
    `client` is None for one that cannot be sent to another replica.
    """

    replica_id: int = CONSUMER_ID
    max_wait_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 50 << 20
    isolation: Isolation = Isolation.HIGH_WATERMARK
    is_leader_required: bool = True
    is_max_bytes_hard: bool = False
    client: FetchClient | None = None

    @property
    def is_from_follower(self) -> bool:
        """Return whether the client is a replica."""
        return self.replica_id >= 0


class EpochEnd(NamedTuple):
    """The largest known epoch ≤ the requested one, and its end offset (exclusive)."""

    leader_epoch: int
    end_offset: int


class PartitionRead(NamedTuple):
    """A read's result; `records` is None where `diverging_epoch` requires a truncation first."""

    records: FetchSlice | None
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    log_end_offset: int
    diverging_epoch: EpochEnd | None = None


class FastRead(NamedTuple):
    """The result of a fast-path read: bytes, or a region of a file that is to be released."""

    records: bytes | FetchSlice
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    #: What is counted of its topic; the read is not counted yet.
    counts: TopicCounts


class NewestBatch(NamedTuple):
    """A batch of a leader as its log has it, in the epoch that it was appended in.

    A leader's log is never truncated in its epoch: offsets and epoch identify the bytes.
    """

    first_offset: int
    next_offset: int
    leader_epoch: int
    data: bytes


class EnoughReplicas(NamedTuple):
    """Result of a check for acks=all: all in-sync replicas have the offset, and are enough."""

    is_reached: bool
    isr_count: int
    min_isr_count: int


class DeletedRecords(NamedTuple):
    """The start of a leader's log after a deletion, and the least among live replicas (HW-18)."""

    requested_offset: int
    low_watermark: int
    effects: tuple[Effect, ...]
