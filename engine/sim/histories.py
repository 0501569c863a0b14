"""The true history of each partition: committed batches, losses and forks; brokers do not know it.

`committed` are the batches that any leader's high watermark has ever covered; all logs are compared
with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from engine.records.batch import BatchView
from engine.sim.committed_keys import CommittedKeys
from engine.sim.records import BatchId, id_of
from engine.znode.values import PartitionStateNode


class CommittedBatch(NamedTuple):
    """The retention data of a committed batch: its time by the producer's clock, and its size."""

    base_offset: int
    timestamp_ms: int
    size_bytes: int


class Loss(NamedTuple):
    """Offsets [first, end) whose committed records are lost, in a way that Kafka allows too."""

    first: int
    end: int
    reason: str
    at_ms: int


class Fork(NamedTuple):
    """Offsets [first, end) at which replicas may have different records of the same epoch.

    A leader that lost writes continued in its epoch: its new records cannot be distinguished from
    the lost ones that other replicas have there. Or a leader still has records that an earlier
    leader lost and that other members have truncated. Records after the fork are the same in all
    replicas.
    """

    first: int
    end: int


class Awaited(NamedTuple):
    """The reason why the next leader may lack records; kept until that leader begins."""

    reason: str
    #: Whether that leader continues in the epoch of the records it lost.
    is_rewriting: bool = False
    #: Whether that leader was not in the ISR: earlier leaders may still commit without it.
    is_unclean: bool = False


class LossyReplica(NamedTuple):
    """A replica whose disk lost unsynced writes: its log end before and after that."""

    #: The epoch of the controller that noticed the broker's failure; -1 if none did.
    controller_epoch: int
    #: Its log end offset at the power cut.
    end_before: int
    #: Its log end offset when it was checked after the restart; None before.
    kept_end: int | None = None
    #: The offset up to which it has all committed records, if a restored store has it in an ISR;
    #: None after a power cut.
    whole_end: int | None = None


