"""What is true of each partition, as nobody in the cluster can know it: the simulation's own view.

`committed` is what any leader's watermark has ever covered; everything else is held to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from engine.records.batch import BatchView
from engine.sim.committed_keys import CommittedKeys
from engine.sim.records import BatchId, id_of
from engine.znode.values import PartitionStateNode


class CommittedBatch(NamedTuple):
    """When a batch was made, by the clock of its producer, and how large it is."""

    base_offset: int
    timestamp_ms: int
    size_bytes: int


class History:
    """One partition from its creation on."""

    def __init__(self, name: str, keys: CommittedKeys | None = None) -> None:
        self.name = name
        #: Where the topic is compacted.
        self.keys = keys
        #: Batches by base offset, contiguous.
        self.committed: dict[int, BatchId] = {}
        self.committed_end = 0
        self._facts: dict[int, CommittedBatch] = {}
        self.leaders: dict[int, int] = {}
        #: What was committed when each epoch was decided on (exclusive).
        self.decided_ends: dict[int, int] = {}
        self.state: PartitionStateNode | None = None
        #: Members of the in-sync set whose disk lost writes since they joined it, with the
        #: controller epoch of that moment.
        self.lossy: dict[int, int] = {}
        #: Why records may be lost from now on, None if they may not.
        self.excuse: str | None = None
        #: Whether a leader that lost writes has gone on in its epoch: nothing tells its new records
        #: from those that followers have at these offsets.
        self.is_rewritten = False
        #: Below this old records may have been deleted, in some replica.
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
        """Yield the last batches of [start, end) first; of compacted topics what has to be there.

        A batch counts if it begins in there.
        """
        owed = None if self.keys is None else self.keys.owed_offsets(now_ms)
        for base, batch in reversed(self._facts.items()):
            if base < start:
                return
            last_offset = self.committed[base].last_offset
            if base < end and (owed is None or any(base <= at <= last_offset for at in owed)):
                yield batch

    def has(self, batch: BatchView) -> bool:
        """Tell whether a batch of a log is what was committed, or what cleaning may leave of it."""
        committed = self.committed.get(batch.base_offset)
        if committed == id_of(batch):
            return True
        return self.keys is not None and self.keys.left_of(batch, committed) is not None

    def lost_writes(self, broker_id: int, controller_epoch: int) -> None:
        """Take note that a replica's disk lost writes."""
        self.lossy[broker_id] = controller_epoch
        self.judge_lossy()

    def judge_lossy(self) -> None:
        """Excuse a partition when every member of its in-sync set has lost writes.

        That is Kafka's "last replica standing": no election can help any more.
        """
        isr = () if self.state is None else self.state.isr
        if isr and all(broker_id in self.lossy for broker_id in isr):
            self.excuse = self.excuse or f"all of ISR {list(isr)} lost unsynced writes"

    def judge_unseen(self, controller_epoch: int) -> None:
        """Excuse a partition that is led by a replica whose loss its controller cannot know of.

        A controller that takes over sees brokers that are there and the sets they are in: one that
        was away and came back in between keeps its role, whatever its disk has lost.
        """
        leader = -1 if self.state is None else self.state.leader
        epoch = self.lossy.get(leader)
        if epoch is not None and epoch != controller_epoch:
            self.is_rewritten = True
            self.excuse = self.excuse or f"the leader {leader} lost writes unseen by its controller"

    def owed_end(self, leader_epoch: int) -> int:
        """Return up to where a leader has all that is committed, as its epoch begins for it.

        One that hears of its epoch when another has followed lacks what that one has committed.
        """
        if self.state is None or self.state.leader_epoch <= leader_epoch:
            return self.committed_end
        return self.decided_ends.get(leader_epoch, 0)

    def fault_of(self, batches: Iterable[BatchView], end: int, now_ms: int) -> str:
        """Return in words what a log lacks that is committed below an offset; empty if nothing."""
        if self.keys is None:
            missing = self._missing_from(batches, end)
            return "" if missing is None else f"lacks {missing}"
        return self.cleaning_fault(batches, self.start, end, now_ms)

    def cleaning_fault(
        self, batches: Iterable[BatchView], start: int, end: int, now_ms: int
    ) -> str:
        """Return in words what a part [start, end) of a log has that no cleaning leaves of it."""
        assert self.keys is not None
        left = []
        for batch in batches:
            if batch.base_offset >= end:
                break
            records = self.keys.left_of(batch, self.committed.get(batch.base_offset))
            if records is None:
                return f"has {id_of(batch)}, committed {self.committed.get(batch.base_offset)}"
            left.append(records)
        lost = self.keys.lost(left, start, end, now_ms)
        return "" if lost is None else f"lost {lost}"

    def _missing_from(self, batches: Iterable[BatchView], end: int) -> BatchId | None:
        by_offset = {batch.base_offset: id_of(batch) for batch in batches}
        for offset, batch in self.committed.items():
            if self.start <= offset < end and by_offset.get(offset) != batch:
                return batch
        return None
