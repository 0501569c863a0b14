"""What is done where this broker is to follow a leader: it is said that it does not, yet.

A replica that fetches nothing is not in sync: its leader drops it from the in-sync set after
`replica.lag.time.max.ms`, or never takes it in, so that nobody counts on records that are not
here. Each partition is told of once; docs/compatibility.md says the same in words.
"""

from __future__ import annotations

import logging

from engine.model import TopicPartition
from engine.replication.effects import FetchFrom

_log = logging.getLogger("kafka.server.ReplicaFetcherManager")


class NoReplicaFetching:
    """Follows nobody, and says so; see `engine.replication.ports.ReplicaFetching`."""

    def __init__(self) -> None:
        #: Partitions that this broker should follow, and their leaders.
        self.unfollowed: dict[TopicPartition, int] = {}

    def fetch_from(self, order: FetchFrom) -> None:
        """Tell once that a partition is not followed."""
        topic_partition, leader_id, leader_epoch = order
        if topic_partition not in self.unfollowed:
            _log.warning(
                "%s is not fetched from its leader %d (epoch %d): this broker does not follow "
                "yet, and its replica stays out of the in-sync set",
                topic_partition,
                leader_id,
                leader_epoch,
            )
        self.unfollowed[topic_partition] = leader_id

    def stop(self, topic_partition: TopicPartition) -> None:
        """Forget a partition that is led here, or is here no more."""
        self.unfollowed.pop(topic_partition, None)
