"""Make the rows of the views of files next to the logs: indexes, checkpoints, snapshots.

| view | a split stands for | a damaged file gives |
|---|---|---|
| indexes | a complete segment | a row without entry; wrong entries have a `problem` |
| checkpoints | a partition | a row without offset for each of its partitions |
| epochs, producers | a partition | a row without values |

A file that does not exist has no rows.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import NamedTuple

from engine.analysis.index_check import IndexCheck
from engine.analysis.splits import Split
from engine.analysis.table_values import Row, timestamp_of
from engine.errors import StorageError
from engine.host.ports import FileMissing, Files
from engine.log.directory import leader_epoch_checkpoint, offset_checkpoint
from engine.log.directory.leader_epoch_checkpoint import read_leader_epochs
from engine.log.directory.offset_checkpoint import read_offsets
from engine.log.offset_index import OffsetIndex, read_offset_index
from engine.log.producer_snapshot import read_producer_snapshot
from engine.log.segment_files import list_partition_files
from engine.log.time_index import TimeIndex, read_time_index
from engine.model import TopicPartition
from engine.naming import FileKind, SegmentFileName

#: The value of the column `kind` for each checkpoint file.
CHECKPOINT_KINDS = {
    offset_checkpoint.HIGH_WATERMARKS: "highWatermark",
    offset_checkpoint.RECOVERY_POINTS: "recoveryPoint",
    offset_checkpoint.LOG_STARTS: "logStartOffset",
    offset_checkpoint.CLEANER_POINTS: "cleanerOffset",
}


class _Checkpoint(NamedTuple):
    """The offsets of a checkpoint file, or the reason why it cannot be read."""

    kind: str
    offsets: dict[TopicPartition, int]
    problem: str | None


class CheckpointFiles:
    """The checkpoint files of log directories; each file is read once."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._by_dir: dict[str, list[_Checkpoint]] = {}

    def rows(self, split: Split) -> Iterator[Row]:
        """Yield the rows of the view `checkpoints`: the partition's offsets in checkpoint files.

        The files of a log directory are read once.
        """
        checkpoints = self._by_dir.get(split.dir)
        if checkpoints is None:
            checkpoints = self._by_dir[split.dir] = list(self._read_checkpoints(split.dir))
        place = TopicPartition(split.topic, split.partition)
        for checkpoint in checkpoints:
            offset = checkpoint.offsets.get(place)
            if offset is not None or checkpoint.problem is not None:
                yield {
                    "dir": split.dir,
                    "topic": split.topic,
                    "partition": split.partition,
                    "kind": checkpoint.kind,
                    "checkpointOffset": offset,
                    "problem": checkpoint.problem or _below_zero(offset),
                }

    def _read_checkpoints(self, log_dir: str) -> Iterator[_Checkpoint]:
        """Yield the checkpoint files of a log directory, an unreadable one with its problem."""
        for name, kind in CHECKPOINT_KINDS.items():
            try:
                yield _Checkpoint(kind, read_offsets(self._files, f"{log_dir}/{name}"), None)
            except FileMissing:
                continue
            except StorageError as error:
                yield _Checkpoint(kind, {}, str(error))


def _below_zero(offset: int | None) -> str | None:
    """Return the problem of a negative offset, None for a valid or missing offset."""
    return "an offset below 0" if offset is not None and offset < 0 else None


def epoch_rows(files: Files, split: Split) -> Iterator[Row]:
    """Yield the rows of the view `epochs`: the partition's leader-epoch-checkpoint.

    An entry that does not rise above the one before it has a `problem`.
    """
    place = {"dir": split.dir, "topic": split.topic, "partition": split.partition}
    path = f"{posixpath.dirname(split.path)}/{leader_epoch_checkpoint.FILE_NAME}"
    try:
        entries = read_leader_epochs(files, path)
    except FileMissing:
        return
    except StorageError as error:
        yield {**place, "problem": str(error)}
        return
    for number, entry in enumerate(entries):
        problem = None
        before = entries[number - 1] if number else None
        if before and (entry.epoch <= before.epoch or entry.start_offset <= before.start_offset):
            problem = f"does not rise above epoch {before.epoch} from {before.start_offset}"
        following = entries[number + 1 : number + 2]
        yield {
            **place,
            "leaderEpoch": entry.epoch,
            "startOffset": entry.start_offset,
            "endOffset": following[0].start_offset if following else None,
            "problem": problem,
        }


