"""The partitions with a replica on this broker, online or on a failed log directory.

Source: LOG-10; Kafka's HostedPartition, ReplicaManager.getPartitionOrError.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from engine.errors import ApiError, StorageError
from engine.host.ports import LogDirOffline
from engine.model import TopicPartition
from engine.naming import INTERNAL_TOPICS
from engine.replication.errors import (
    NotLeaderOrFollower,
    ReplicaStorageFailed,
    UnknownTopicOrPartition,
    to_api_error,
)
from engine.replication.partition import Partition
from engine.replication.topic_counts import BrokerTopicCounts


class HostedPartitions:
    """The partitions of one broker."""

    #: Topics to which clients may not write, and whose records they may not delete.
    refused_to_clients: Final = INTERNAL_TOPICS

    def __init__(
        self,
        is_known: Callable[[TopicPartition], bool],
        on_log_dir_offline: Callable[[LogDirOffline], None],
    ) -> None:
        """Create the set of a broker's partitions, without any.

        `is_known` returns True if any broker has a partition. `on_log_dir_offline` is called with
        the failure of a partition's log directory.
        """
        self._is_known = is_known
        self._on_log_dir_offline = on_log_dir_offline
        self._partitions: dict[TopicPartition, Partition] = {}
        #: Partitions whose log directory has failed.
        self._offline: set[TopicPartition] = set()
        #: Counts by topic, which the partitions share.
        self.topic_counts = BrokerTopicCounts()

    @property
    def partitions(self) -> Mapping[TopicPartition, Partition]:
        """Return a view of the online partitions."""
        return self._partitions

    def add(self, partition: Partition) -> None:
        """Add a partition, which is online from now on."""
        self._offline.discard(partition.topic_partition)
        partition.counts = self.topic_counts.counts_of(partition.topic_partition.topic)
        self._partitions[partition.topic_partition] = partition

    def remove(self, topic_partition: TopicPartition) -> Partition | None:
        """Remove a partition; return it, or None if it is not online."""
        self._offline.discard(topic_partition)
        return self._partitions.pop(topic_partition, None)

    def mark_offline(self, topic_partition: TopicPartition) -> None:
        """Mark a partition of a failed log directory as offline, until `add` or `remove`."""
        self._partitions.pop(topic_partition, None)
        self._offline.add(topic_partition)

    def is_offline(self, topic_partition: TopicPartition) -> bool:
        """True if the log directory of a partition has failed."""
        return topic_partition in self._offline

    @property
    def offline_count(self) -> int:
        """Return the number of partitions on failed log directories."""
        return len(self._offline)

    def find(self, topic_partition: TopicPartition) -> Partition:
        """Return an online partition.

        Raises ReplicaStorageFailed for an offline one; NotLeaderOrFollower if only another broker
        has it, so that clients refresh their metadata; else UnknownTopicOrPartition.
        """
        partition = self._partitions.get(topic_partition)
        if partition is not None:
            return partition
        if topic_partition in self._offline:
            raise ReplicaStorageFailed(topic_partition, "its log directory is offline")
        if self._is_known(topic_partition):
            raise NotLeaderOrFollower(topic_partition, "no replica of it is here")
        raise UnknownTopicOrPartition(topic_partition)

    def answer_to(
        self, topic_partition: TopicPartition, failure: ApiError | StorageError
    ) -> ApiError:
        """Return the ApiError that a client gets for a failure; report a failed log directory."""
        if isinstance(failure, LogDirOffline):
            self._on_log_dir_offline(failure)
        return to_api_error(topic_partition, failure)
