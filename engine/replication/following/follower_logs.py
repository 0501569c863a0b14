"""Read and change the logs of the replicas that follow on this broker, for its fetchers.

All changes are made by partitions, and their effects by the replica manager, so that log end
offset, high watermark and delayed operations stay consistent.

Source: PART-9, D1; Kafka's ReplicaFetcherThread.
"""

from __future__ import annotations

import logging
from typing import assert_never

from engine.errors import ApiError, StorageError
from engine.log.epoch_cache import EpochGap
from engine.model import TopicPartition, new_tuple
from engine.replication.effects import Effect
from engine.replication.following.fetch_state import (
    AppendFetched,
    CloseGap,
    FetchFromEnd,
    LocalLogEnds,
    LogStep,
    RestartAt,
    TruncateTo,
    TruncateToDivergence,
    epoch_start_after_gap,
    truncation_offset,
)
from engine.replication.partition import Partition
from engine.replication.partition_types import EpochEnd
from engine.replication.replica_manager import ReplicaManager

_log = logging.getLogger("kafka.server.ReplicaFetcherThread")


class FollowerLogs:
    """The follower replicas of one broker, by partition and leader epoch."""

    def __init__(self, replicas: ReplicaManager) -> None:
        self._replicas = replicas

    def local_replica_log(
        self, topic_partition: TopicPartition, leader_epoch: int
    ) -> LocalLogEnds | None:
        """Return log start, log end and latest epoch of a replica.

        None if the replica does not follow here in this leader epoch.
        """
        partition = self._find(topic_partition, leader_epoch)
        return None if partition is None else _local_replica_log(partition)

    def topic_id(self, topic_partition: TopicPartition) -> str | None:
        """Return the topic id of a log, None if it has none or is not on this broker."""
        partition = self._replicas.partitions.get(topic_partition)
        return None if partition is None else partition.log.topic_id

    def epoch_gap(self, topic_partition: TopicPartition, leader_epoch: int) -> EpochGap | None:
        """Return the gap before an epoch whose start only the leader knows, None without a gap."""
        partition = self._find(topic_partition, leader_epoch)
        return None if partition is None else partition.log.epochs.first_gap

    def begin_following(
        self, topic_partition: TopicPartition, leader_epoch: int
    ) -> LocalLogEnds | None:
        """Return the offsets of a log that a fetcher starts to follow.

        A log without leader epochs cannot detect a divergence from the leader's: it is truncated to
        its high watermark first. Returns None if the replica does not follow here in this leader
        epoch.
        """
        partition = self._find(topic_partition, leader_epoch)
        if partition is None:
            return None
        if partition.log.latest_epoch is None:
            self._truncate_log(partition, partition.high_watermark)
        return _local_replica_log(partition)

    def perform_step(
        self, topic_partition: TopicPartition, leader_epoch: int, step: LogStep
    ) -> LocalLogEnds | None:
        """Perform a step on a follower's log; return its new offsets.

        Returns None if the replica does not follow here in this leader epoch. Raises the errors of
        the log, with nothing written.
        """
        partition = self._find(topic_partition, leader_epoch)
        if partition is None:
            return None
        effects: tuple[Effect, ...] = ()
        match step:
            case AppendFetched():
                records, watermark, log_start_offset = step
                _, effects = partition.append_as_follower(
                    memoryview(records), watermark, log_start_offset
                )
            case TruncateToDivergence(diverging):
                found = partition.log.end_offset_for_epoch(diverging.leader_epoch)
                own = None if found is None else EpochEnd(*found)
                self._truncate_log(
                    partition, truncation_offset(diverging, own, partition.log.log_end_offset)
                )
            case TruncateTo(offset):
                self._truncate_log(partition, offset)
            case RestartAt(offset):
                _log.warning("%s starts again at its leader's start %d", topic_partition, offset)
                partition.restart_at(offset)
            case CloseGap(gap, end_before):
                partition.log.epochs.close_gap(gap, epoch_start_after_gap(gap, end_before))
            case FetchFromEnd():
                pass
            case _:
                assert_never(step)
        if effects:
            self._replicas.perform(effects)
        return _local_replica_log(partition)

    def failed(self, topic_partition: TopicPartition, failure: ApiError | StorageError) -> ApiError:
        """Report a failed log directory to the broker, and return Kafka's error for the failure."""
        return self._replicas.answer_to(topic_partition, failure)

    def _find(self, topic_partition: TopicPartition, leader_epoch: int) -> Partition | None:
        """Return the partition if it follows here in that leader epoch, else None."""
        partition = self._replicas.partitions.get(topic_partition)
        if (
            partition is None
            or partition.leader_epoch != leader_epoch
            or partition.leader_id == partition.broker_id
        ):
            return None
        return partition

    @staticmethod
    def _truncate_log(partition: Partition, offset: int) -> None:
        """Truncate a follower's log to `offset` (exclusive end), with Kafka's log line."""
        end, watermark = partition.log.log_end_offset, partition.high_watermark
        if offset < watermark:
            _log.warning(
                "Truncating %s to offset %d below high watermark %d",
                partition.topic_partition,
                offset,
                watermark,
            )
        elif offset < end:
            _log.info("Truncating %s from %d to %d", partition.topic_partition, end, offset)
        # Even without records after `offset`: an epoch without records may follow, unknown to the
        # leader.
        partition.truncate_to(offset)


def _local_replica_log(partition: Partition) -> LocalLogEnds:
    """Return log start offset, log end offset and latest epoch of a partition's log."""
    log = partition.log
    own = (log.log_start_offset, log.log_end_offset, log.latest_epoch)
    return new_tuple(LocalLogEnds, own)
