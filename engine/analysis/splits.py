"""Plan the reads of tasks: segments are cut at batch starts, and small pieces are grouped.

1. After each split size a segment is cut at the next position in its offset index at which a whole
   batch starts. Entries are verified; a wrong one is skipped. Without a right entry, or without an
   index, the segment is not cut.
2. A batch belongs to the piece in which it starts.
3. The active segment is read only up to its size at the time of planning.
4. Small pieces are grouped in order, up to the split size; opening a file counts as
   FILE_OPEN_WEIGHT_BYTES of it.
"""

from __future__ import annotations

import json
import posixpath
import re
from bisect import bisect_left
from collections.abc import Iterable
from contextlib import closing, suppress
from itertools import pairwise
from typing import NamedTuple

from engine.analysis.problem import Problem
from engine.analysis.replicas import broker_of, check_replicas, choose_replica
from engine.errors import EngineError, StorageError
from engine.host.ports import File, Files
from engine.limits import FILE_OPEN_WEIGHT_BYTES, SPLIT_BYTES, SPLIT_SEGMENTS_MAX, TASK_BYTES_MAX
from engine.log.batch_search import is_whole, plausible_size
from engine.log.directory import leader_epoch_checkpoint
from engine.log.directory.leader_epoch_checkpoint import read_leader_epochs
from engine.log.directory.log_dir import (
    LogDir,
    PartitionFolder,
    find_log_dir,
)
from engine.log.directory.offset_checkpoint import LOG_STARTS
from engine.log.offset_index import read_offset_index
from engine.log.segment_files import SegmentFiles
from engine.log.time_index import read_time_index
from engine.model import TopicPartition
from engine.naming import DirectoryKind, FileKind
from engine.records.batch_header import MAGIC, MAGIC_AT, PROLOGUE_BYTES, read_offset_and_length
from engine.records.view import batch_at


class Split(NamedTuple):
    """A piece of one segment: bytes [start, end) of its log.

    `log_start_offset` (inclusive) and `end_offset` (exclusive, None without a limit) bound the
    records that are read: the partition's log start offset and, with read_committed, its last
    stable offset, or a narrower range. `is_last` is True if the piece ends at the segment's end: an
    incomplete batch there is a torn tail. `aborted` are (producer id, first, last offset) of ranges
    that read_committed hides.

    For the check of base offsets and leader epochs: `next_base` is the base offset of the next
    segment, None in the last segment; `is_compacted` is True if the topic is compacted by its
    configuration; `epochs` are (epoch, first offset) of the partition's epoch checkpoint.
    `reached_offset`: the checkpoints of the log directory show that the log once reached this
    offset. `indexed_offset`: the last offset in the segment's indexes, set only in the last split
    of a closed segment of a compacted log. `is_spare` is True if another replica of the partition
    is read, and this one is only compared with it.
    """

    path: str
    dir: str
    topic: str
    partition: int
    base_offset: int
    start: int
    end: int
    is_last: bool
    log_start_offset: int
    aborted: tuple[tuple[int, int, int], ...] = ()
    end_offset: int | None = None
    next_base: int | None = None
    is_compacted: bool = False
    epochs: tuple[tuple[int, int], ...] = ()
    reached_offset: int | None = None
    indexed_offset: int | None = None
    broker_id: int | None = None
    is_spare: bool = False


class Selection(NamedTuple):
    """The topics and partitions to read; None means all."""

    topics: re.Pattern[str] | None = None
    partitions: frozenset[int] | None = None

    def takes(self, partition: PartitionFolder) -> bool:
        """Return True if a partition is selected, and its folder is that of a live replica.

        Folders of deleted topics and of future replicas are not read.
        """
        directory = partition.directory
        if directory is None or directory.kind is not DirectoryKind.LIVE:
            return False
        if self.topics is not None and not self.topics.fullmatch(directory.topic):
            return False
        return self.partitions is None or directory.partition in self.partitions


class NothingSelected(EngineError):
    """No partition was found, or the selection excludes all."""

    def __init__(self, paths: list[str], count: int) -> None:
        of_all = f": none of its {count} is selected" if count else ""
        super().__init__(f"no partition to read in {', '.join(paths)}{of_all}")
        self.paths = paths
        if count:
            self.hint = "--topics is a regular expression for whole names, --partitions numbers"


class ReadingPlan(NamedTuple):
    """The pieces of all selected segments, by partition, with rising offsets.

    With several brokers, `splits` are of one replica of each partition, `spares` of the other
    replicas, and `problems` are the differences between replicas.
    """

    splits: list[Split]
    spares: list[Split]
    problems: list[Problem]


