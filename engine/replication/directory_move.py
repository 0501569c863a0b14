"""Move a replica to another log directory of its broker: its -future log catches up.

```
 AlterReplicaLogDirs ─> <topic>-<partition>.<id>-future is created in the other directory
   each step  1 future ends before the log begins ──> restart it at the log start offset
              2 future has diverged from the log ───> truncate it to the divergence (REPL-4)
              3 future is longer, without epochs ───> truncate it to the log end offset
              4 future is shorter ──────────────────> copy the next records; raise its end
                                                      if no records follow
              5 future is complete ─────────────────> flush it on a worker thread
              6 future is complete and flushed ─────> flush the records since, if the log has
                                                      flushed them; it replaces the log, which is
                                                      deleted
```

The log is still appended to during the move. In the last step no event comes between the comparison
and the replacement. That step copies the state that is in no batch: the log start offset, leader
epochs without records, producers whose records are deleted. After a crash the broker continues with
the files that it finds.

Source: REPL-14, KIP-113; Kafka's ReplicaAlterLogDirsThread.
Differs: the logs are compared at each step, so that a truncation of the log needs no notification.
Kafka does not flush the new log: a power cut then loses records that were on disk before the move.
Kafka's new log lacks epochs without records: a leader then answers followers in its epoch with
OFFSET_OUT_OF_RANGE until the next record.
"""

from __future__ import annotations

import sys
from typing import Final, NamedTuple, TypeAlias, assert_never

from engine.log.local_log import LocalLog
from engine.log.log_messages import LogStartReason
from engine.log.log_types import OffsetOutOfRange
from engine.replication.fetched_append import append_fetched
from engine.replication.following.fetch_state import (
    LocalLogEnds,
    RestartAt,
    TruncateTo,
    TruncateToDivergence,
    epoch_start_after_gap,
    truncation_offset,
)
from engine.replication.partition import Partition
from engine.replication.partition_types import EpochEnd, FetchSpec

#: How many bytes are flushed on the event loop: some 100 ms of a slow disk.
_FLUSHED_AT_ONCE_BYTES: Final = 16 << 20


class CopyFrom(NamedTuple):
    """Copy the records from `offset` on."""

    offset: int


class FlushedCopy(NamedTuple):
    """What was copied to a future log since its last flush began, and since the one before that."""

    #: How often the log had been truncated when the flush began.
    truncation_count: int
    copied_bytes: int = 0
    copied_bytes_before: int = sys.maxsize


class ReplaceLog(NamedTuple):
    """Replace the log by the future log."""


MoveStep: TypeAlias = "CopyFrom | ReplaceLog | TruncateToDivergence | TruncateTo | RestartAt"


def choose_step(log: LocalLogEnds, future: LocalLogEnds, parted: EpochEnd | None) -> MoveStep:
    """Decide the next step of a move between log directories, from the ends of both logs.

    `parted` is where the future log diverges from the current log, None if it does not diverge.
    """
    if future.log_end_offset < log.log_start_offset:
        return RestartAt(log.log_start_offset)
    if parted is not None:
        return TruncateToDivergence(parted)
    if future.log_end_offset > log.log_end_offset:
        return TruncateTo(log.log_end_offset)
    if future.log_end_offset < log.log_end_offset:
        return CopyFrom(future.log_end_offset)
    return ReplaceLog()