def producer_rows(files: Files, split: Split) -> Iterator[Row]:
    """Yield the rows of the view `producers`: entries of the partition's producer snapshots."""
    folder = posixpath.dirname(split.path)
    for offset in list_partition_files(files, folder).snapshots:
        path = f"{folder}/{SegmentFileName(offset, FileKind.SNAPSHOT).name}"
        place = {
            "topic": split.topic,
            "partition": split.partition,
            "snapshot": path,
            "snapshotOffset": offset,
        }
        try:
            entries = read_producer_snapshot(files, path)
        except FileMissing:
            continue
        except StorageError as error:
            yield {**place, "problem": str(error)}
            continue
        for entry in entries:
            start = entry.current_txn_first_offset
            yield {
                **place,
                "producerId": entry.producer_id,
                "producerEpoch": entry.producer_epoch,
                "firstSequence": entry.first_sequence,
                "lastSequence": entry.last_sequence,
                "lastOffset": entry.last_offset,
                "timestamp": timestamp_of(entry.timestamp),
                "timestampMs": entry.timestamp,
                "coordinatorEpoch": entry.coordinator_epoch,
                "transactionStart": None if start < 0 else start,
            }


def index_rows(files: Files, split: Split, *, checked: bool) -> Iterator[Row]:
    """Yield the rows of the view `indexes`: entries of a segment's offset and time index.

    With `checked` they are compared with the batches, for which the segment is read.
    """
    check = IndexCheck(files, split) if checked else None
    stem, base = split.path.removesuffix(FileKind.LOG.value), split.base_offset
    place = {
        "topic": split.topic,
        "partition": split.partition,
        "segment": split.path,
        "baseOffset": base,
    }
    for kind, suffix, read in (
        ("offset", FileKind.INDEX, read_offset_index),
        ("time", FileKind.TIMEINDEX, read_time_index),
    ):
        place["kind"] = kind
        try:
            index: OffsetIndex | TimeIndex = read(files, stem + suffix.value, base)
        except FileMissing:
            continue
        except StorageError as error:
            yield {**place, "problem": str(error)}
            continue
        yield from ({**place, **row} for row in _entry_rows(index, check))
        problem = _file_problem(index)
        if problem is not None:
            yield {**place, "problem": problem}


def _entry_rows(index: OffsetIndex | TimeIndex, check: IndexCheck | None) -> Iterator[Row]:
    """Yield a row for each index entry, with the problem that `check` finds in it."""
    if isinstance(index, OffsetIndex):
        problems = check.offset_problems(index) if check else [None] * len(index)
        for number, (entry, problem) in enumerate(zip(index, problems, strict=True)):
            yield {
                "entry": number,
                "relativeOffset": entry.offset - index.base_offset,
                "indexedOffset": entry.offset,
                "position": entry.position,
                "problem": problem,
            }
        return
    problems = check.time_problems(index) if check else [None] * len(index)
    for number, (moment, problem) in enumerate(zip(index, problems, strict=True)):
        yield {
            "entry": number,
            "relativeOffset": moment.offset - index.base_offset,
            "indexedOffset": moment.offset,
            "timestamp": timestamp_of(moment.timestamp),
            "timestampMs": moment.timestamp,
            "problem": problem,
        }


def _file_problem(index: OffsetIndex | TimeIndex) -> str | None:
    """Return what is wrong behind the last entry of an index file, None if nothing is."""
    if index.leftover_bytes:
        return f"{index.leftover_bytes} bytes after the last whole entry"
    if index.hides_entries:
        return "the space after the last entry is not zero"
    return None
