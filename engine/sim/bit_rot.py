"""Bit rot: damaged bits in one batch of one replica, and their effects on reads and recovery.

```
begin ─ one batch of one replica ─┬─ reads of it are damaged ────────────────> the disk is repaired
                                  ├─ recovery truncates the log before it ─> nothing is left of it
                                  ├─ its bytes are written again ──────────> nothing is left of it
                                  └─ the replica is deleted ───────────────> nothing is left of it
```

Only one replica of a partition is damaged at a time, while another ISR member is undamaged. A
leader sends the batch as it reads it: consumers and followers find a wrong checksum and reject the
batch. Recovery at the next start may truncate the log before the batch: then that replica has lost
writes (`losses.py`) from the batch on, and none before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import NamedTuple

from engine.model import TopicPartition
from engine.naming import FileKind
from engine.records.batch import BatchView
from engine.replication.partition import Partition
from engine.sim.histories import History
from engine.sim.node import SimulatedBroker
from engine.sim.records import batches

_LENGTH, _LAST_OFFSET_DELTA = range(8, 12), range(23, 27)
#: The leader epoch and magic: like the base offset, they are not covered by the checksum.
_UNCHECKED = range(12, 17)
#: How many of the last batches are candidates, in half of the cases.
_LAST_COUNT = 3
#: How long a damaged read may be in flight to a client.
_IN_FLIGHT_MS = 10_000


class BitRot(NamedTuple):
    """A batch that a broker's disk returns damaged."""

    broker_id: int
    partition: TopicPartition
    base_offset: int
    #: Whether its length is damaged: a reader finds no batch at the position that follows from it.
    is_misplacing: bool = False
    #: Whether its last offset is damaged: a read that should begin in this batch may begin after
    #: it.
    is_hiding: bool = False


