"""Appending what a leader sent to a follower's log, also where the log starts inside a batch."""

from __future__ import annotations

from engine.log.local_log import LocalLog
from engine.log.log_types import AppendInfo, UnexpectedAppendOffset


def append_fetched(log: LocalLog, batches: memoryview, now_ms: int) -> AppendInfo:
    """Append a leader's batches to a follower's log; the errors are those of the log.

    A deletion of records may have put the leader's start inside a batch, which comes whole to a
    follower that begins there: its empty log then begins with that batch, and keeps its start.

    Source: Kafka's Partition.appendRecordsToFollowerOrFutureReplica.
    """
    try:
        return log.append_as_follower(batches, now_ms)
    except UnexpectedAppendOffset as error:
        start, end = log.log_start_offset, log.log_end_offset
        if start != end or not error.first_offset < end <= error.last_offset:
            raise
        log.restart_at(error.first_offset, now_ms, start)
    return log.append_as_follower(batches, now_ms)