class DirectoryMove:
    """The move of one partition; its methods raise the errors of the two logs."""

    def __init__(self, partition: Partition, future: LocalLog) -> None:
        self.partition = partition
        self.future = future

    def needs_flush(self, flushed: FlushedCopy | None) -> bool:
        """Return True if the future log is complete and has to be flushed before step 6 (step 5).

        `flushed` is None if it was never flushed, or was truncated since. All its records are
        flushed once, not only those below the log's recovery point: after an unclean stop, or a
        truncation of the log, that point is lower than what is on disk.

        What the log has flushed meanwhile is flushed in step 6 if it is little, or if it does not
        become less from flush to flush: a log that is written fast must not keep the move from
        ending.
        """
        log, future = self.partition.log, self.future
        if future.log_end_offset != log.log_end_offset:
            return False
        if future.recovery_point >= future.log_end_offset:
            return False
        if not isinstance(self._choose_step(), ReplaceLog):
            return False
        if flushed is None or flushed.truncation_count != log.truncation_count:
            return True
        is_lacking = future.recovery_point < log.recovery_point
        is_much = _FLUSHED_AT_ONCE_BYTES < flushed.copied_bytes < flushed.copied_bytes_before
        return is_lacking and is_much

    def run_step(self, max_bytes: int, now_ms: int) -> int | None:
        """Do the next step of the move: copy, truncate or replace the log.

        Returns the number of copied bytes; None once the future log has replaced the current log.
        """
        future = self.future
        match self._choose_step():
            case CopyFrom(offset):
                return self._copy_records(offset, max_bytes, now_ms)
            case TruncateToDivergence(diverging):
                found = future.end_offset_for_epoch(diverging.leader_epoch)
                own = None if found is None else EpochEnd(*found)
                future.truncate_to(truncation_offset(diverging, own, future.log_end_offset), now_ms)
            case TruncateTo(offset):
                future.truncate_to(offset, now_ms)
            case RestartAt(offset):
                future.restart_at(offset, now_ms)
            case ReplaceLog():
                if future.recovery_point < self.partition.log.recovery_point:
                    future.flush(now_ms)
                future.take_over(self.partition.log)
                return None
            case step:
                assert_never(step)
        return 0

    def _choose_step(self) -> MoveStep:
        """Decide the next step from the present ends and epochs of both logs."""
        log, future = _log_ends(self.partition.log), _log_ends(self.future)
        parted = None
        if log.log_start_offset <= future.log_end_offset:
            spec = FetchSpec(future.log_end_offset, 0, last_fetched_epoch=future.latest_epoch)
            try:
                parted = self.partition.find_divergence(spec)
            except OffsetOutOfRange:
                # The log has none of the future log's epochs.
                return RestartAt(log.log_start_offset)
        return choose_step(log, future, parted)

    def _copy_records(self, offset: int, max_bytes: int, now_ms: int) -> int:
        """Copy up to about `max_bytes` from `offset` on to the future log.

        Returns the copied bytes.
        """
        log, future = self.partition.log, self.future
        records = log.read(offset, max_bytes, log.log_end_offset, at_least_one_batch=True)
        try:
            content = records.read()
        finally:
            records.release()
        if not content:
            # The records were compacted away, and the records that superseded them were truncated.
            future.raise_end(log.log_end_offset, now_ms)
            future.epochs.take_over(log.epochs)
            return 0
        append_fetched(future, memoryview(content), now_ms)
        self._close_gaps()
        start = log.log_start_offset
        if future.log_start_offset < start <= future.log_end_offset:
            future.maybe_increment_log_start_offset(start, start, LogStartReason.LEADER_START)
        return len(content)

    def _close_gaps(self) -> None:
        """Set start offsets of the future log's epochs that only the current log knows.

        Compaction removed the first batches of those epochs, so that the copied batches show a
        start offset that is too high.
        """
        epochs = self.future.epochs
        while (gap := epochs.first_gap) is not None:
            end = self.partition.log.end_offset_for_epoch(gap.epoch_before)
            end_before = EpochEnd(*end) if end is not None else EpochEnd(-1, -1)
            epochs.close_gap(gap, epoch_start_after_gap(gap, end_before))


def _log_ends(log: LocalLog) -> LocalLogEnds:
    """Return log start offset, log end offset and latest leader epoch of a log."""
    return LocalLogEnds(log.log_start_offset, log.log_end_offset, log.latest_epoch)
