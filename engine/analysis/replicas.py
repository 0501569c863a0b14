"""Choose one replica of each partition if directories of several brokers are given.

1. The replica whose last batch has the highest leader epoch is read; among equals the one with the
   highest log end offset, then with the highest high watermark, then the first that was given.
2. Every other replica is compared with it: by leader epochs, as a follower does before it truncates
   (KIP-101), by its log end and start offsets, and by its checkpoints.

| difference | code |
|---|---|
| records that are missing in the replica to read | `diverged` |
| another log end or start offset, as replication and retention cause | `replica` |
| damage at the end of a replica | not noted here, but when the replica is read |

The batches themselves are compared by the view `replicas`, which has those of all replicas.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, suppress
from typing import NamedTuple

from engine.analysis.problem import Problem
from engine.errors import CorruptRecord, EngineError, StorageError
from engine.host.ports import Files
from engine.log.batch_scan import scan_batches
from engine.log.directory import leader_epoch_checkpoint
from engine.log.directory.leader_epoch_checkpoint import (
    EpochStart,
    end_offset_for,
    read_leader_epochs,
)
from engine.log.directory.log_dir import LogDir, PartitionFolder
from engine.log.directory.offset_checkpoint import HIGH_WATERMARKS
from engine.log.offset_index import read_offset_index
from engine.log.segment_files import SegmentFiles
from engine.model import TopicPartition
from engine.naming import FileKind


class PartitionTwice(EngineError):
    """The same partition is in two directories of one broker: its records would count twice."""

    hint = (
        "give one directory of each broker, with its meta.properties, which identifies the broker,"
        " or choose with --topics"
    )

    def __init__(self, partition: str, paths: list[str]) -> None:
        super().__init__(f"{partition} is in {' and in '.join(paths)}")
        self.partition = partition
        self.paths = paths


class ReplicaLog(NamedTuple):
    """A partition of one broker, with the leader epoch and end offset of its last good batch."""

    log_dir: LogDir
    folder: PartitionFolder
    leader_epoch: int
    log_end_offset: int

    @property
    def broker_id(self) -> int | None:
        """Return the id of the replica's broker, None if meta.properties is missing or lacks it."""
        return broker_of(self.log_dir)

    @property
    def log_start_offset(self) -> int:
        """Return the base offset of the replica's first segment, 0 without segments."""
        segments = self.folder.files.segments
        return segments[0].base_offset if segments else 0

    @property
    def high_watermark(self) -> int:
        """Return the replica's checkpointed high watermark, -1 without one."""
        place = self.folder.topic_partition
        found = self.log_dir.state.offset(HIGH_WATERMARKS, place)
        return -1 if found is None else found


class Chosen(NamedTuple):
    """The replica of a partition to read, the other replicas, and the differences between them."""

    replica: ReplicaLog
    others: list[ReplicaLog]
    problems: list[Problem]


def broker_of(log_dir: LogDir) -> int | None:
    """Return the id of a log directory's broker, None if meta.properties is missing or lacks it."""
    return log_dir.state.meta.node_id if log_dir.state.meta else None


def check_replicas(partition: TopicPartition, copies: list[tuple[LogDir, PartitionFolder]]) -> None:
    """Raise PartitionTwice unless the copies of a partition belong to different, known brokers.

    Copies of one broker cannot be replicas, so none may be chosen silently.
    """
    brokers = [broker_of(log_dir) for log_dir, _ in copies]
    if None in brokers or len({*brokers}) < len(brokers):
        raise PartitionTwice(str(partition), [folder.files.path for _, folder in copies])


def choose_replica(files: Files, copies: list[tuple[LogDir, PartitionFolder]]) -> Chosen:
    """Return the replica of a partition to read, with problems for how others differ from it.

    It is the one with the highest leader epoch, then the longest, as a leader would be.
    """
    replicas = [ReplicaLog(log_dir, folder, *_end_of(files, folder)) for log_dir, folder in copies]
    best = max(replicas, key=lambda r: (r.leader_epoch, r.log_end_offset, r.high_watermark))
    others = [replica for replica in replicas if replica is not best]
    return Chosen(best, others, [p for other in others for p in _differences(files, best, other)])


