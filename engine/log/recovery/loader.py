"""Open a partition directory as a log, from any state that a crash can leave.

```
1 leftovers   .deleted .cleaned .swap: removed or completed (swap_recovery.py)
2 segments    after an unclean stop, from the segment with the recovery point on: every batch is
              read, the log is truncated at the first bad one, later segments are deleted
              after a clean stop: only segments with a missing or bad index
3 ends        log end = after the last batch; log start = checkpoint, or the first segment's base;
              a log that ends below its start is emptied; after an unclean stop the end is synced
4 epochs      truncated at both ends; without a valid file, taken from the batches
5 producers   newest valid snapshot, then the batches after it; a snapshot at the end
```

A second run changes nothing, and a crash during loading is like one before (L2, L3, L8).
A batch is bad if the file ends in it, its length is below 14, or its checksum is wrong.
Offsets that fall or repeat are noticed only where an index entry is due.

Source: LOG-12; Kafka's LogLoader and LogSegment.recover.
Differs: later segments are deleted before the damaged one is truncated (Kafka: after), so that a
crash between leaves no hole; an empty segment after records that a power cut took is deleted. A
missing or bad .timeindex is rebuilt too (`index_check.py`). A damaged `leader-epoch-checkpoint`
does not stop a log. A segment with offsets outside its range (below its base, or 2^31 above) raises
`SegmentOffsetOverflow` for this log; Kafka splits the segment if they are above, and stops the
broker if they are below. A segment with a lost .index or a bad .txnindex, whose offsets no index
can represent, raises `SegmentOffsetsDisordered` for this log, where Kafka's broker stops.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import NamedTuple

from engine.errors import CorruptFile, CorruptRecord
from engine.host.ports import FileMissing, Files
from engine.log.batch_scan import scan_batches
from engine.log.directory import leader_epoch_checkpoint, partition_metadata
from engine.log.directory.leader_epoch_checkpoint import EpochStart, read_leader_epochs
from engine.log.directory.partition_metadata import read_partition_metadata
from engine.log.directory.text_checkpoint import create_text_checkpoint
from engine.log.epoch_store import EpochStore
from engine.log.local_log import LocalLog
from engine.log.log_config import LogConfig
from engine.log.new_segment import create_segment
from engine.log.offset_index import read_offset_index
from engine.log.producer_snapshots import ProducerSnapshots
from engine.log.producer_state import ProducerState
from engine.log.recovery.index_check import check_offset_index, check_time_index, check_whole_index
from engine.log.recovery.loaded_log import LoadedLog
from engine.log.recovery.log_messages import RecoveryLogMessages, SegmentTruncation
from engine.log.recovery.producer_recovery import rebuild_producers
from engine.log.recovery.segment_replay import (
    SegmentOffsetOverflow,
    SegmentOffsetsDisordered,
    SegmentReplay,
)
from engine.log.recovery.swap_recovery import plan_swaps, read_end_offset
from engine.log.segment import Segment
from engine.log.segment_files import PartitionFiles, list_partition_files
from engine.log.segment_list import SegmentList
from engine.log.segment_lookup import find_end
from engine.log.segment_trash import discard_segments
from engine.log.tasks import LogHooks
from engine.log.time_index import read_time_index
from engine.log.txn_index import read_txn_index
from engine.model import TopicPartition
from engine.naming import FileKind

_INT64_MAX = (1 << 63) - 1


__all__ = [
    "LoadReport",
    "LoadRequest",
    "SegmentOffsetOverflow",
    "SegmentOffsetsDisordered",
    "load_log",
]


class LoadRequest(NamedTuple):
    """Facts about a log before it is opened; the offsets are those of the checkpoints.

    `was_cleaned` is True for a log that was compacted, perhaps under earlier settings: its offsets
    may have gaps. `is_created` is True for a directory that was just created, whose log cannot have
    been truncated.
    """

    directory: str
    topic_partition: TopicPartition
    config: LogConfig
    now_ms: int
    recovery_point: int = 0
    log_start_offset: int = 0
    was_stopped_cleanly: bool = False
    was_cleaned: bool = False
    is_created: bool = False


class LoadReport(NamedTuple):
    """Counts of a recovery: segments read, bytes truncated, segments deleted by truncations."""

    recovered_segments: int
    truncated_bytes: int
    dropped_segments: int


def load_log(files: Files, request: LoadRequest, hooks: LogHooks) -> tuple[LocalLog, LoadReport]:
    """Open a log; a directory without segments becomes an empty log.

    Raises SegmentOffsetOverflow, SegmentOffsetsDisordered; LogDirOffline and other StorageErrors of
    the host.
    """
    loader = _Loader(files, request, hooks)
    directory, key, config = request.directory, request.topic_partition, request.config
    try:
        log = LocalLog(files, directory, key, config, loader.load_log(), hooks)
    except BaseException:
        loader.close_files()
        raise
    return log, loader.report()


class _Pass(Enum):
    """The reason why all batches of a segment are read.

    UNFLUSHED: a crash may have damaged it; if it is truncated, later segments are deleted.
    LOST_INDEX: Kafka rebuilds its indexes, too. BAD_INDEX: Kafka does not detect the problem, so
    offsets out of order do not end the pass.
    """

    UNFLUSHED = 1
    LOST_INDEX = 2
    BAD_INDEX = 3


class _Loader:
    """Opens one log once: collects its segments, epochs and producers."""

    def __init__(self, files: Files, request: LoadRequest, hooks: LogHooks) -> None:
        """Start without segments; `load_log` reads the files."""
        self._files = files
        self._request = request
        self._hooks = hooks
        self._segments = SegmentList()
        self._producers = ProducerState()
        #: Offset up to which `_producers` has the log's batches (exclusive), −1 if none: a replay
        #: may continue there.
        self._producers_end = -1
        #: Segments above the recovery point after an unclean stop: each is scanned whole.
        self._unflushed: Sequence[Segment] = ()
        #: Unflushed segments below this base offset are synced.
        self._synced_end = -1
        #: Segments scanned, bytes truncated and segments dropped, for the report.
        self._recovered = self._truncated = self._dropped = 0
        self._messages = RecoveryLogMessages(request.topic_partition, request.directory)

    def report(self) -> LoadReport:
        """Return the counts of this load: segments read, bytes truncated, segments deleted."""
        return LoadReport(self._recovered, self._truncated, self._dropped)

    def close_files(self) -> None:
        """Close the files of a log that could not be opened."""
        for segment in self._segments:
            segment.close_file()

    def load_log(self) -> LoadedLog:
        """Load the log: complete renames, recover after a crash, restore epochs and producers."""
        request = self._request
        partition = self._finish_swaps()
        self._snapshots = ProducerSnapshots(self._files, request.directory, partition.snapshots)
        for segment in partition.segments:
            self._segments.add(self._open_segment(segment.base_offset))
        self._epochs = self._read_epochs(partition)
        self._check_indexes()
        if not request.was_stopped_cleanly:
            self._recover_unflushed()
        end = self._repair_end()
        if not (request.was_stopped_cleanly or request.is_created):
            self._sync_truncation()
        start = max(request.log_start_offset, self._segments.first.base_offset)
        if self._epochs.truncate_from_end(end):
            self._epochs.write()
        self._epochs.truncate_from_start(request.log_start_offset)
        self._restore_producers(start, end)
        point = end if request.was_stopped_cleanly else min(request.recovery_point, end)
        return LoadedLog(
            self._segments,
            self._snapshots,
            self._epochs,
            producers=self._producers,
            log_start_offset=start,
            log_end_offset=end,
            recovery_point=point,
            topic_id=self._read_topic_id(partition),
        )

    # 1 leftovers

    def _finish_swaps(self) -> PartitionFiles:
        """Complete or undo swaps of segments that a crash interrupted; return the files."""
        directory = self._request.directory
        partition = list_partition_files(self._files, directory)
        plan = plan_swaps(
            partition, lambda name: read_end_offset(self._files, f"{directory}/{name}")
        )
        for name, reason in plan.removed:
            self._messages.removed(f"{directory}/{name}", reason)
            self._files.remove(f"{directory}/{name}")
        for name, target in plan.renamed:
            self._messages.renamed(f"{directory}/{name}", target)
            self._files.rename(f"{directory}/{name}", f"{directory}/{target}")
        if not plan.removed and not plan.renamed:
            return partition
        self._files.sync_dir(directory)
        return list_partition_files(self._files, directory)

    def _open_segment(self, base_offset: int) -> Segment:
        """Open the segment with this base offset, with the settings of the load request."""
        request = self._request
        return Segment(
            self._files, request.directory, base_offset, request.config, now_ms=request.now_ms
        )

    # 2 segments

    def _check_indexes(self) -> None:
        """Read segments whose indexes are missing or bad, and rebuild the indexes.

        | segment | read here |
        |---|---|
        | without .index, or with a bad .txnindex | always, as Kafka does; may truncate the log |
        | with another bad index, flushed | yes: Kafka does not check these |
        | with another bad index, not flushed | no: the recovery pass reads it in any case |

        Raises SegmentOffsetsDisordered.
        """
        self._unflushed = () if self._request.was_stopped_cleanly else self._from_recovery_point()
        for segment in list(self._segments):
            if segment is not self._segments.floor(segment.base_offset):
                break  # deleted after damage in one before it
            if self._has_lost_index(segment):
                why = _Pass.LOST_INDEX
            elif segment in self._unflushed or self._has_good_indexes(segment):
                continue
            else:
                why = _Pass.BAD_INDEX
            self._recover_segment(segment, why)
            segment.write_indexes()
            self._sync_unflushed_before(segment)
            segment.sync(with_indexes=True)

    def _from_recovery_point(self) -> list[Segment]:
        """Return the segment that contains the recovery point, and all later ones."""
        return self._segments.between(self._request.recovery_point, _INT64_MAX)

    def _has_lost_index(self, segment: Segment) -> bool:
        """Return True if a segment has no .index or a bad .txnindex; log the problem.

        Kafka, too, recovers a segment in these two cases, even after a clean shutdown.
        """
        if not self._files.exists(segment.path(FileKind.INDEX)):
            self._messages.log_missing_index(segment.path(FileKind.LOG))
            return True
        path = segment.path(FileKind.TXNINDEX)
        try:
            problem = None
            if self._files.exists(path):
                problem = read_txn_index(self._files, path).find_problem(segment.base_offset)
        except CorruptFile as error:
            problem = str(error)
        if problem is not None:
            self._messages.log_corrupt_index(segment.path(FileKind.LOG), problem)
        return problem is not None

    def _has_good_indexes(self, segment: Segment) -> bool:
        """Return True if .index and .timeindex are sound; log the problem otherwise."""
        base = segment.base_offset
        index_path, times_path = segment.path(FileKind.INDEX), segment.path(FileKind.TIMEINDEX)
        try:
            if segment is self._segments.active:
                # Read completely: appends continue after the last entries of these indexes.
                index = check_whole_index(read_offset_index(self._files, index_path, base))
                times = check_whole_index(read_time_index(self._files, times_path, base))
            else:
                index = check_offset_index(self._files, index_path, base)
                times = check_time_index(self._files, times_path, base)
        except (CorruptFile, FileMissing) as error:
            self._messages.log_corrupt_index(segment.path(FileKind.LOG), str(error))
            return False
        problem = index.problem or times.problem
        # An index without entries in a segment with batches was lost, or never written.
        is_short = segment.size_bytes <= 2 * self._request.config.index_interval_bytes
        if problem is None and not (is_short or index.has_entries or times.has_entries):
            problem = "no entry at all"
        if problem is not None:
            self._messages.log_corrupt_index(segment.path(FileKind.LOG), problem)
        return problem is None

    def _recover_unflushed(self) -> None:
        """Recover segments from the recovery point on, up to the first that must be truncated."""
        unflushed = self._from_recovery_point()
        for number, segment in enumerate(unflushed):
            self._messages.log_recovery(segment.base_offset, number, len(unflushed))
            if self._recover_segment(segment, _Pass.UNFLUSHED):
                break
            if segment is not self._segments.active:
                # Indexes on disk need no memory: those of all segments together may be gigabytes.
                segment.write_indexes()
        self._drop_empty_after_loss()

    def _drop_empty_after_loss(self) -> None:
        """Delete an empty active segment if the one before it lost records in a power cut.

        File names can be durable before records are: the log would seem to end at the empty
        segment's base offset, with a gap before it. A compacted log may have such a gap
        legitimately, and keeps the segment: a lower log end offset would assign offsets again that
        consumers have read.
        """
        may_have_holes = self._request.config.is_compacted or self._request.was_cleaned
        while len(self._segments) > 1 and not may_have_holes:
            before, active = list(self._segments)[-2:]
            end = find_end(before.file, before.index).next_offset
            is_flushed = active.base_offset <= self._request.recovery_point
            if active.size_bytes or is_flushed or end >= active.base_offset:
                break
            self._dropped += 1
            self._drop_segments([active], f"the records before it end at {end}")

    def _recover_segment(self, segment: Segment, why: _Pass) -> bool:
        """Read a complete segment and rebuild its indexes; return True if it was truncated.

        Flushed segments after damage in a flushed segment are kept, which leaves a hole, as in
        Kafka.

        Differs: Kafka leaves a hole between unflushed segments too, if an .index is lost. Raises
        SegmentOffsetsDisordered for a lost index that cannot be rebuilt.
        """
        self._recovered += 1
        self._rebuild_producers_up_to(segment.base_offset, why)
        replay = SegmentReplay(segment, self._epochs, self._producers)
        interval_bytes = self._request.config.index_interval_bytes
        replay.replay(interval_bytes, skips_disorder=why is _Pass.BAD_INDEX)
        path = segment.path(FileKind.LOG)
        if replay.disorder is not None and why is _Pass.LOST_INDEX:
            raise SegmentOffsetsDisordered(path, *replay.disorder)
        later = self._segments.from_base(segment.base_offset)[1:]
        later = later if why is _Pass.UNFLUSHED or segment in self._unflushed else []
        if replay.disorder is not None:
            position, rule = replay.disorder
            self._messages.log_disorder(segment.base_offset, path, position, rule)
            self._truncate_to_base(segment, replay, later)
            return True
        self._producers_end = replay.next_offset
        is_truncated = replay.good_bytes < segment.size_bytes
        if is_truncated:
            reason = replay.damage or "the end of what can be read"
            self._messages.damaged(path, replay.good_bytes, reason)
            self._truncate_to_good_bytes(segment, replay, later)
        segment.replace_indexes(replay.builder.index, replay.builder.time_index)
        segment.replace_aborted(replay.aborted)
        self._messages.log_rebuilt_indexes(
            segment.base_offset, len(replay.builder.index), len(replay.builder.time_index)
        )
        self._write_snapshot(replay.next_offset)
        return is_truncated

    def _truncate_to_good_bytes(
        self, segment: Segment, replay: SegmentReplay, later: list[Segment]
    ) -> None:
        """Drop later segments, then truncate a segment to its good bytes and flush it."""
        self._drop_before_truncation(segment, later)
        truncated_bytes = segment.size_bytes - replay.good_bytes
        segment.truncate_to_bytes(replay.good_bytes)
        self._finish_truncation(segment, truncated_bytes, replay.next_offset)

    def _truncate_to_base(
        self, segment: Segment, replay: SegmentReplay, later: list[Segment]
    ) -> None:
        """Truncate a segment to its base offset, by the indexes rebuilt up to the disorder.

        Only batches before an indexed batch whose last offset is the base offset remain.

        Source: the truncateTo after Kafka's InvalidOffsetException in LogLoader.recoverLog.
        """
        self._drop_before_truncation(segment, later)
        segment.replace_aborted([])
        segment.replace_indexes(replay.builder.index, replay.builder.time_index)
        truncated_bytes = segment.truncate_to(segment.base_offset, self._request.now_ms)
        # The producer state includes batches that are now removed.
        self._producers_end = -1
        end = find_end(segment.file, segment.index).next_offset
        self._finish_truncation(segment, truncated_bytes, end)

    def _drop_before_truncation(self, segment: Segment, later: list[Segment]) -> None:
        """Delete the segments after a damaged one, and sync the folder, before it is truncated."""
        if later:
            self._dropped += len(later)
            self._drop_segments(
                reversed(later), f"after the damage in segment {segment.base_offset}"
            )
            # If the truncation were durable before the renames, a crash would leave a hole.
            self._files.sync_dir(self._request.directory)

    def _finish_truncation(self, segment: Segment, truncated_bytes: int, next_offset: int) -> None:
        """Sync the unflushed segments before a truncated one, then its `.log`; log the truncation.

        `next_offset` is the offset after the records that are left. Indexes are written and synced
        later: they can be rebuilt.
        """
        self._sync_unflushed_before(segment)
        segment.sync(with_indexes=False)
        self._truncated += truncated_bytes
        path = segment.path(FileKind.LOG)
        truncation = SegmentTruncation(
            segment.base_offset, path, truncated_bytes, segment.size_bytes, next_offset
        )
        self._messages.log_truncation(truncation)

    def _rebuild_producers_up_to(self, offset: int, why: _Pass) -> None:
        """Rebuild the producer state at a segment's base offset, from the newest snapshot on.

        The pass over that segment continues from this state.
        """
        if self._producers_end == offset:
            return
        bases = self._segments.bases
        if why is not _Pass.UNFLUSHED:
            # Kafka has not opened the later segments at this point.
            bases = tuple(base for base in bases if base < offset)
        rebuild_producers(
            self._producers,
            self._snapshots,
            self._segments,
            log_start_offset=self._request.log_start_offset,
            end_offset=offset,
            now_ms=self._request.now_ms,
            expiration_ms=self._request.config.producer_id_expiration_ms,
            snapshots_wanted=bases[-2:],
        )
        self._write_snapshot(offset)
        self._producers_end = offset

    def _write_snapshot(self, offset: int) -> None:
        """Write a snapshot of the producers at an offset, unless one exists at or above it."""
        latest = self._snapshots.latest_offset()
        if offset > (self._request.log_start_offset if latest is None else latest):
            self._snapshots.write_snapshot(offset, self._producers.to_entries())

    def _drop_segments(self, segments: Iterable[Segment], reason: str) -> None:
        """Log the deletion of segments, rename them to .deleted, and remove them from the list."""
        gone = list(segments)
        self._messages.log_drop(
            [(segment.base_offset, segment.size_bytes) for segment in gone], reason
        )
        discard_segments(
            self._files,
            gone,
            self._snapshots,
            self._hooks.tasks,
            delay_ms=self._request.config.file_delete_delay_ms,
        )
        # Not before that: where it fails, they are still to be closed.
        for segment in gone:
            self._segments.remove(segment)

    # 3 ends

    def _repair_end(self) -> int:
        """Repair the end of the active segment if it needs it, and return the log end offset.

        A log without segments, or one that ends below its start, restarts at the log start offset.
        """
        request = self._request
        if len(self._segments):
            active = self._segments.active
            end, good_bytes = find_end(active.file, active.index)
            # The next append must directly follow a batch, even if checkpoints say otherwise.
            # Differs: Kafka trusts the clean shutdown marker.
            if good_bytes < active.size_bytes:
                self._recover_segment(active, _Pass.BAD_INDEX)
                end, _ = find_end(active.file, active.index)
            if end >= request.log_start_offset:
                return end
            self._messages.log_end_below_start(end, request.log_start_offset)
            self._drop_segments(reversed(list(self._segments)), "the whole log")
        # Before the new segment exists: epochs and snapshots of the old log would pass for its.
        self._epochs.clear()
        self._snapshots.remove_all()
        self._segments.add(
            create_segment(
                self._files,
                request.directory,
                request.log_start_offset,
                request.config,
                now_ms=request.now_ms,
            )
        )
        return request.log_start_offset

    def _sync_truncation(self) -> None:
        """Sync a truncation that a killed process may not have synced.

        The removed records are not visible now, but could reappear, below new epochs, after a power
        cut that follows the next append. See `log_truncation.py`.
        """
        self._files.sync_dir(self._request.directory)
        self._sync_unflushed_before(self._segments.active)
        self._segments.active.sync(with_indexes=False)

    def _sync_unflushed_before(self, segment: Segment) -> None:
        """Sync the unflushed `.log` files before a segment, oldest first, before it is synced.

        A killed process leaves them in the page cache. If a later segment were durable first, a
        power cut could leave a gap that no recovery detects. Each segment is synced once.
        """
        if self._request.was_stopped_cleanly:
            return
        for earlier in self._from_recovery_point():
            if self._synced_end <= earlier.base_offset < segment.base_offset:
                earlier.sync(with_indexes=False)
        self._synced_end = max(self._synced_end, segment.base_offset)

    # 4 epochs

    def _read_epochs(self, partition: PartitionFiles) -> EpochStore:
        """Return the leader epochs of the checkpoint; missing ones are read from the batches."""
        entries: list[EpochStart] | None = None
        name = leader_epoch_checkpoint.FILE_NAME
        path = partition.file_path(name)
        if name not in partition.side_files:
            create_text_checkpoint(self._files, path)
        # An empty file was never written: an epoch is written before its first record.
        elif self._files.size_bytes(path):
            try:
                entries = list(read_leader_epochs(self._files, path))
            except CorruptFile:
                entries = None
        if entries is not None and not self._lacks_epochs(entries):
            return EpochStore(self._files, partition.path, entries)
        # A start that was raised, but not written down before a crash, has lost the first ones.
        epoch_starts = entries or []
        first = epoch_starts[0].start_offset if epoch_starts else _INT64_MAX
        earlier = self._read_batch_epochs(first)
        store = EpochStore(self._files, partition.path, [*earlier, *epoch_starts])
        if earlier:
            store.write()
        return store

    def _lacks_epochs(self, entries: list[EpochStart]) -> bool:
        """Return True if the checkpoint's first epoch starts above the log start offset."""
        if not entries or not len(self._segments):
            return False
        start = max(self._request.log_start_offset, self._segments.first.base_offset)
        return entries[0].start_offset > start

    def _read_batch_epochs(self, end_offset: int) -> list[EpochStart]:
        """Return the leader epochs of the batches below an offset, as far as they are readable.

        They replace epochs that the checkpoint lacks. Reading stops at the first damage.
        """
        entries: list[EpochStart] = []
        for segment in self._segments:
            if segment.base_offset >= end_offset:
                break
            try:
                for _, batch in scan_batches(segment.file):
                    epoch = batch.leader_epoch
                    is_new = epoch >= 0 and (not entries or epoch > entries[-1].epoch)
                    if is_new and batch.base_offset < end_offset:
                        entries.append(EpochStart(epoch, batch.base_offset))
            except CorruptRecord:
                break  # recovery finds it again, and decides
        return entries

    # 5 producers

    def _restore_producers(self, start: int, end: int) -> None:
        """Rebuild the producer state at the log end offset `end`, and write a snapshot there.

        `start` is the log start offset: records below it do not count.
        """
        self._snapshots.remove_strays(self._segments.bases)
        # The records replayed in recovery may begin below the log start offset.
        rebuild_producers(
            self._producers,
            self._snapshots,
            self._segments,
            log_start_offset=start,
            end_offset=end,
            now_ms=self._request.now_ms,
            expiration_ms=self._request.config.producer_id_expiration_ms,
            # So that a truncation soon does not read everything again.
            snapshots_wanted=self._segments.bases[-2:],
        )
        if end > start:
            self._write_snapshot(end)

    def _read_topic_id(self, partition: PartitionFiles) -> str | None:
        """Return the topic id of `partition.metadata`, None if the file is absent or corrupt."""
        name = partition_metadata.FILE_NAME
        if name not in partition.side_files:
            return None
        try:
            return read_partition_metadata(self._files, partition.file_path(name)).topic_id
        except CorruptFile:
            return None
