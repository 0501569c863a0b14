"""The functions of other parts of the broker that the replica manager calls; none has a default.

Source: D22.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from engine.host.ports import LogDirOffline
from engine.model import TopicPartition
from engine.replication.effects import FetchFrom, ProposeIsr
from engine.replication.nearest_replica import NearestReplica
from engine.replication.replication_quota import ReplicationQuota


class ReplicaFetching(Protocol):
    """Fetches records from leaders for the followers on this broker (PART-3, REPL-2)."""

    def fetch_from(self, order: FetchFrom) -> None:
        """Fetch a partition from a leader, in place of its former leader or epoch."""
        ...

    def stop(self, topic_partition: TopicPartition) -> None:
        """Stop fetching a partition; does nothing if it is not fetched."""
        ...


class DirectoryMoving(Protocol):
    """Moves this broker's replicas between its log directories (REPL-14)."""

    def resume(self, topic_partition: TopicPartition) -> None:
        """Continue the move of a partition to another log directory, if its -future log exists."""
        ...

    def stop(self, topic_partition: TopicPartition) -> None:
        """Stop the move of a partition, if there is one; its files remain."""
        ...


class ReplicaManagerPorts(NamedTuple):
    """The other parts of the broker that the replica manager calls.

    `is_known` returns True if any broker has the partition. `propose_isr` sends a proposal to the
    controller; the response goes to `ReplicaManager.isr_decided` on a later turn. `on_waiting` gets
    the deadline (monotonic) of each operation that starts to wait. `nearest` chooses the replica a
    consumer should read from, None if that is always the leader. `leader_quota` limits the bytes
    for followers that lag.
    """

    is_known: Callable[[TopicPartition], bool]
    propose_isr: Callable[[ProposeIsr], None]
    fetching: ReplicaFetching
    moving: DirectoryMoving
    on_log_dir_offline: Callable[[LogDirOffline], None]
    on_waiting: Callable[[int], None]
    nearest: NearestReplica | None
    leader_quota: ReplicationQuota


class ReplicaManagerConfig(NamedTuple):
    """Purge intervals of the purgatories, with the defaults of Kafka 3.9 (PUR-3)."""

    fetch_purgatory_purge_interval_requests: int = 1000
    producer_purgatory_purge_interval_requests: int = 1000
    delete_records_purgatory_purge_interval_requests: int = 1