class History:
    """The history of one partition from its creation on."""

    def __init__(self, name: str, keys: CommittedKeys | None = None) -> None:
        """Create an empty history; `keys` is for compacted topics."""
        self.name = name
        #: Committed records by key; None unless the topic is compacted.
        self.keys = keys
        #: Committed batches by base offset, contiguous; they end at `committed_end` (exclusive).
        self.committed: dict[int, BatchId] = {}
        self.committed_end = 0
        #: Time and size of committed batches by base offset, for retention.
        self._facts: dict[int, CommittedBatch] = {}
        #: Leader of each epoch.
        self.leaders: dict[int, int] = {}
        #: End (exclusive) of the committed records when each epoch was stored.
        self.decided_ends: dict[int, int] = {}
        #: The partition's last written state; None before the first.
        self.state: PartitionStateNode | None = None
        #: In-sync replicas whose disk has lost writes that they have not fetched again.
        self.lossy: dict[int, LossyReplica] = {}
        #: Why the next leader may lack committed records. None: it may not.
        self.awaited: Awaited | None = None
        #: Whether the topic's deletion was requested: its records are not expected any more.
        self.is_doomed = False
        self.losses: list[Loss] = []
        self.forks: list[Fork] = []
        #: Whether DeleteRecords was sent: a log may then begin inside a batch.
        self.begins_inside_batches = False
        #: Committed batches that were lost, by base offset: an earlier leader may still return
        #: them.
        self._lost: dict[int, set[BatchId]] = {}
        #: Epoch of the last leader that lacked committed records, or was elected uncleanly. −1
        #: before.
        self.lost_epoch = -1
        #: Offset from which the leader of each epoch lacked records.
        self._lost_from: dict[int, int] = {}
        #: Offset below which a replica may have deleted old records.
        self.start = 0

    def commit(self, batch: BatchView, now_ms: int) -> None:
        """Add the next batch that a high watermark covers."""
        base = batch.base_offset
        self.committed[base] = id_of(batch)
        self._facts[base] = CommittedBatch(base, batch.max_timestamp_ms, batch.size_bytes)
        self.committed_end = batch.last_offset + 1
        if self.keys is not None:
            self.keys.commit(batch, now_ms)

    def batches_in(self, start: int, end: int, now_ms: int) -> Iterator[CommittedBatch]:
        """Yield the committed batches that begin in [start, end), the last one first.

        For a compacted topic, only batches that no cleaning may have removed yet.
        """
        owed = None if self.keys is None else self.keys.required_offsets(now_ms)
        for base, batch in reversed(self._facts.items()):
            if base < start:
                return
            last_offset = self.committed[base].last_offset
            if base < end and (owed is None or any(base <= at <= last_offset for at in owed)):
                yield batch

    def has(self, batch: BatchView) -> bool:
        """Return True if a log's batch was committed, or may remain of one after cleaning."""
        if self.is_forked(batch.base_offset, batch.last_offset + 1):
            return True
        committed = self.committed.get(batch.base_offset)
        if committed == id_of(batch):
            return True
        return self.keys is not None and self.keys.left_of(batch, committed) is not None

    # Where records may be lost

    @property
    def excuse(self) -> str | None:
        """Return the reason why the partition is not checked now; None if it is checked."""
        if self.is_doomed:
            return "its topic is to be deleted"
        return None if self.awaited is None else self.awaited.reason

    @property
    def is_excused(self) -> bool:
        """Return True if records of the partition may be lost or may differ between replicas.

        A loss without offsets, of a partition that nothing was committed to, excuses nothing.
        """
        return bool(self.forks) or any(loss.first < loss.end for loss in self.losses)

    @property
    def required_start(self) -> int:
        """Return the offset from which on a log must have the committed records.

        In a compacted log it is after the forks, whose records may have superseded any earlier
        ones.
        """
        if self.keys is None:
            return self.start
        return max((self.start, *(fork.end for fork in self.forks)))

    @property
    def known_end(self) -> int:
        """Return the offset from which on no record was ever committed, lost ones included."""
        return max((self.committed_end, *(loss.end for loss in self.losses)))

    @property
    def member_end(self) -> int:
        """Return the offset below which each ISR member must have all committed records.

        That is the committed end, or the start of a fork that reaches beyond it.
        """
        end = self.committed_end
        return min((end, *(fork.first for fork in self.forks if end <= fork.end)))

    def is_forked(self, start: int, end: int) -> bool:
        """Return True if a fork overlaps [start, end)."""
        return any(fork.first < end and start < fork.end for fork in self.forks)

    def is_in_fork(self, start: int, end: int) -> bool:
        """Return True if one fork contains [start, end), so that a replica may lack all of it.

        A log that was truncated inside a batch lacks the whole batch.
        """
        return any(fork.first <= start and end <= fork.end for fork in self.forks)

    def forked_offsets(self) -> frozenset[int]:
        """Return the offsets of all forks and of the batches that overlap one."""
        spans = [(fork.first, fork.end) for fork in self.forks]
        for base, batch in self.committed.items() if spans else ():
            if self.is_forked(base, batch.last_offset + 1):
                spans.append((base, batch.last_offset + 1))
        return frozenset(offset for span in spans for offset in range(*span))

    def is_lost(self, start: int, end: int, seen_count: int = 0) -> bool:
        """Return True if a loss overlaps [start, end), apart from the first `seen_count` losses."""
        lost = self.losses[seen_count:]
        return any(loss.first < end and start < loss.end for loss in lost)

    def was_committed(self, batch: BatchView) -> bool:
        """Return True if a batch was committed and lost.

        In a compacted topic only offsets count.
        """
        if self.keys is not None:
            return self.is_lost(batch.base_offset, batch.last_offset + 1)
        return id_of(batch) in self._lost.get(batch.base_offset, ())

    def resume_at(self, position: int) -> int | None:
        """Return the offset at which a reader of lost records resumes; None if it read none."""
        firsts = [loss.first for loss in self.losses if loss.first < position <= loss.end]
        return min(firsts, default=None)

    def record_lost_writes(
        self, broker_id: int, controller_epoch: int, end_before: int = 0
    ) -> None:
        """Record that a replica's disk lost writes; its log end offset was `end_before`."""
        before = self.lossy.get(broker_id)
        end_before = max(end_before, 0 if before is None else before.end_before)
        whole_end = None if before is None else before.whole_end
        self.lossy[broker_id] = LossyReplica(controller_epoch, end_before, whole_end=whole_end)
        self.judge_lossy()

    def roll_back(self, lacking: Mapping[int, int], end: int | None = None) -> None:
        """Record the ISR members after the store was set back to an older backup.

        `lacking` has the first offset that each one lacks. They count as members whose lost writes
        were not noticed, until they reach `end`, by default the end of the committed records.
        """
        end = self.committed_end if end is None else end
        for broker_id, first in lacking.items():
            before = self.lossy.get(broker_id)
            end_before = max(end, 0 if before is None else before.end_before)
            self.lossy[broker_id] = LossyReplica(-1, end_before, whole_end=first)
        self.judge_lossy()

    def judge_lossy(self) -> None:
        """Expect a loss if every ISR member has lost writes.

        In Kafka this is the "last replica standing" problem: no election can help.
        """
        reason = self._reason_of_all()
        if reason is not None:
            self.awaited = self.awaited or Awaited(reason)

    def _reason_of_all(self) -> str | None:
        """Return the reason why no ISR member has all records; None if a member has them."""
        isr = () if self.state is None else self.state.isr
        if not isr or any(broker_id not in self.lossy for broker_id in isr):
            return None
        is_set_back = any(self.lossy[broker_id].whole_end is not None for broker_id in isr)
        what = "lack records, the store was set back" if is_set_back else "lost unsynced writes"
        return f"all of ISR {list(isr)} {what}"

    def judge_unseen(self, controller_epoch: int) -> None:
        """Expect a loss if the leader lost writes that its controller cannot know of.

        A new controller reads live brokers and ISRs: a broker that restarted meanwhile keeps its
        role, even if its disk has lost data.
        """
        leader = -1 if self.state is None else self.state.leader
        lossy = self.lossy.get(leader)
        if lossy is not None and lossy.controller_epoch != controller_epoch:
            unseen = f"the leader {leader} lost writes unseen by its controller"
            reason = self._reason_of_all() or unseen
            if lossy.whole_end is not None:
                reason = f"the leader {leader} lacks records, the store was set back"
            is_unclean = self.awaited is not None and self.awaited.is_unclean
            self.awaited = Awaited(reason, is_rewriting=True, is_unclean=is_unclean)

    def expect_unclean_loss(self) -> None:
        """Expect a loss, because the stored leader was not in the ISR."""
        self.awaited = Awaited("an unclean election", is_unclean=True)

    def lose(self, loss: Loss, leader_epoch: int) -> None:
        """Record a loss at the start of its leader's epoch; that leader's log is now authoritative.

        Committed records from the loss on are lost, and no replica is required to have them.
        """
        self.losses.append(loss)
        for base in [base for base in self.committed if base >= loss.first]:
            self._lost.setdefault(base, set()).add(self.committed.pop(base))
            del self._facts[base]
        self.committed_end = min(self.committed_end, loss.first)
        self.start = min(self.start, self.committed_end)
        self.decided_ends = {e: min(end, loss.first) for e, end in self.decided_ends.items()}
        self.lost_epoch = leader_epoch
        self._lost_from[leader_epoch] = min(
            loss.first, self._lost_from.get(leader_epoch, loss.first)
        )
        if self.keys is not None:
            self.keys.cut(loss.first)

    def begin_after(self, log_start_offset: int) -> None:
        """Record that a leader's log starts at `log_start_offset`, after a loss.

        If that is above all committed records, the leader was out of sync, and had deleted by age
        the records that the others had: no record remains in between.
        """
        if log_start_offset > self.committed_end:
            self.start = self.committed_end = log_start_offset

    def begin_after_lost_range(self, log_start_offset: int) -> None:
        """Begin the history at `log_start_offset` if all committed records below it are lost.

        Otherwise nothing changes. Replica A has records that leader B lacks, and deletes them by
        age before it follows B; as the next leader, its log starts above B's end.
        """
        between = range(self.committed_end, log_start_offset)
        if all(self.is_lost(offset, offset + 1) for offset in between):
            self.begin_after(log_start_offset)

    def lose_of_before(self, loss: Loss, batches: Iterable[BatchView]) -> None:
        """Record batches as lost that a leader of an epoch before a loss commits after it."""
        self.losses.append(loss)
        for batch in batches:
            self._lost.setdefault(batch.base_offset, set()).add(id_of(batch))

    def own_end(self, latest_epoch: int) -> int | None:
        """Return the offset from which on a log has only records from before a loss.

        `latest_epoch` is the last epoch in the log, below 0 for none. None if the log has no such
        records.
        """
        lost_from = (at for epoch, at in self._lost_from.items() if 0 <= latest_epoch < epoch)
        return min(lost_from, default=None)

    def required_end(self, leader_epoch: int) -> int:
        """Return the offset below which a leader must have all committed records at its start.

        A leader that learns of its epoch after its successor has begun lacks the records that the
        successor has committed.
        """
        if self.state is None or self.state.leader_epoch <= leader_epoch:
            return self.committed_end
        return self.decided_ends.get(leader_epoch, 0)

    def fault_of(self, batches: Iterable[BatchView], end: int, now_ms: int) -> str:
        """Return as text which committed record below `end` a log lacks; empty if it lacks none.

        The log of a compacted topic is checked by the rules of cleaning.
        """
        if self.keys is None:
            missing = self._missing_from(batches, end)
            return "" if missing is None else f"lacks {missing}"
        return self.cleaning_fault(batches, self.required_start, end, now_ms)

    def first_missing(
        self, batches: Sequence[BatchView], log_end: int, end: int, now_ms: int
    ) -> int | None:
        """Return the first offset below `end` that a log lacks; None if it lacks none.

        Also returned is an offset at which the log has another record than the committed one.
        Deleted old records do not count.
        """
        others = (b.base_offset for b in batches if b.base_offset < end and not self.has(b))
        first = min(log_end, end, next(others, end))
        if self.keys is None:
            missing = self._missing_from(batches, first)
            return missing.base_offset if missing is not None else first if first < end else None
        return first if first < end or self.fault_of(batches, end, now_ms) else None

    def cleaning_fault(
        self, batches: Iterable[BatchView], start: int, end: int, now_ms: int
    ) -> str:
        """Return as text which batch in [start, end) no cleaning could produce; empty if none."""
        assert self.keys is not None
        left = []
        for batch in batches:
            if batch.base_offset >= end:
                break
            records = self.keys.left_of(batch, self.committed.get(batch.base_offset))
            if records is None and self.is_forked(batch.base_offset, batch.last_offset + 1):
                continue
            if records is None:
                return f"has {id_of(batch)}, committed {self.committed.get(batch.base_offset)}"
            left.append(records)
        lost = self.keys.missing_last_record(left, start, end, now_ms)
        return "" if lost is None else f"lost {lost}"

    def _missing_from(self, batches: Iterable[BatchView], end: int) -> BatchId | None:
        """Return the first committed batch below `end` that a log lacks; None if it lacks none."""
        by_offset = {batch.base_offset: id_of(batch) for batch in batches}
        for offset, batch in self.committed.items():
            if not self.start <= offset < end or by_offset.get(offset) == batch:
                continue
            if not self.is_forked(offset, batch.last_offset + 1):
                return batch
        return None
