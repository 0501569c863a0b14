"""Compares two copies of a partition and finds the first difference.

```
left    10 ─────────────────── 90        start and end offsets may differ: retention and lag
right         30 ──────────────────110
              └─ compared ────┘          batch by batch: offsets, leader epoch, every other byte
```

Replicas contain the same batches, byte for byte, until the cleaner has compacted one of them (R1).
The kind of a difference tells what it means:

| kind | meaning |
|---|---|
| epoch | the same offsets by leaders of different epochs: the copies diverged there |
| bytes | the same offsets and epoch, other bytes: one copy is damaged (R1 violated) |
| bounds | other batch bounds: diverged, or one copy was compacted |
| missing | offsets that only one copy has: compacted, or lost |
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from engine.errors import CorruptRecord, StorageError
from engine.host.ports import Files
from engine.log.batch_scan import scan_batches
from engine.log.directory import partition_metadata
from engine.log.directory.log_dir import PartitionFolder
from engine.log.directory.partition_metadata import read_partition_metadata
from engine.log.segment_files import PartitionFiles
from engine.naming import FileKind
from engine.records.crc import crc32c


class BatchPrint(NamedTuple):
    """What identifies a batch, and its position; both offsets are inclusive."""

    base_offset: int
    last_offset: int
    leader_epoch: int
    size_bytes: int
    checksum: int
    path: str
    position: int
    is_crc_valid: bool


class Difference(NamedTuple):
    """The first place at which two copies differ, with their batches there."""

    kind: str
    offset: int
    left: BatchPrint
    right: BatchPrint


class Comparison(NamedTuple):
    """Two copies: their offsets (end exclusive), the number of equal batches, and the difference.

    `damage` names what could not be read; the comparison ends there.
    """

    left_offsets: tuple[int, int] | None
    right_offsets: tuple[int, int] | None
    equal_batches: int
    difference: Difference | None
    damage: tuple[str, ...] = ()

    @property
    def is_same(self) -> bool:
        """Return True if the copies are equal in the offsets that both have."""
        return self.difference is None and not self.damage


def compare_partitions(files: Files, left: PartitionFiles, right: PartitionFiles) -> Comparison:
    """Compare two copies of a partition batch by batch, up to their first difference.

    Both are then read to the end, for their end offsets and for damage.
    """
    sides = left_side, right_side = _Side(files, left), _Side(files, right)
    difference = None
    equal = 0
    for left_batch, right_batch in _aligned_batches(*sides):
        kind = _difference_kind(left_batch, right_batch)
        if kind:
            offset = min(left_batch.base_offset, right_batch.base_offset)
            difference = Difference(kind, offset, left_batch, right_batch)
            break
        equal += 1
    for side, other in (sides, sides[::-1]):
        side.read_to_end(other.offsets)
    damage = tuple(side.damage for side in sides if side.damage)
    return Comparison(left_side.offsets, right_side.offsets, equal, difference, damage)


def unlike_reason(files: Files, left: PartitionFolder, right: PartitionFolder) -> str | None:
    """Return why two directories cannot be copies of one partition, None if they may be.

    Names and topic ids are compared; a missing name or an unreadable `partition.metadata` is no
    reason.
    """
    names = [side.topic_partition for side in (left, right)]
    if None not in names and names[0] != names[1]:
        return f"{names[0]} and {names[1]} are different partitions"
    ids = []
    for side in (left, right):
        try:
            path = side.files.file_path(partition_metadata.FILE_NAME)
            ids.append(read_partition_metadata(files, path).topic_id)
        except StorageError:
            return None
    if ids[0] != ids[1]:
        return f"their topic ids are {ids[0]} and {ids[1]}"
    return None


def _difference_kind(left_batch: BatchPrint, right_batch: BatchPrint) -> str | None:
    """Return how two batches differ, None if they are equal.

    "missing": their offset ranges do not overlap; "bounds": the ranges differ; "epoch": the leader
    epochs differ; "bytes": size or content differ.
    """
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
    """The batches of one copy, in order, as far as they can be read."""

    def __init__(self, files: Files, partition: PartitionFiles) -> None:
        """Read the first batch."""
        #: Why the copy cannot be read further, None while it can.
        self.damage: str | None = None
        #: First offset, and offset after the last batch so far. None without a batch.
        self.offsets: tuple[int, int] | None = None
        self._batches = self._scan(files, partition)
        #: The next batch to compare, None after the last one.
        self.head = next(self._batches, None)

    def advance(self) -> None:
        """Read the next batch of this copy into `head`, None after the last one."""
        self.head = next(self._batches, None)

    def read_to_end(self, other: tuple[int, int] | None) -> None:
        """Read the remaining batches, for the end offset and for damage in them.

        `other` is the (start, end) of the other copy, None if it has no record. Damage that is
        first found at or after its end is marked as behind it: it hides no difference.
        """
        was_whole = self.damage is None
        wrong: BatchPrint | None = None
        while self.head is not None:
            if wrong is None and not self.head.is_crc_valid:
                wrong = self.head
            self.advance()
        if wrong is not None:
            place = f"{wrong.path} at position {wrong.position}"
            self.damage = f"{place}: wrong checksum at offset {wrong.base_offset}"
        end = other[1] if other else 0
        at = wrong.base_offset if wrong else self.offsets[1] if self.offsets else 0
        if self.damage and was_whole and at >= end:
            self.damage += f", after the end of the other copy, {end}"

    def _scan(self, files: Files, partition: PartitionFiles) -> Iterator[BatchPrint]:
        """Yield each batch's BatchPrint; stop at damage, which `damage` then describes.

        The compared checksum covers neither the leader epoch nor the stored CRC.
        """
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
                        # Covers neither the stored checksum nor the epoch.
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


def _aligned_batches(left: _Side, right: _Side) -> Iterator[tuple[BatchPrint, BatchPrint]]:
    """Yield pairs of batches, one of each copy, until one copy ends.

    The batches below the larger of the two log start offsets are skipped first. The pairs are by
    number: the caller stops at the first pair that differs.
    """
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
