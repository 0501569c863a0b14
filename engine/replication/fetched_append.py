"""Append a leader's batches to a follower's log, also to a log that starts inside a batch."""

from __future__ import annotations

from engine.log.local_log import LocalLog
from engine.log.log_types import EPOCH_MAX, AppendInfo, UnexpectedAppendOffset
from engine.log.replica_chunks import split_replica_batches
from engine.log.validation import CorruptMessage


def append_fetched(
    log: LocalLog, batches: memoryview, now_ms: int, leader_epoch: int = EPOCH_MAX
) -> AppendInfo:
    """Append the batches that a leader sent to a follower's log; raises the errors of the log.

    Batches of an epoch later than `leader_epoch` are skipped: the follower must not take records
    of a leader that it does not follow yet. By default no batch is skipped.

    Raises CorruptMessage if no batch could be appended: a leader always sends its first batch
    completely, so a first batch that exceeds the received bytes has a damaged length.

    DeleteRecords may have put the leader's log start offset inside a batch. A follower that starts
    there gets the complete batch: its empty log then begins with that batch, and keeps the leader's
    log start offset.

    Source: Kafka's Partition.appendRecordsToFollowerOrFutureReplica.
    Differs: if no batch is complete, Kafka appends nothing, without an error, and fetches again.
    """
    end_offset = log.log_end_offset
    info = _append_or_restart(log, batches, now_ms, leader_epoch)
    if batches and log.log_end_offset == end_offset:
        raise CorruptMessage(f"no whole batch in {len(batches)} bytes from offset {end_offset} on")
    return info


def _append_or_restart(
    log: LocalLog, batches: memoryview, now_ms: int, leader_epoch: int
) -> AppendInfo:
    """Append batches that a leader sent, as `append_fetched` does, without its final check.

    An empty log that starts inside of the first batch is restarted at the batch's base offset.
    """
    try:
        return log.append_as_follower(batches, now_ms, leader_epoch)
    except UnexpectedAppendOffset as error:
        first, start, end = error.first_offset, log.log_start_offset, log.log_end_offset
        if start != end or not 0 <= first < end <= error.last_offset:
            raise
        # All batches are checked first: an error leaves the log unchanged.
        split_replica_batches(
            batches,
            log_end_offset=first,
            segment_bytes=log.config.segment_bytes,
            leader_epoch=leader_epoch,
        )
        log.restart_at(first, now_ms, start)
    return log.append_as_follower(batches, now_ms, leader_epoch)