class BitRotRules:
    """Damages batches, and records which replicas are damaged."""

    def __init__(
        self, histories: Mapping[TopicPartition, History], nodes: Mapping[int, SimulatedBroker]
    ) -> None:
        """Create the rules; `histories` and `nodes` are shared with the run's other rules."""
        self._histories = histories
        self._nodes = nodes
        #: The present damage, by broker id.
        self._rots: dict[int, BitRot] = {}
        #: Simulated time when the damaged log of a broker was found to be deleted.
        self._deleted_ms: dict[int, int] = {}
        #: The partition's leader epoch when the damage of a broker's replica ended.
        self._ended_in: dict[tuple[int, TopicPartition], int] = {}
        #: Damages that have ended, each with the simulated time when that was noticed.
        self._over: list[tuple[BitRot, int]] = []
        #: Simulated time of the present check; set by the simulation.
        self.now_ms = 0

    def damage_of(self, broker_id: int) -> BitRot | None:
        """Return the present damage of a broker's disk, None if it has none.

        A damage whose bytes the broker has written again meanwhile is ended first. One of a log
        that was deleted does not count: a new replica of the partition does not have it. (A power
        cut may bring the log back.)
        """
        rot = self._rots.get(broker_id)
        if rot is None:
            return None
        paths = self._nodes[broker_id].disk.files.flipped_paths()
        if not paths:
            self._end(rot)
            return None
        if any(PurePath(path).parent.name == str(rot.partition) for path in paths):
            self._deleted_ms.pop(broker_id, None)
            return rot
        self._deleted_ms.setdefault(broker_id, self.now_ms)
        return None

    def note_deleted(self) -> None:
        """Note the damaged logs that were deleted, and those whose bytes were written again.

        To be called often: a damage excuses wrong reads for a while after its end was noted.
        """
        for broker_id in list(self._rots):
            self.damage_of(broker_id)

    def is_damaged(self, broker_id: int, partition: TopicPartition) -> bool:
        """Return True if a broker's replica of a partition has a damaged batch."""
        rot = self.damage_of(broker_id)
        return rot is not None and rot.partition == partition

    def may_have_failed_at_damage(self, broker_id: int, partition: TopicPartition) -> bool:
        """Return True if a follower may have failed at a damaged batch in the present leader epoch.

        It does not fetch again before the next epoch, even if the disk was repaired meanwhile.
        Source: AbstractFetcherThread.markPartitionFailed.
        """
        if self.is_damaged(broker_id, partition):
            return True
        ended_in = self._ended_in.get((broker_id, partition))
        return ended_in is not None and ended_in == self._epoch_of(partition)

    def _epoch_of(self, partition: TopicPartition) -> int | None:
        """Return a partition's leader epoch in the store; None before its first state."""
        history = self._histories.get(partition)
        return None if history is None or history.state is None else history.state.leader_epoch

    def explains(self, host: str, partition: TopicPartition, base_offset: int) -> bool:
        """Return True if bit rot explains a batch with a wrong checksum that broker `host` sent.

        Damage that ended a moment ago counts too: its response may still be in flight.
        """
        return any(
            self._nodes[rot.broker_id].name == host
            and rot.partition == partition
            and (rot.is_misplacing or rot.base_offset == base_offset)
            for rot in self._readable()
        )

    def hides(
        self, partition: TopicPartition, first: int, end: int, *, broker_id: int | None = None
    ) -> bool:
        """Return True if bit rot may have made a read skip batches in [first, end).

        A read begins with the first batch whose header has a last offset at or after the fetch
        offset, so a damaged header hides its batch from readers. With `broker_id` only the damage
        of that broker counts.
        """
        return any(
            rot.is_hiding and rot.partition == partition and first <= rot.base_offset < end
            for rot in self._readable()
            if broker_id in (None, rot.broker_id)
        )

    def _readable(self) -> list[BitRot]:
        """Return each damage that a response may show: of an existing log, or of a moment ago."""
        self.note_deleted()
        present = [
            (rot, self._deleted_ms.get(broker_id, self.now_ms))
            for broker_id, rot in self._rots.items()
        ]
        return [
            rot for rot, at_ms in (*present, *self._over) if self.now_ms - at_ms < _IN_FLIGHT_MS
        ]

    def begin(self, node: SimulatedBroker, draw: int) -> BitRot | None:
        """Damage a batch of a broker; `draw` is a number that determines every choice.

        Return None if the broker has no committed batch of which another ISR member has an intact
        copy.
        """
        broker = node.broker
        if broker is None or self.damage_of(node.broker_id) is not None:
            return None
        partitions = broker.storage.replica_manager.partitions
        candidates = [key for key in sorted(partitions) if self._may_rot(node.broker_id, key)]
        if not candidates:
            return None
        key = candidates[draw % len(candidates)]
        with node.disk.files.suspend_failures():
            found = _committed_batches(partitions[key], self._histories[key])
        if not found:
            return None
        # In half of the cases one of the last batches, which recovery, followers and consumers
        # read.
        place = draw // 7 % (min(_LAST_COUNT, len(found)) if draw % 2 else len(found))
        path, position, size_bytes, base_offset = found[-1 - place]
        at = _LENGTH.start + draw // 3 % (size_bytes - _LENGTH.start)
        at += len(_UNCHECKED) if at in _UNCHECKED else 0
        if node.broker_id in self._rots:
            # Of a log that was deleted.
            self.end(self._rots[node.broker_id])
        node.disk.files.flip(path, position + at, 1 << draw % 8)
        rot = self._rots[node.broker_id] = BitRot(
            node.broker_id,
            key,
            base_offset,
            is_misplacing=at in _LENGTH,
            is_hiding=at in _LAST_OFFSET_DELTA,
        )
        return rot

    def end(self, rot: BitRot) -> None:
        """Repair a broker's disk: reads return the bytes that were written."""
        self.damage_of(rot.broker_id)
        if self._rots.get(rot.broker_id) == rot:
            self._nodes[rot.broker_id].disk.files.flip_back()
            self._end(rot)

    def _end(self, rot: BitRot) -> None:
        """Record the end of a damage, and the partition's leader epoch at that time.

        A damage whose log was deleted ended then, for a replica that exists no more.
        """
        del self._rots[rot.broker_id]
        deleted_ms = self._deleted_ms.pop(rot.broker_id, None)
        epoch = self._epoch_of(rot.partition)
        if epoch is not None and deleted_ms is None:
            self._ended_in[rot.broker_id, rot.partition] = epoch
        self._over.append((rot, self.now_ms if deleted_ms is None else deleted_ms))

    def _may_rot(self, broker_id: int, key: TopicPartition) -> bool:
        """Return True if a replica may be damaged: another ISR member must have every record.

        Otherwise the fault could lose acknowledged records, which no broker could prevent.
        """
        history = self._histories.get(key)
        if history is None or history.state is None or history.is_doomed or history.excuse:
            return False
        isr = history.state.isr
        others = [other for other in isr if other != broker_id and other not in history.lossy]
        is_alone = not any(self.is_damaged(other, key) for other in self._nodes)
        return broker_id in isr and broker_id not in history.lossy and bool(others) and is_alone


def _committed_batches(partition: Partition, history: History) -> list[tuple[str, int, int, int]]:
    """Return (path, position, size, base offset) of each committed batch of a replica, in order."""
    found = []
    for segment in partition.log.segments:
        data = bytes(segment.file.read_at(0, segment.size_bytes))
        position = 0
        for batch in batches(data):
            if batch.base_offset >= history.start and batch.last_offset < history.committed_end:
                found.append(
                    (segment.path(FileKind.LOG), position, batch.size_bytes, batch.base_offset)
                )
            position += batch.size_bytes
    return found


def whole_part(content: bytes) -> tuple[bytes, int | None]:
    """Return the batches before the first damaged one, and the damaged batch's base offset.

    The offset is None if no batch is damaged.
    """
    size = 0
    for batch in batches(content):
        if not is_whole(batch):
            return content[:size], batch.base_offset
        size += batch.size_bytes
    return content[:size], None


def is_whole(batch: BatchView) -> bool:
    """Return True if the checksum of a batch is correct."""
    return batch.computed_crc() == batch.crc
