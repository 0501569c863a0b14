"""What is true of each partition, as nobody in the cluster can know it: the simulation's own view.

`committed` is what any leader's watermark has ever covered; everything else is held to it.
"""

from __future__ import annotations

from engine.sim.records import BatchId
from engine.znode.values import PartitionStateNode


class History:
    """One partition from its creation on."""

    def __init__(self, name: str) -> None:
        self.name = name
        #: Batches by base offset, contiguous.
        self.committed: dict[int, BatchId] = {}
        self.committed_end = 0
        self.leaders: dict[int, int] = {}
        self.state: PartitionStateNode | None = None
        #: Members of the in-sync set whose disk lost writes since they joined it, with the
        #: controller epoch of that moment.
        self.lossy: dict[int, int] = {}
        #: Why records may be lost from now on, None if they may not.
        self.excuse: str | None = None

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
            self.excuse = self.excuse or f"the leader {leader} lost writes unseen by its controller"

    def missing_from(self, batches: list[BatchId]) -> BatchId | None:
        """Return the first committed batch that a log lacks, None if it has all."""
        if not self.committed:
            return None
        by_offset = {batch.base_offset: batch for batch in batches}
        for offset, batch in self.committed.items():
            if by_offset.get(offset) != batch:
                return batch
        return None
