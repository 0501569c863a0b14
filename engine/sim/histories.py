"""History of each partition: committed batches, losses and forks, as known to the simulation alone.

`committed` are the batches that any leader's watermark has ever covered; all logs are compared with
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from engine.records.batch import BatchView
from engine.sim.committed_keys import CommittedKeys
from engine.sim.records import BatchId, id_of
from engine.znode.values import PartitionStateNode


class CommittedBatch(NamedTuple):
    """A committed batch: its time by the producer's clock, and its size."""

    base_offset: int
    timestamp_ms: int
    size_bytes: int


class Loss(NamedTuple):
    """Offsets [first, end) whose committed records are gone, by a limit that Kafka has too."""

    first: int
    end: int
    reason: str
    at_ms: int


class Fork(NamedTuple):
    """Offsets [first, end) at which replicas may hold different records of one epoch.

    A leader that lost writes has gone on in its epoch: nothing tells its new records from those
    that others have there. Or one leads that still has what an earlier leader lost, and members
    have truncated. Records behind the fork are the same in all of them.
    """

    first: int
    end: int


class Awaited(NamedTuple):
    """The reason why the next leader may lack records, until that leader begins."""

    reason: str
    #: Whether that leader goes on in the epoch in which it had what it lost.
    is_rewriting: bool = False
    #: Whether that leader was not in sync: those of before may commit on without it.
    is_unclean: bool = False


class LossyReplica(NamedTuple):
    """A replica whose disk lost unsynced writes: the ends of its log before and after that."""

    #: The epoch of the controller that saw it go; -1 if none did.
    controller_epoch: int
    #: Where its log ended as the power was cut.
    end_before: int
    #: Where its log ended as it was seen again, None before.
    kept_end: int | None = None
    #: Up to where it has what is committed, where the store was set back to a set with it; None
    #: where the power was cut.
    whole_end: int | None = None


