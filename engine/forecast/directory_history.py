"""Histories of the logs in a directory, by names, sizes and indexes.

Records are read only of the last segment, after its last index entry, and of the first batch.

| what | source |
|---|---|
| newest time of a segment | the last entry of its .timeindex; without one, the mtime of its .log |
| the same of the last segment | also the batches after its last index entry |
| oldest time of a log | its first batch |
| high watermark | the checkpoint; without one the log's end |

Source: Kafka's LogSegment.largestTimestamp, UnifiedLog.deletableSegments.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from engine.errors import CorruptRecord, StorageError
from engine.forecast.log_history import LogHistory
from engine.host.ports import Files
from engine.log.batch_scan import scan_batches
from engine.log.directory import offset_checkpoint
from engine.log.directory.log_dir import LogDir, PartitionFolder
from engine.log.offset_index import OffsetIndex, read_offset_index
from engine.log.retention import SegmentFacts
from engine.log.segment_files import SegmentFiles
from engine.log.segment_lookup import find_end
from engine.log.time_index import read_time_index
from engine.model import TopicPartition
from engine.naming import FileKind, SegmentFileName

_LAST_ENTRY: Final = struct.Struct(">qi")


def read_histories(files: Files, log_dir: LogDir) -> Iterator[LogHistory]:
    """Yield the history of each log of a directory, without future and deleted logs."""
    for folder in log_dir.partitions:
        log = read_history(files, folder, log_dir)
        if log is not None:
            yield log


def read_history(files: Files, folder: PartitionFolder, log_dir: LogDir) -> LogHistory | None:
    """Return the history of a partition's log, None for a future, deleted or empty one."""
    key = folder.topic_partition
    if key is None or not folder.is_kept or not folder.files.segments:
        return None
    return _history_of_segments(files, folder, key, log_dir)


def _history_of_segments(
    files: Files, folder: PartitionFolder, key: TopicPartition, at: LogDir
) -> LogHistory:
    """Return the history of a log: its segments with their newest times, and its offsets.

    Without a checkpoint the high watermark is the log's end.
    """
    segments = folder.files.segments
    last = segments[-1]
    log_end_offset, tail_timestamp_ms = _read_tail(files, folder, last)
    ends = [segment.base_offset for segment in segments[1:]] + [log_end_offset]
    facts = []
    for segment, end_offset in zip(segments, ends, strict=True):
        newest_ms = _read_newest_ms(files, folder, segment)
        if segment is last:
            newest_ms = max(newest_ms, tail_timestamp_ms)
        if newest_ms < 0:
            newest_ms = files.modified_ms(folder.files.segment_path(segment, FileKind.LOG))
        facts.append(
            SegmentFacts(
                segment.base_offset, end_offset, segment.log_bytes, newest_ms, segment is last
            )
        )
    start = at.state.offset(offset_checkpoint.LOG_STARTS, key)
    watermark = at.state.offset(offset_checkpoint.HIGH_WATERMARKS, key)
    return LogHistory(
        key,
        facts,
        max(start or 0, segments[0].base_offset),
        log_end_offset if watermark is None else watermark,
        _read_oldest_ms(files, folder),
    )


def _read_newest_ms(files: Files, folder: PartitionFolder, segment: SegmentFiles) -> int:
    """Return the timestamp of the last entry in a segment's time index, -1 without one."""
    size = segment.sizes.get(FileKind.TIMEINDEX, 0)
    path = folder.files.segment_path(segment, FileKind.TIMEINDEX)
    if size < _LAST_ENTRY.size:
        return -1
    file = files.open(path)
    try:
        timestamp_ms, relative_offset = _LAST_ENTRY.unpack(
            file.read_at(size - size % _LAST_ENTRY.size - _LAST_ENTRY.size, _LAST_ENTRY.size)
        )
    finally:
        file.close()
    if timestamp_ms or relative_offset:
        return int(timestamp_ms)
    # A preallocated file has zeros after its entries.
    try:
        index = read_time_index(files, path, segment.base_offset)
    except StorageError:
        return -1
    return index.last_entry.timestamp if len(index) else -1


def _read_tail(files: Files, folder: PartitionFolder, last: SegmentFiles) -> tuple[int, int]:
    """Return the log's end, and the newest timestamp after the last index entry, -1 without one."""
    index = OffsetIndex(last.base_offset)
    if FileKind.INDEX in last.sizes:
        try:
            path = folder.files.segment_path(last, FileKind.INDEX)
            index = read_offset_index(files, path, last.base_offset)
        except StorageError:
            index = OffsetIndex(last.base_offset)
    file = files.open(folder.files.segment_path(last, FileKind.LOG))
    newest_ms = -1
    try:
        end = find_end(file, index)
        start = index.entry(len(index) - 1).position if len(index) else 0
        for _, batch in scan_batches(file, start=start, end=end.good_bytes):
            newest_ms = max(newest_ms, batch.max_timestamp_ms)
    except CorruptRecord:
        return end.next_offset, newest_ms
    finally:
        file.close()
    return end.next_offset, newest_ms


def _read_oldest_ms(files: Files, folder: PartitionFolder) -> int | None:
    """Return the timestamp of the first batch in ms, None if it is unknown."""
    for segment in folder.files.segments:
        if segment.log_bytes:
            time_ms = first_timestamp_ms(files, folder, segment.base_offset)
            return time_ms if time_ms >= 0 else None
    return None


def first_timestamp_ms(files: Files, folder: PartitionFolder, base_offset: int) -> int:
    """Return the largest timestamp in the first batch of a segment, -1 without one."""
    name = SegmentFileName(base_offset, FileKind.LOG).name
    file = files.open(folder.files.file_path(name))
    try:
        for _, batch in scan_batches(file, start=0):
            return batch.max_timestamp_ms
    except CorruptRecord:
        return -1
    finally:
        file.close()
    return -1