#: An empty plan, for statements about views, which read no log.
NOTHING_TO_READ = ReadingPlan([], [], [])


def plan_splits(
    files: Files, paths: list[str], selection: Selection, split_bytes: int = SPLIT_BYTES
) -> list[Split]:
    """Return the splits of all selected segments; raises the errors of `plan_reading`."""
    return plan_reading(files, paths, selection, split_bytes).splits


def plan_reading(
    files: Files, paths: list[str], selection: Selection, split_bytes: int = SPLIT_BYTES
) -> ReadingPlan:
    """Return what to read of log directories: the splits of one replica of each partition.

    A split is a range of bytes of a segment. Splits of other replicas are `spares`, and differences
    between replicas are problems. Raises PartitionTwice, NothingSelected, and NoLogDirectory for a
    path without Kafka data.
    """
    copies: dict[TopicPartition, list[tuple[LogDir, PartitionFolder]]] = {}
    found = 0
    for path in paths:
        log_dir = find_log_dir(files, path)
        found += len(log_dir.partitions)
        for partition in log_dir.partitions:
            if selection.takes(partition) and partition.topic_partition is not None:
                copies.setdefault(partition.topic_partition, []).append((log_dir, partition))
    if not copies:
        raise NothingSelected(paths, found)
    plan = ReadingPlan([], [], [])
    for place, of_partition in copies.items():
        read, others = of_partition[0], of_partition[:0]
        if len(of_partition) > 1:
            check_replicas(place, of_partition)
            chosen = choose_replica(files, of_partition)
            read = (chosen.replica.log_dir, chosen.replica.folder)
            others = [(other.log_dir, other.folder) for other in chosen.others]
            plan.problems.extend(chosen.problems)
        plan.splits.extend(_split_partition(files, *read, split_bytes))
        for other in others:
            spares = _split_partition(files, *other, split_bytes)
            plan.spares.extend(split._replace(is_spare=True) for split in spares)
    return plan


def _split_partition(
    files: Files, log_dir: LogDir, partition: PartitionFolder, split_bytes: int
) -> Iterable[Split]:
    """Yield the splits of one partition, segment by segment in the order of offsets."""
    assert partition.directory is not None
    place = partition.directory.topic_partition
    segments = partition.files.segments
    is_compacted = log_dir.state.is_compacted(place)
    # The fields that are equal in all pieces of the partition.
    common = Split(
        path="",
        dir=posixpath.dirname(partition.files.path) or ".",
        topic=place.topic,
        partition=place.partition,
        base_offset=0,
        start=0,
        end=0,
        is_last=True,
        log_start_offset=log_dir.state.offset(LOG_STARTS, place) or 0,
        is_compacted=is_compacted,
        epochs=_read_epochs(files, partition),
        reached_offset=log_dir.state.reached_offset(place),
        broker_id=broker_of(log_dir),
    )
    following = [segment.base_offset for segment in segments[1:]]
    for segment, next_base in zip(segments, [*following, None], strict=True):
        indexed = None
        if is_compacted and next_base is not None:
            indexed = _read_indexed_offset(files, partition, segment)
        whole = common._replace(
            path=partition.files.segment_path(segment, FileKind.LOG),
            base_offset=segment.base_offset,
            end=segment.log_bytes,
            next_base=next_base,
            indexed_offset=indexed,
        )
        cuts = _find_split_positions(files, partition, segment, split_bytes)
        yield from _cut_split(whole, cuts) if cuts else (whole,)


def _cut_split(whole: Split, cuts: list[int]) -> Iterable[Split]:
    """Yield the pieces of a segment's split that is cut at these positions."""
    for start, end in pairwise([0, *cuts, whole.end]):
        is_last = end == whole.end
        yield whole._replace(
            start=start,
            end=end,
            is_last=is_last,
            indexed_offset=whole.indexed_offset if is_last else None,
        )


def _read_indexed_offset(
    files: Files, partition: PartitionFolder, segment: SegmentFiles
) -> int | None:
    """Return the largest offset in a segment's indexes, None if neither index is valid."""
    base_offset = segment.base_offset
    found: list[int] = []
    with suppress(StorageError):
        path = partition.files.segment_path(segment, FileKind.INDEX)
        index = read_offset_index(files, path, base_offset)
        found += [index.last_offset] if len(index) and index.find_problem() is None else []
    with suppress(StorageError):
        path = partition.files.segment_path(segment, FileKind.TIMEINDEX)
        times = read_time_index(files, path, base_offset)
        found += [times.last_entry.offset] if len(times) and times.find_problem() is None else []
    return max(found, default=None)


