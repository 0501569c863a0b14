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
    """The controller's state of a partition; `leader_id` is −1 without a leader.

    During a reassignment `assigned_replicas` has both the added and the removed replicas.
    """

    leader_id: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int
    assigned_replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()


class ReplicationConfig(NamedTuple):
    """A topic's settings for replication, with the defaults of Kafka 3.9.

    `is_read_only` refuses the appends of producers.
    """

    replica_lag_time_max_ms: int = 30_000
    min_insync_replicas: int = 1
    is_read_only: bool = False


class RoleChange(NamedTuple):
    """The result of a new state; a state with older epochs is not applied."""

    is_applied: bool
    is_new_leader_epoch: bool = False
    effects: tuple[Effect, ...] = ()


class IsrDecision(NamedTuple):
    """The controller's response to an ISR proposal: an error code, or the new state."""

    error_code: int
    isr: tuple[int, ...] = ()
    leader_epoch: int = -1
    partition_epoch: int = -1


class LeaderAppend(NamedTuple):
    """The result of an append, and the high watermark that acks=-1 waits for (exclusive end)."""

    info: AppendInfo
    required_offset: int
    effects: tuple[Effect, ...]


class FetchSpec(NamedTuple):
    """The fetch of one partition; a value of None or −1 was not sent."""

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
    """Parameters of a complete fetch; a `replica_id` below 0 is a consumer.

    `is_leader_required` is False for consumers that may read from followers (KIP-392).
    `is_max_bytes_hard` is True below version 3: a larger first batch is truncated.
    `client` is None if the consumer cannot be sent to another replica.
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
        """True if a follower sent the fetch, False for a consumer."""
        return self.replica_id >= 0


class EpochEnd(NamedTuple):
    """The largest known epoch that is at most the requested one, and its end offset (exclusive)."""

    leader_epoch: int
    end_offset: int


class PartitionRead(NamedTuple):
    """The result of a read; `records` is None if `diverging_epoch` requires a truncation first."""

    records: FetchSlice | None
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    log_end_offset: int
    diverging_epoch: EpochEnd | None = None


class FastRead(NamedTuple):
    """The result of a read on the fast path: bytes, or a slice of a file to be released."""

    records: bytes | FetchSlice
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    #: The counts of the topic; this read is not counted yet.
    counts: TopicCounts


class NewestBatch(NamedTuple):
    """The last batch in a leader's log, with the leader epoch of its append.

    A leader's log is never truncated in its epoch: offsets and epoch identify the bytes.
    """

    first_offset: int
    next_offset: int
    leader_epoch: int
    data: bytes


class EnoughReplicas(NamedTuple):
    """The result of a check for acks=all: whether the offset is committed, and the ISR's size."""

    is_reached: bool
    isr_count: int
    min_isr_count: int


class DeletedRecords(NamedTuple):
    """The result of a deletion: the requested log start offset and the low watermark (HW-18)."""

    requested_offset: int
    low_watermark: int
    effects: tuple[Effect, ...]