def _end_of(files: Files, folder: PartitionFolder) -> tuple[int, int]:
    """Return leader epoch and next offset of the log's last good batch.

    Without one, -1 and the base offset of the last segment.
    """
    for segment in reversed(folder.files.segments):
        epoch, end_offset = _end_of_segment(files, folder, segment)
        if end_offset is not None:
            return epoch, end_offset
    segments = folder.files.segments
    return -1, segments[-1].base_offset if segments else 0


def _end_of_segment(
    files: Files, folder: PartitionFolder, segment: SegmentFiles
) -> tuple[int, int | None]:
    """Return leader epoch and next offset of a segment's last good batch, (-1, None) without one.

    It scans from the last entry of the offset index, and if no batch starts there from the
    beginning.
    """
    start = 0
    with suppress(StorageError):
        path = folder.files.segment_path(segment, FileKind.INDEX)
        index = read_offset_index(files, path, segment.base_offset)
        start = index.entry(-1).position if len(index) else 0
    with closing(files.open(folder.files.segment_path(segment, FileKind.LOG))) as file:
        for position in (start, 0):
            epoch, end_offset = -1, None
            with suppress(CorruptRecord):
                for _, batch in scan_batches(file, start=position, end=segment.log_bytes):
                    if not batch.is_crc_valid():
                        break
                    epoch, end_offset = batch.leader_epoch, batch.next_offset
            if end_offset is not None and end_offset > segment.base_offset:
                return epoch, end_offset
    return -1, None


def _differences(files: Files, best: ReplicaLog, other: ReplicaLog) -> Iterator[Problem]:
    """Yield the differences of a replica from the one to read: diverged, shorter, other start."""
    kept = _common_end(
        _read_leader_epochs(files, best), best, _read_leader_epochs(files, other), other
    )
    if kept < other.log_end_offset:
        message = (
            f"offsets {kept} to {other.log_end_offset - 1} of leader epoch {other.leader_epoch}"
            f" are others than in the log that is read, {_name(best)}"
        )
        yield _replica_problem(other, "diverged", message)
    elif other.log_end_offset < best.log_end_offset:
        ends = f"ends before offset {other.log_end_offset}, {_name(best)}"
        yield _replica_problem(other, "replica", f"{ends} before {best.log_end_offset}")
    if other.log_start_offset != best.log_start_offset:
        starts = f"starts at offset {other.log_start_offset}, {_name(best)}"
        yield _replica_problem(other, "replica", f"{starts} at {best.log_start_offset}")


def _read_leader_epochs(files: Files, replica: ReplicaLog) -> tuple[EpochStart, ...]:
    """Return a replica's leader epoch checkpoint, empty if it is missing or unreadable."""
    path = replica.folder.files.file_path(leader_epoch_checkpoint.FILE_NAME)
    try:
        return read_leader_epochs(files, path)
    except StorageError:
        return ()


def _common_end(
    of_best: tuple[EpochStart, ...],
    best: ReplicaLog,
    of_other: tuple[EpochStart, ...],
    other: ReplicaLog,
) -> int:
    """Return the exclusive offset up to which two replicas' logs are equal, by their leader epochs.

    `of_best` and `of_other` are their epoch checkpoints. Source: ReplicaFetcherThread's truncation;
    KIP-101, KIP-279.
    """
    ends = min(best.log_end_offset, other.log_end_offset)
    if not of_best or not of_other:
        return ends
    epoch_to_find = other.leader_epoch
    for _ in range(len(of_other) + 1):
        epoch, end = end_offset_for(of_best, epoch_to_find, best.log_end_offset)
        if epoch < 0:
            return ends
        own_epoch, own_end = end_offset_for(of_other, epoch, other.log_end_offset)
        if own_epoch == epoch:
            return min(end, own_end, other.log_end_offset)
        if own_epoch < 0:
            return min(end, ends)
        epoch_to_find = own_epoch
    return 0


def _replica_problem(replica: ReplicaLog, code: str, message: str) -> Problem:
    """Return a problem that concerns a complete replica, at position 0 of its folder."""
    partition = replica.folder.topic_partition
    assert partition is not None
    path = replica.folder.files.path
    return Problem(partition.topic, partition.partition, path, 0, 0, code, message)


def _name(replica: ReplicaLog) -> str:
    """Return the text by which messages name a replica."""
    return f"the replica of broker {replica.broker_id}"
