"""One round of a follower, by the fetcher of brokers; scripts stand where its connection would.

Both logs, their leader epochs, the leader's side and the fetcher are the real ones. What it does is
told by what became of the log.
"""

from __future__ import annotations

from engine.host.ports import Clock
from engine.kafka_errors import OFFSET_OUT_OF_RANGE, kafka_error
from engine.model import TopicPartition
from engine.replication.delayed_fetch import FetchResult
from engine.replication.following.fetch_state import PartitionResponse
from engine.replication.following.followed_partitions import (
    EpochAnswer,
    EpochRequest,
    FollowedPartitions,
    LeaderEnds,
)
from engine.replication.following.follower_logs import FollowerLogs
from engine.replication.partition import Partition
from engine.replication.partition_types import FetchParams, FetchSpec
from engine.replication.replica_manager import ReplicaManager
from engine.replication.replication_quota import ReplicationQuota
from engine.replication.watermark import Isolation


def unthrottled(clock: Clock) -> ReplicationQuota:
    """Return a throttle that holds nothing back."""
    return ReplicationQuota(clock, lambda _key: False, window_count=11, window_ms=1000)


def answers_of(
    leader: ReplicaManager, replica_id: int, specs: dict[TopicPartition, FetchSpec]
) -> list[tuple[TopicPartition, PartitionResponse]]:
    """Return what a leader answers to a fetch that does not wait."""
    params = FetchParams(replica_id, max_wait_ms=0, isolation=Isolation.LOG_END)
    results = leader.fetch(params, list(specs.items()))
    assert isinstance(results, list)
    return [(key, answer_of(result)) for key, result in results]


def answer_of(result: FetchResult) -> PartitionResponse:
    """Return a leader's result as it comes to a follower."""
    if result.error is not None:
        return PartitionResponse(result.error.code)
    records = b""
    if result.records is not None and result.records.size_bytes:
        records = result.records.read()
    return PartitionResponse(
        0, result.high_watermark, result.log_start_offset, records, result.diverging_epoch
    )


def ends_of(
    leader: ReplicaManager, requested: dict[TopicPartition, int]
) -> dict[TopicPartition, LeaderEnds]:
    """Return where a leader's logs start and end."""
    logs = {key: leader.partitions[key].log for key in requested}
    return {
        key: LeaderEnds(0, log.log_start_offset, log.log_end_offset) for key, log in logs.items()
    }


def epochs_of(
    leader: ReplicaManager, requested: dict[TopicPartition, EpochRequest]
) -> dict[TopicPartition, EpochAnswer]:
    """Return where epochs of a leader's logs ended."""
    answers = {}
    for key, (leader_epoch, gap) in requested.items():
        end = leader.partitions[key].end_offset_for_epoch(gap.epoch_before, leader_epoch)
        answers[key] = EpochAnswer(0, *end) if end is not None else EpochAnswer(0)
    return answers


def fetch_once(
    follower: Partition,
    replicas: ReplicaManager,
    leader: ReplicaManager,
    clock: Clock,
    *,
    epoch: int | None = None,
) -> list[str]:
    """Ask the leader once and take what it says; returns what happened.

    `epoch` stands in place of the leader epoch that the follower knows.
    """
    followed = FollowedPartitions(FollowerLogs(replicas), clock, unthrottled(clock))
    key, log = follower.topic_partition, follower.log
    before = log.log_end_offset
    followed.follow(key, follower.leader_epoch)
    requested = followed.start_cycle()
    sent = requested
    if epoch is not None:
        sent = {key: spec._replace(current_leader_epoch=epoch) for key, spec in requested.items()}
    if not requested:
        return [f"{follower.broker_id}: follows nobody"]
    ((_, answer),) = answers_of(leader, follower.broker_id, sent)
    followed.apply_responses([(key, answer)])
    return [f"{follower.broker_id}: {_told(follower, before, answer)}"]


def _told(follower: Partition, before: int, answer: PartitionResponse) -> str:
    if answer.error_code == OFFSET_OUT_OF_RANGE:
        return "its end is out of the leader's range"
    if answer.error_code:
        return f"refused, {kafka_error(answer.error_code).name}"
    end = follower.log.log_end_offset
    if answer.diverging_epoch is not None:
        return f"truncates from {before} to {end}"
    return f"takes {end - before} from {before} on, watermark {follower.high_watermark}"