def _read_epochs(files: Files, partition: PartitionFolder) -> tuple[tuple[int, int], ...]:
    """Return (epoch, first offset) of the epoch checkpoint; empty if it cannot be read."""
    path = partition.files.file_path(leader_epoch_checkpoint.FILE_NAME)
    try:
        return tuple((e.epoch, e.start_offset) for e in read_leader_epochs(files, path))
    except StorageError:
        return ()


def _find_split_positions(
    files: Files, partition: PartitionFolder, segment: SegmentFiles, split_bytes: int
) -> list[int]:
    """Return the byte positions at which to split a segment, where batches start.

    They are at least `split_bytes` apart. Empty for a small segment, or one without a readable
    offset index.
    """
    if segment.log_bytes <= split_bytes or FileKind.INDEX not in segment.sizes:
        return []
    path = partition.files.segment_path(segment, FileKind.INDEX)
    try:
        index = read_offset_index(files, path, segment.base_offset)
    except StorageError:
        return []
    cuts: list[int] = []
    number, end = 0, segment.log_bytes
    with closing(files.open(partition.files.segment_path(segment, FileKind.LOG))) as file:
        while True:
            least = (cuts[-1] if cuts else 0) + split_bytes
            number = bisect_left(index.positions, least, number)
            if number >= len(index):
                return cuts
            before = index.entry(number - 1).offset if number else index.base_offset - 1
            offset, position = index.entry(number)
            # A wrong index may go back.
            is_between = least <= position < end
            if is_between and starts_batch(file, position, end, before, offset):
                cuts.append(position)
            number += 1


def starts_batch(
    file: File, position: int, end: int, before: int, offset: int, *, is_dense: bool = False
) -> bool:
    """Return True if a whole batch starts at an index entry's position and fits the entry.

    `before` and `offset` are the offsets of the previous and this entry. No checksum covers the
    base offset, so that must be between them, and the next batch must not start below the batch's
    end; with `is_dense`, exactly at its end.
    """
    size = plausible_size(file, position, end)
    if not size or not is_whole(file, position, size):
        return False
    batch = batch_at(memoryview(file.read_at(position, size)), 0)
    first = batch.base_offset if batch.magic >= MAGIC else batch.last_offset
    if not before < first <= batch.last_offset <= offset:
        return False
    header = file.read_at(position + size, PROLOGUE_BYTES)
    if len(header) < PROLOGUE_BYTES or header[MAGIC_AT] < MAGIC:
        return True
    following, _ = read_offset_and_length(header, 0)
    return bool(following == batch.next_offset or (following > offset and not is_dense))


def pack_splits(
    splits: list[Split], parallelism: int, split_bytes: int = SPLIT_BYTES
) -> list[list[Split]]:
    """Return the splits in groups of about `split_bytes`, one for each task.

    Groups are larger, up to TASK_BYTES_MAX, for large inputs, and smaller for little data, which is
    distributed over `parallelism` tasks.
    """
    total = sum(_weight(split) for split in splits)
    target = min(max(split_bytes, total // (3 * max(parallelism, 1))), TASK_BYTES_MAX)
    if total <= split_bytes * parallelism:
        # Little data is spread over all cores rather than read by one.
        target = max(total // max(parallelism, 1), 1)
    groups: list[list[Split]] = [[]]
    size = 0
    for split in splits:
        if groups[-1] and (size >= target or len(groups[-1]) >= SPLIT_SEGMENTS_MAX):
            groups.append([])
            size = 0
        groups[-1].append(split)
        size += _weight(split)
    return groups


def whole_segments(splits: list[Split]) -> list[Split]:
    """Return one split for each complete segment, for views of segments."""
    ends = {split.path: split.end for split in splits if split.is_last}
    return [
        split._replace(end=ends[split.path], is_last=True) for split in splits if split.start == 0
    ]


def _weight(split: Split) -> int:
    """Return the cost of reading a split: its bytes, plus a constant for opening the file."""
    return split.end - split.start + FILE_OPEN_WEIGHT_BYTES


def encode_splits(splits: Iterable[Split]) -> str:
    """Return splits as JSON, in which Spark tasks get them."""
    return json.dumps(list(splits))


def decode_splits(text: str) -> list[Split]:
    """Return the splits that `encode_splits` made the text from."""
    return [Split(*fields) for fields in json.loads(text)]
