"""One round of a follower: what a replica fetcher of Kafka's does with a leader's answer.

The broker has no fetcher yet, so scripts take its place here; the leader, both logs and their
leader epochs are the real ones.

Source: R9, PART-9, PART-10, REPL-2; Kafka's AbstractFetcherThread, with truncation by the answer of
Fetch as it is since inter.broker.protocol.version 2.7.
"""

from __future__ import annotations

from engine.replication.delayed_fetch import FetchResult
from engine.replication.errors import NotLeaderOrFollower
from engine.replication.partition import Partition
from engine.replication.partition_types import EpochEnd, FetchParams, FetchSpec
from engine.replication.replica_manager import ReplicaManager
from engine.replication.watermark import Isolation

_MAX_BYTES = 1 << 20
_OUT_OF_RANGE = 1


def fetch_once(
    follower: Partition, leader: ReplicaManager, *, epoch: int | None = None
) -> list[str]:
    """Ask the leader once and take what it says; returns what happened.

    `epoch` stands in place of the leader epoch that the follower knows.
    """
    log = follower.log
    latest = log.epochs.latest_epoch
    spec = FetchSpec(
        log.log_end_offset,
        _MAX_BYTES,
        follower.leader_epoch if epoch is None else epoch,
        latest if latest >= 0 else None,
        log.log_start_offset,
    )
    params = FetchParams(follower.broker_id, max_wait_ms=0, isolation=Isolation.LOG_END)
    answer = leader.fetch(params, [(follower.topic_partition, spec)])
    assert isinstance(answer, list)
    ((_, result),) = answer
    return [f"{follower.broker_id}: {_taken(follower, result)}"]


def _taken(follower: Partition, result: FetchResult) -> str:
    if result.error is not None:
        if result.error.code == _OUT_OF_RANGE:
            return "its end is out of the leader's range"
        return f"refused, {result.error.name}"
    if result.diverging_epoch is not None:
        return _truncated(follower, result.diverging_epoch)
    assert result.records is not None
    before = follower.log.log_end_offset
    raw = result.records.read() if result.records.size_bytes else b""
    batches = memoryview(bytearray(raw))
    if follower.is_leader:
        raise NotLeaderOrFollower(follower.topic_partition, "a leader follows nobody")
    follower.append_as_follower(batches, result.high_watermark, result.log_start_offset)
    count = follower.log.log_end_offset - before
    return f"takes {count} from {before} on, watermark {follower.high_watermark}"


def _truncated(follower: Partition, leaders: EpochEnd) -> str:
    """Cut the log where the leader's parts from it, or nearer to there."""
    end = follower.log.log_end_offset
    own = follower.log.end_offset_for_epoch(leaders.leader_epoch)
    offset = leaders.end_offset
    if own is not None:
        own_epoch, own_end = own
        # Without the epoch itself only what is behind the one before is known to be wrong.
        offset = own_end if own_epoch != leaders.leader_epoch else min(own_end, offset)
    follower.truncate_to(min(offset, end))
    return f"truncates from {end} to {follower.log.log_end_offset}"
