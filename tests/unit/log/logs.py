"""Small logs in memory for the tests of this folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.host.memory import MemoryFiles
from engine.host.ports import Files
from engine.log.batch_scan import scan_batches
from engine.log.directory.leader_epoch_checkpoint import EpochStart, encode_leader_epochs
from engine.log.directory.log_dir import PartitionFolder, find_log_dir
from engine.log.index_builder import IndexBuilder
from engine.naming import FileKind, SegmentFileName
from engine.records.builder import BatchBuilder, BatchSettings
from engine.records.control import ControlType, EndTransactionMarker, build_marker

DIR = "/data/t-0"
TIME_MS = 1_700_000_000_000


def batch(
    base_offset: int, count: int = 1, *, at_ms: int | None = None, epoch: int = 0, **more: Any
) -> bytes:
    """Return a batch of `count` records with 10 bytes of value each."""
    settings = BatchSettings(base_offset=base_offset, leader_epoch=epoch, **more)
    builder = BatchBuilder(settings)
    for number in range(count):
        time_ms = TIME_MS + base_offset + number if at_ms is None else at_ms
        builder.append(time_ms, b"k%d" % number, b"v" * 10)
    return bytes(builder.build())


def data_of(producer_id: int, base_offset: int, count: int = 1) -> bytes:
    """Return a batch of a transaction."""
    return batch(
        base_offset,
        count,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )


def marker_of(producer_id: int, offset: int, kind: ControlType = ControlType.ABORT) -> bytes:
    """Return the end of a transaction."""
    return bytes(
        build_marker(
            EndTransactionMarker(kind, 0),
            producer_id=producer_id,
            producer_epoch=0,
            timestamp_ms=TIME_MS + offset,
            base_offset=offset,
            leader_epoch=0,
        )
    )


def name_of(base_offset: int, kind: FileKind = FileKind.LOG) -> str:
    return SegmentFileName(base_offset, kind).name


def put(files: Files, name: str, content: bytes, path: str = DIR) -> None:
    file = files.open(f"{path}/{name}", write=True, create=True)
    file.truncate(0)
    file.append([content])
    file.close()


def get(files: Files, name: str, path: str = DIR) -> bytes:
    return files.read_bytes(f"{path}/{name}")


def put_segment(
    files: Files, base_offset: int, log: bytes, *, path: str = DIR, interval_bytes: int = 100
) -> None:
    """Write a closed segment with right indexes."""
    put(files, name_of(base_offset), log, path)
    builder = IndexBuilder(base_offset, interval_bytes, skips_disorder=True)
    file = files.open(f"{path}/{name_of(base_offset)}")
    for position, found in scan_batches(file):
        builder.add_batch(position, found.last_offset, found.max_timestamp_ms)
    builder.finish()
    put(files, name_of(base_offset, FileKind.INDEX), builder.index.encode(), path)
    put(files, name_of(base_offset, FileKind.TIMEINDEX), builder.time_index.encode(), path)


def log_of(
    segments: Mapping[int, bytes],
    *,
    epochs: tuple[EpochStart, ...] = (EpochStart(0, 0),),
    interval_bytes: int = 100,
) -> MemoryFiles:
    """Return a disk with one healthy partition, all of it durable."""
    files = MemoryFiles()
    files.make_dir(DIR)
    for base_offset, log in segments.items():
        put_segment(files, base_offset, log, interval_bytes=interval_bytes)
    put(files, "leader-epoch-checkpoint", encode_leader_epochs(epochs))
    files.sync_all()
    return files


def partition_of(files: Files, path: str = DIR) -> PartitionFolder:
    return find_log_dir(files, path).partitions[0]
