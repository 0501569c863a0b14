"""A summary of a partition directory: its size and range of offsets.

Offsets are from the checkpoints if these go further than the names of segments; the end of the log
is read from its last segment.
"""

from __future__ import annotations

from typing import NamedTuple

from engine.errors import CorruptFile, StorageError
from engine.host.ports import Files
from engine.log.directory import offset_checkpoint, partition_metadata
from engine.log.directory.log_dir import LogDirState, PartitionFolder
from engine.log.directory.partition_metadata import read_partition_metadata
from engine.log.offset_index import OffsetIndex, read_offset_index
from engine.log.segment_files import SegmentFiles
from engine.log.segment_lookup import find_end
from engine.naming import FileKind


class PartitionSummary(NamedTuple):
    """A partition as a row; None for what is unknown. `kind` is from the directory's name."""

    name: str
    kind: str
    topic: str | None
    partition: int | None
    topic_id: str | None
    segments: int
    size_bytes: int
    log_start_offset: int | None
    log_end_offset: int | None
    high_watermark: int | None
    recovery_point: int | None
    leftovers: int
    path: str


def summarize(files: Files, partition: PartitionFolder, state: LogDirState) -> PartitionSummary:
    """Return a partition's sizes and offsets; a value that no readable file gives is None."""
    layout = partition.files
    key = partition.topic_partition
    directory = partition.directory
    first = layout.segments[0].base_offset if layout.segments else None
    start = state.offset(offset_checkpoint.LOG_STARTS, key)
    if first is not None:
        start = max(start or 0, first)
    return PartitionSummary(
        name=partition.name,
        kind=directory.kind.name.lower() if directory else "copy",
        topic=key.topic if key else None,
        partition=key.partition if key else None,
        topic_id=_read_topic_id(files, partition),
        segments=len(layout.segments),
        size_bytes=layout.log_bytes,
        log_start_offset=start,
        log_end_offset=_read_end_offset(files, partition),
        high_watermark=state.offset(offset_checkpoint.HIGH_WATERMARKS, key),
        recovery_point=state.offset(offset_checkpoint.RECOVERY_POINTS, key),
        leftovers=len(layout.leftovers),
        path=layout.path,
    )


def _read_topic_id(files: Files, partition: PartitionFolder) -> str | None:
    """Return the topic id in partition.metadata, None if it is missing or corrupt."""
    name = partition_metadata.FILE_NAME
    if name not in partition.files.side_files:
        return None
    try:
        return read_partition_metadata(files, partition.files.file_path(name)).topic_id
    except CorruptFile:
        return None


def _read_end_offset(files: Files, partition: PartitionFolder) -> int | None:
    """Return the log end offset (exclusive), None without segments."""
    if not partition.files.segments:
        return None
    last = partition.files.segments[-1]
    file = files.open(partition.files.segment_path(last, FileKind.LOG))
    try:
        return find_end(file, _read_index(files, partition, last)).next_offset
    finally:
        file.close()


def _read_index(files: Files, partition: PartitionFolder, segment: SegmentFiles) -> OffsetIndex:
    """Return a segment's offset index, an empty one if it is missing or unreadable."""
    path = partition.files.segment_path(segment, FileKind.INDEX)
    if FileKind.INDEX not in segment.sizes:
        return OffsetIndex(segment.base_offset)
    try:
        return read_offset_index(files, path, segment.base_offset)
    except StorageError:
        return OffsetIndex(segment.base_offset)
