"""Compares two copies of one partition: where do they first differ?

```
left    10 ─────────────────── 90        start and end offsets may differ: retention and lag
right         30 ──────────────────110
              └─ compared ────┘          batch by batch: offsets, leader epoch, every other byte
```

Replicas hold the same batches, byte for byte, until the cleaner has been over one of them (R1). A
difference is told by what it means:

| kind | |
|---|---|
| epoch | the same offsets by leaders of different epochs: the copies diverged there |
| bytes | the same offsets and epoch, other bytes: one copy is damaged (R1 broken) |
| bounds | other batch bounds: diverged, or one copy was compacted |
| missing | offsets that only the other copy has: compacted, or lost |
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from engine.errors import CorruptRecord
from engine.host.ports import Files
from engine.log.batch_scan import scan_batches
from engine.log.segment_files import PartitionFiles
from engine.naming import FileKind
from engine.records.crc import crc32c


class BatchPrint(NamedTuple):
    """What tells one batch from another, and where it is; offsets are both inside."""

    base_offset: int
    last_offset: int
    leader_epoch: int
    size_bytes: int
    checksum: int
    path: str
    position: int
    is_crc_valid: bool


class Difference(NamedTuple):
    """The first place where two copies differ, and their batches there."""

    kind: str
    offset: int
    left: BatchPrint
    right: BatchPrint


class Comparison(NamedTuple):
    """Two copies: their offsets (end exclusive), how many batches agree, and where they stop to.

    `damage` names what could not be read; the comparison goes up to there.
    """

    left_offsets: tuple[int, int] | None
    right_offsets: tuple[int, int] | None
    equal_batches: int
    difference: Difference | None
    damage: tuple[str, ...] = ()

    @property
    def is_same(self) -> bool:
        """Tell whether nothing differs where both copies have something."""
        return self.difference is None and not self.damage


def compare_partitions(files: Files, left: PartitionFiles, right: PartitionFiles) -> Comparison:
    """Return where two copies of a partition first differ."""
    sides = left_side, right_side = _Side(files, left), _Side(files, right)
    difference = None
    equal = 0
    for left_batch, right_batch in _pairs(*sides):
        kind = _kind(left_batch, right_batch)
        if kind:
            offset = min(left_batch.base_offset, right_batch.base_offset)
            difference = Difference(kind, offset, left_batch, right_batch)
            break
        equal += 1
    for side in sides:
        side.run_out()
    damage = tuple(side.damage for side in sides if side.damage)
    return Comparison(left_side.offsets, right_side.offsets, equal, difference, damage)


def _kind(left_batch: BatchPrint, right_batch: BatchPrint) -> str | None:
    """Return how two batches at one place differ, None if they do not."""
    if (
        left_batch.last_offset < right_batch.base_offset
        or right_batch.last_offset < left_batch.base_offset
    ):
        return "missing"
    if (
        left_batch.base_offset != right_batch.base_offset
        or left_batch.last_offset != right_batch.last_offset
    ):
        return "bounds"
    if left_batch.leader_epoch != right_batch.leader_epoch:
        return "epoch"
    if (left_batch.size_bytes, left_batch.checksum) != (
        right_batch.size_bytes,
        right_batch.checksum,
    ):
        return "bytes"
    return None


class _Side:
    """One copy's batches, in order, as far as they can be read."""

    def __init__(self, files: Files, partition: PartitionFiles) -> None:
        self.damage: str | None = None
        self.offsets: tuple[int, int] | None = None
        self._batches = self._scan(files, partition)
        self.head = next(self._batches, None)

    def advance(self) -> None:
        """Go to the next batch."""
        self.head = next(self._batches, None)

    def run_out(self) -> None:
        """Read the rest, for the end offset."""
        while self.head is not None:
            self.advance()

    def _scan(self, files: Files, partition: PartitionFiles) -> Iterator[BatchPrint]:
        for segment in partition.segments:
            path = partition.segment_path(segment, FileKind.LOG)
            file = files.open(path)
            try:
                scan = scan_batches(file)
                for position, batch in scan:
                    batch_print = BatchPrint(
                        batch.base_offset,
                        batch.last_offset,
                        batch.leader_epoch,
                        batch.size_bytes,
                        # Whatever the stored checksum says, and the epoch apart.
                        crc32c(batch.raw[16:]),
                        path,
                        position,
                        batch.is_crc_valid(),
                    )
                    start, _ = self.offsets or (batch_print.base_offset, None)
                    self.offsets = (start, batch.next_offset)
                    yield batch_print
                if scan.trailing_bytes and segment is not partition.segments[-1]:
                    self.damage = f"{path} at position {scan.position}: no batch"
                    return
            except CorruptRecord as error:
                self.damage = str(error)
                return
            finally:
                file.close()


def _pairs(left: _Side, right: _Side) -> Iterator[tuple[BatchPrint, BatchPrint]]:
    """Yield the batches of both at the same place, from where both have begun to the first end."""
    if left.head is None or right.head is None:
        return
    start = max(left.head.base_offset, right.head.base_offset)
    for side in (left, right):
        while side.head is not None and side.head.last_offset < start:
            side.advance()
    while left.head is not None and right.head is not None:
        yield left.head, right.head
        left.advance()
        right.advance()