class History:
    """One partition from its creation on."""

    def __init__(self, name: str, keys: CommittedKeys | None = None) -> None:
        """Begin without records; `keys` is for compacted topics."""
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
        #: End (exclusive) of what was committed when each epoch was decided.
        self.decided_ends: dict[int, int] = {}
        #: The partition's state znode as last written; None before.
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
        """Take the next batch that a watermark covers."""
        base = batch.base_offset
        self.committed[base] = id_of(batch)
        self._facts[base] = CommittedBatch(base, batch.max_timestamp_ms, batch.size_bytes)
        self.committed_end = batch.last_offset + 1
        if self.keys is not None:
            self.keys.commit(batch, now_ms)

    def batches_in(self, start: int, end: int, now_ms: int) -> Iterator[CommittedBatch]:
        """Yield the committed batches that begin in [start, end), the last one first.

        Of a compacted topic only the batches that no cleaning may remove yet.
        """
        owed = None if self.keys is None else self.keys.owed_offsets(now_ms)
        for base, batch in reversed(self._facts.items()):
            if base < start:
                return
            last_offset = self.committed[base].last_offset
            if base < end and (owed is None or any(base <= at <= last_offset for at in owed)):
                yield batch

    def has(self, batch: BatchView) -> bool:
        """Return True if a log's batch was committed, or is what cleaning may leave of one."""
        if self.is_forked(batch.base_offset, batch.last_offset + 1):
            return True
        committed = self.committed.get(batch.base_offset)
        if committed == id_of(batch):
            return True
        return self.keys is not None and self.keys.left_of(batch, committed) is not None

    # Where records may be lost

    @property
    def excuse(self) -> str | None:
        """Return why the partition is not checked now, None if it is."""
        if self.is_doomed:
            return "its topic is to be deleted"
        return None if self.awaited is None else self.awaited.reason

    @property
    def owed_start(self) -> int:
        """Return the offset from which on a log must have the committed records.

        Of a compacted log it lies after the forks: their records may have superseded any earlier
        ones.
        """
        if self.keys is None:
            return self.start
        return max((self.start, *(fork.end for fork in self.forks)))

    @property
    def known_end(self) -> int:
        """Return behind which offset nothing was ever committed."""
        return max((self.committed_end, *(loss.end for loss in self.losses)))

    @property
    def member_end(self) -> int:
        """Return up to where each member of the in-sync set has all that is committed."""
        end = self.committed_end
        return min((end, *(fork.first for fork in self.forks if end <= fork.end)))

    def is_forked(self, start: int, end: int) -> bool:
        """Return whether replicas may differ somewhere in [start, end)."""
        return any(fork.first < end and start < fork.end for fork in self.forks)

    def is_in_fork(self, start: int, end: int) -> bool:
        """Return True if replicas may differ at each offset of [start, end), or lack them all.

        A log that was truncated in the middle of a batch lacks all of that batch.
        """
        return any(fork.first <= start and end <= fork.end for fork in self.forks)

    def forked_offsets(self) -> frozenset[int]:
        """Return the offsets of all batches in which replicas may differ somewhere."""
        spans = [(fork.first, fork.end) for fork in self.forks]
        for base, batch in self.committed.items() if spans else ():
            if self.is_forked(base, batch.last_offset + 1):
                spans.append((base, batch.last_offset + 1))
        return frozenset(offset for span in spans for offset in range(*span))

    def is_lost(self, start: int, end: int, seen_count: int = 0) -> bool:
        """Return whether some of [start, end) was lost, but for the first losses that were seen."""
        lost = self.losses[seen_count:]
        return any(loss.first < end and start < loss.end for loss in lost)

    def was_committed(self, batch: BatchView) -> bool:
        """Return whether a batch was committed once, and is lost; no cleaned one is checked."""
        if self.keys is not None:
            return self.is_lost(batch.base_offset, batch.last_offset + 1)
        return id_of(batch) in self._lost.get(batch.base_offset, ())

    def resume_at(self, position: int) -> int | None:
        """Return where a reader goes on that has read into what was lost, None if it has not."""
        firsts = [loss.first for loss in self.losses if loss.first < position <= loss.end]
        return min(firsts, default=None)

    def lost_writes(self, broker_id: int, controller_epoch: int, end_before: int = 0) -> None:
        """Take note that a replica's disk lost writes; its log ended at `end_before`."""
        before = self.lossy.get(broker_id)
        end_before = max(end_before, 0 if before is None else before.end_before)
        whole_end = None if before is None else before.whole_end
        self.lossy[broker_id] = LossyReplica(controller_epoch, end_before, whole_end=whole_end)
        self.judge_lossy()

    def roll_back(self, lacking: Mapping[int, int], end: int | None = None) -> None:
        """Note the ISR members of a restored state, with the first offset that each one lacks.

        They count as members that lost writes unseen, until they reach `end`, by default the end of
        the committed records.
        """
        end = self.committed_end if end is None else end
        for broker_id, first in lacking.items():
            before = self.lossy.get(broker_id)
            end_before = max(end, 0 if before is None else before.end_before)
            self.lossy[broker_id] = LossyReplica(-1, end_before, whole_end=first)
        self.judge_lossy()

    def judge_lossy(self) -> None:
        """Await a loss when every member of the in-sync set has lost writes.

        That is Kafka's "last replica standing": no election can help any more.
        """
        reason = self._reason_of_all()
        if reason is not None:
            self.awaited = self.awaited or Awaited(reason)

    def _reason_of_all(self) -> str | None:
        """Return why no ISR member has all committed records, None if a member has them."""
        isr = () if self.state is None else self.state.isr
        if not isr or any(broker_id not in self.lossy for broker_id in isr):
            return None
        is_set_back = any(self.lossy[broker_id].whole_end is not None for broker_id in isr)
        what = "lack records, the store was set back" if is_set_back else "lost unsynced writes"
        return f"all of ISR {list(isr)} {what}"

    def judge_unseen(self, controller_epoch: int) -> None:
        """Expect a loss when a leader has lost writes that its controller cannot know of.

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

    def elected_uncleanly(self) -> None:
        """Await a loss, as the leader that is stored now was not in sync."""
        self.awaited = Awaited("an unclean election", is_unclean=True)

    def lose(self, loss: Loss, leader_epoch: int) -> None:
        """Record a loss as its leader begins an epoch: from now on its log is what is committed.

        Committed records from the loss on are lost, and no replica is checked for them any more.
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
        """Note that a leader's log begins above all committed records, after a loss.

        It was out of sync, and had deleted by age what the others had: no record is left in
        between.
        """
        if log_start_offset > self.committed_end:
            self.start = self.committed_end = log_start_offset

    def begin_behind_losses(self, log_start_offset: int) -> None:
        """Note that a leader's log begins above the committed end, if all in between was lost.

        It had records that an earlier leader lacked, and deleted them by age before it followed
        that leader.
        """
        between = range(self.committed_end, log_start_offset)
        if all(self.is_lost(offset, offset + 1) for offset in between):
            self.begin_after(log_start_offset)

    def lose_of_before(self, loss: Loss, batches: Iterable[BatchView]) -> None:
        """Note the batches that a leader of an epoch before a loss commits after the loss."""
        self.losses.append(loss)
        for batch in batches:
            self._lost.setdefault(batch.base_offset, set()).add(id_of(batch))

    def own_end(self, latest_epoch: int) -> int | None:
        """Return the offset from which a log has only records of before a loss, None if nowhere.

        `latest_epoch` is the last epoch in the log, below 0 for none.
        """
        lost_from = (at for epoch, at in self._lost_from.items() if 0 <= latest_epoch < epoch)
        return min(lost_from, default=None)

    def owed_end(self, leader_epoch: int) -> int:
        """Return the offset below which a leader must have all committed records at its start.

        A leader that learns of its epoch after another one followed it lacks what the later leader
        has committed.
        """
        if self.state is None or self.state.leader_epoch <= leader_epoch:
            return self.committed_end
        return self.decided_ends.get(leader_epoch, 0)

    def fault_of(self, batches: Iterable[BatchView], end: int, now_ms: int) -> str:
        """Return, as text, which committed record below `end` a log lacks; empty if it has all.

        The log of a compacted topic is judged by the rules of cleaning instead.
        """
        if self.keys is None:
            missing = self._missing_from(batches, end)
            return "" if missing is None else f"lacks {missing}"
        return self.cleaning_fault(batches, self.owed_start, end, now_ms)

    def first_missing(
        self, batches: Sequence[BatchView], log_end: int, end: int, now_ms: int
    ) -> int | None:
        """Return the first offset below `end` that a log lacks, None if it lacks none.

        Where old records are deleted there may be none to miss, and a log may have other records in
        their place.
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
        """Return which batch of [start, end) no cleaning leaves like that; empty text if none."""
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
        """Return the first committed batch below `end` that a log lacks, None if none."""
        by_offset = {batch.base_offset: id_of(batch) for batch in batches}
        for offset, batch in self.committed.items():
            if not self.start <= offset < end or by_offset.get(offset) == batch:
                continue
            if not self.is_forked(offset, batch.last_offset + 1):
                return batch
        return None
