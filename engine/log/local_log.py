"""One partition's log on this broker: append, read, roll, flush, truncate, delete.

It knows offsets, epochs, producers and files, but no high watermarks (callers pass one where a rule
needs it), in-sync sets, brokers or requests. It never blocks on slow work: syncs of rolled segments
and delayed removals are passed to `LogTasks`. One thread owns a log.

```
log start offset ≤ first offset kept        recovery point ≤ log end offset          L1
[segment][segment][active segment]
    all flushed  ->|   may be lost in a power cut, truncated to whole batches at the next start
```

State after a crash, by operation (each step durable in the order given; `loader.py` continues):

```
roll      old indexes written · new files · snapshot · sync of all that, on a worker thread
          the recovery point moves only after the sync: recovery reads the records above it
truncate  see `log_truncation.py`
delete    see `log_deletion.py`
```

Source: LOG-1 … LOG-13, RET-*; Kafka's UnifiedLog and LocalLog.
Differs: truncation renames from the highest segment down (Kafka upwards), so that a crash never
leaves a hole. A refused or repeated batch neither rolls a segment nor assigns an epoch. A replica's
chunk larger than segment.bytes is split at batches, not refused.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from functools import partial

from engine.host.ports import Buffer, Files
from engine.ids import uuid_bytes
from engine.log import log_reader
from engine.log.checked_batch import CheckedBatch, open_fast
from engine.log.directory import partition_metadata
from engine.log.directory.partition_metadata import PartitionMetadataFile, encode_partition_metadata
from engine.log.log_config import LogConfig
from engine.log.log_deletion import LogDeletion
from engine.log.log_flush import LogFlush
from engine.log.log_messages import LogMessages, LogStartReason
from engine.log.log_truncation import LogTruncation
from engine.log.log_types import (
    EPOCH_MAX,
    AppendInfo,
    FetchSlice,
    OffsetAndTimestamp,
    OffsetMetadata,
    OffsetOutOfRange,
    RecordListTooLarge,
)
from engine.log.new_segment import create_segment
from engine.log.producer_state import (
    AppendOrigin,
    CompletedTransaction,
    WrittenBatch,
    read_transaction_marker,
)
from engine.log.recovery.loaded_log import LoadedLog
from engine.log.recovery.producer_recovery import find_repeated_batch, rebuild_producers
from engine.log.replica_chunks import ReplicaChunk, append_info_of, split_replica_batches
from engine.log.retention import RetentionReason
from engine.log.segment import Segment
from engine.log.tasks import LogHooks
from engine.log.validation import LeaderRules
from engine.model import TopicPartition, new_tuple
from engine.native.record_walk import WalkTier
from engine.records.batch import BatchView
from engine.records.batch_header import (
    CHECKED_FROM,
    CODEC_BITS,
    CONTROL_FLAG,
    HEADER_BYTES,
    LENGTH_OVERHEAD_BYTES,
    MAGIC,
    TRANSACTIONAL_FLAG,
    read_header,
    set_place,
)
from engine.records.codec import Codec
from engine.records.control import read_marker
from engine.records.crc import crc32c
from engine.records.one_record import batch_bytes, one_record_batch
from engine.records.record import NO_TIMESTAMP, increment_sequence

#: The attributes of a batch outside of transactions: only its codec.
CODECS_ALONE = frozenset(range(5))
#: The attributes of data batches, inside and outside of transactions.
DATA_ATTRIBUTES = CODECS_ALONE | {codec | TRANSACTIONAL_FLAG for codec in CODECS_ALONE}
_MARKER_ATTRIBUTES = TRANSACTIONAL_FLAG | CONTROL_FLAG
#: The result of the walk over one record that has a key and its batch's timestamp.
_ONE_TIME = (0, 0, False)


class LocalLog:
    """The log of one partition in one directory. Source: HW-2."""

    def __init__(
        self,
        files: Files,
        directory: str,
        topic_partition: TopicPartition,
        config: LogConfig,
        loaded: LoadedLog,
        hooks: LogHooks,
    ) -> None:
        """Create the log from the parts that a loader has read, or from those of a new log."""
        self._files = files
        self.directory = directory
        self.topic_partition = topic_partition
        self._hooks = hooks
        #: Writes log lines about this log, in Kafka's words.
        self._lines = LogMessages(topic_partition, directory)
        #: Shared with flush, truncation and deletion: they see each roll without a call.
        self.segments = loaded.segments
        self.epochs = loaded.epochs
        self.producers = loaded.producers
        self.snapshots = loaded.snapshots
        self.log_start_offset = loaded.log_start_offset
        self.log_end_offset = loaded.log_end_offset
        #: The topic's id as text, None until someone has assigned one.
        self.topic_id = loaded.topic_id
        #: How often records were truncated: a reader on a worker thread compares it before and
        #: after.
        self.truncation_count = 0
        #: How many records producers sent in another codec or format than the topic's.
        self.conversion_count = 0
        self._flush = LogFlush(
            files,
            directory,
            self.segments,
            self.snapshots,
            hooks,
            lambda: self.log_end_offset,
            recovery_point=loaded.recovery_point,
        )
        self._truncation = LogTruncation(
            topic_partition, self.epochs, self._flush, hooks, self._note_settled
        )
        self._deletion = LogDeletion(self, files, hooks, self._lines)
        self.configure(config)

    def configure(self, config: LogConfig) -> None:
        """Apply new topic settings to this log, also to its segments."""
        self.config = config
        self._rules = LeaderRules(config, self.topic_partition)
        self._largest_time_fast = self._rules.largest_time_fast
        self._kept_codecs = self._rules.kept_codecs
        self._batch_bytes_max = min(config.max_message_bytes, config.segment_bytes)
        self._flush_messages = config.flush_messages
        self._active = self.segments.active
        self._note_settled()
        for segment in self.segments:
            segment.configure(config)

    def _note_settled(self) -> None:
        """Update whether appends may take the fast path, after new settings or a truncation."""
        # Until a truncation is durable, every append must take the general path to check it.
        self._may_append_fast = self._rules.is_fast_path_topic and self._truncation.is_settled

    @property
    def active_segment(self) -> Segment:
        """Return the segment that is appended to."""
        return self._active

    @property
    def size_bytes(self) -> int:
        """Return the summed size of the log's .log files."""
        return self.segments.size_bytes

    @property
    def recovery_point(self) -> int:
        """Return the offset below which all records are flushed (exclusive)."""
        return self._flush.recovery_point

    @property
    def last_flush_ms(self) -> int:
        """Return the wall time of the last flush, 0 before the first."""
        return self._flush.last_flush_ms

    @property
    def latest_epoch(self) -> int | None:
        """Return the newest leader epoch of the log, None without any."""
        return self.epochs.latest_epoch if self.epochs.entries else None

    @property
    def topic_uuid(self) -> bytes | None:
        """Return the 16 bytes of the topic's id, None while it has none."""
        return None if self.topic_id is None else uuid_bytes(self.topic_id)

    def assign_topic_id(self, topic_id: str) -> None:
        """Write partition.metadata with the topic's id, before the log gets its first record."""
        self._write_topic_id(topic_id)
        self.topic_id = topic_id

    def schedule_creation_syncs(
        self, topic_id: str | None, sync_parent: Callable[[], None]
    ) -> None:
        """Schedule the syncs of a new log's folder and topic id, which precede the first append.

        `sync_parent` syncs the parent folder. Both run on a worker thread. A topic id that the
        folder has already is kept.
        """
        write_id: tuple[Callable[[], None], ...] = ()
        if self.topic_id is None and topic_id is not None:
            self.topic_id, write_id = topic_id, (partial(self._write_topic_id, topic_id),)
        self._truncation.schedule_creation_steps((*write_id, sync_parent))
        self._note_settled()

    def _write_topic_id(self, topic_id: str) -> None:
        """Replace partition.metadata by one with the topic id."""
        content = encode_partition_metadata(PartitionMetadataFile(topic_id))
        self._files.replace_file(f"{self.directory}/{partition_metadata.FILE_NAME}", content)

    # Appending

    def append_as_leader(
        self,
        batches: memoryview,
        leader_epoch: int,
        now_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
    ) -> AppendInfo:
        """Append a producer's batches as one batch, and return its offsets (HW-4).

        `batches` must be writable: offset and leader epoch are set in its bytes. Raises the errors
        of `validation.py` and `producer_state.py`, and RecordListTooLarge, with nothing appended.
        """
        result = self.append_fast(batches, leader_epoch, now_ms, origin=origin)
        if isinstance(result, AppendInfo):
            return result
        return self.append(result or CheckedBatch(batches), leader_epoch, now_ms, origin)

    def append_fast(
        self,
        batches: memoryview,
        leader_epoch: int,
        now_ms: int,
        fast_attributes: Container[int] = DATA_ATTRIBUTES,
        origin: AppendOrigin = AppendOrigin.CLIENT,
    ) -> AppendInfo | CheckedBatch | None:
        """Append one batch that needs only its offset and epoch set, as most batches do.

        For any other batch nothing is appended: returns the checks that `append` need not repeat,
        or None if the header alone decided. Raises the errors of `producer_state.py`, with nothing
        appended.
        """
        if len(batches) < HEADER_BYTES or not self._may_append_fast:
            return None
        (
            base_offset, length, _, magic, crc, flags, delta, base_ms, max_ms,
            producer_id, producer_epoch, base_sequence, count,
        ) = read_header(batches)  # fmt: skip
        if not (
            length + 12 == len(batches) <= self._batch_bytes_max
            and magic == MAGIC
            and not base_offset
            and flags in fast_attributes
            and flags & CODEC_BITS in self._kept_codecs
            and 0 < count == delta + 1
            and (producer_id < 0 or base_sequence >= 0)
        ):
            if flags == _MARKER_ATTRIBUTES and origin is AppendOrigin.COORDINATOR:
                return self._append_marker_fast(batches, leader_epoch, now_ms)
            return None
        computed_crc, opened, codec = crc32c(batches[CHECKED_FROM:]), None, flags & CODEC_BITS
        if computed_crc != crc:
            return CheckedBatch(batches, computed_crc)
        if codec:
            walked, opened = None, open_fast(batches, codec)
            if opened is not None:
                records, _ = opened
                walked = WalkTier.walk(records, 0, count)
        else:
            walked = WalkTier.walk(batches, HEADER_BYTES, count)
        if self._largest_time_fast(walked, base_ms, now_ms) != max_ms:
            checked = CheckedBatch(batches, computed_crc)
            checked.store_walk(walked, opened)
            return checked
        first = self.log_end_offset
        if producer_id >= 0:
            last_sequence = increment_sequence(base_sequence, delta)
            repeated = self.producers.find_duplicate(
                producer_id,
                producer_epoch,
                base_sequence,
                last_sequence,
                is_transactional=flags & TRANSACTIONAL_FLAG != 0,
                origin=origin,
            )
            if repeated is not None:
                return self._duplicate_info(repeated, leader_epoch)
        set_place(batches, 0, first, length, leader_epoch)
        if leader_epoch != self.epochs.latest_epoch:
            self.epochs.assign(leader_epoch, first)
        last = first + delta
        self._append_to_segment(batches, first, last, (max_ms, last), now_ms)
        if producer_id >= 0:
            self.producers.append_data(
                producer_id,
                producer_epoch,
                WrittenBatch(last_sequence, last, delta, max_ms),
                is_transactional=flags & TRANSACTIONAL_FLAG != 0,
            )
        start, size = self.log_start_offset, length + 12
        return new_tuple(AppendInfo, (first, last, max_ms, -1, start, size, leader_epoch, False))

    def append_own_fast(
        self, record: bytes, time_ms: int, leader_epoch: int, now_ms: int
    ) -> tuple[int, bytes] | None:
        """Append a record made by `one_record` at the current time; return its offset and batch.

        A coordinator appends to its own topic in this way. Returns None, with nothing appended, for
        a topic with another codec, append time or a smaller max.message.bytes.
        """
        if (
            not self._may_append_fast
            or Codec.NONE not in self._kept_codecs
            or batch_bytes(record) > self._batch_bytes_max
        ):
            return None
        offset = self.log_end_offset
        batch = one_record_batch(offset, leader_epoch, record)
        if leader_epoch != self.epochs.latest_epoch:
            self.epochs.assign(leader_epoch, offset)
        self._append_to_segment(batch, offset, offset, (time_ms, offset), now_ms)
        return offset, batch

    def _append_marker_fast(
        self, batches: memoryview, leader_epoch: int, now_ms: int
    ) -> AppendInfo | CheckedBatch | None:
        """Append a transaction marker in the form of `build_marker`, with the result of `append`.

        Any other batch is left to `append`, as in `append_fast`. Raises the errors of
        `check_marker`.
        """
        (
            base_offset, length, _, magic, crc, _, delta, base_ms, max_ms,
            producer_id, producer_epoch, _, count,
        ) = read_header(batches)  # fmt: skip
        marker, size = read_marker(batches), length + LENGTH_OVERHEAD_BYTES
        if not (
            marker is not None
            and size == len(batches) <= self._batch_bytes_max
            and magic == MAGIC
            and (base_offset, delta, count) == (0, 0, 1)
            and producer_id >= 0
            and self._largest_time_fast(_ONE_TIME, base_ms, now_ms) == max_ms
        ):
            return None
        computed_crc = crc32c(batches[CHECKED_FROM:])
        if computed_crc != crc:
            return CheckedBatch(batches, computed_crc)
        self.producers.check_marker(producer_id, producer_epoch, marker.coordinator_epoch)
        offset = self.log_end_offset
        set_place(batches, 0, offset, length, leader_epoch)
        if leader_epoch != self.epochs.latest_epoch:
            self.epochs.assign(leader_epoch, offset)
        self._append_to_segment(batches, offset, offset, (max_ms, offset), now_ms)
        completed = self.producers.append_marker(
            producer_id, producer_epoch, marker, offset=offset, timestamp_ms=max_ms
        )
        self._note_completed(completed)
        start = self.log_start_offset
        return new_tuple(AppendInfo, (offset, offset, max_ms, -1, start, size, leader_epoch, False))

    def append(
        self,
        checked: CheckedBatch,
        leader_epoch: int,
        now_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
    ) -> AppendInfo:
        """Append a producer's batches on the general path: any format, codec and timestamp type.

        Returns the offsets of the appended batch, or of the stored one that it repeats. Raises the
        errors of `append_as_leader`.
        """
        self._truncation.finish_pending_steps()
        first = self.log_end_offset
        taken = self._rules.prepare_batch(
            checked, base_offset=first, leader_epoch=leader_epoch, now_ms=now_ms, origin=origin
        )
        batch, size = taken.batch, taken.batch.size_bytes
        if size > self.config.segment_bytes:
            raise RecordListTooLarge(size, self.config.segment_bytes)
        if taken.is_rewritten:
            self.conversion_count += batch.record_count
        marked = (
            read_transaction_marker(batch) if batch.is_control and batch.has_producer_id else None
        )
        repeated = find_repeated_batch(self.producers, batch, origin, marked)
        if repeated is not None:
            return self._duplicate_info(repeated, leader_epoch)
        if leader_epoch != self.epochs.latest_epoch:
            self.epochs.assign(leader_epoch, first)
        last, largest_ms = batch.last_offset, batch.max_timestamp_ms
        self._append_to_segment(batch.raw, first, last, (largest_ms, last), now_ms)
        self._note_completed(self.producers.apply_batch(batch, marked))
        start, append_time_ms = self.log_start_offset, taken.log_append_time_ms
        return AppendInfo(first, last, largest_ms, append_time_ms, start, size, leader_epoch)

    def append_as_follower(
        self, batches: memoryview, now_ms: int, leader_epoch: int = EPOCH_MAX
    ) -> AppendInfo:
        """Append fetched batches unchanged, without an incomplete last batch.

        Batches of an epoch later than `leader_epoch`, and all batches after them, are not appended:
        they are not from the leader that the follower follows. Raises the errors of
        `split_replica_batches`, with nothing appended.
        """
        info = self.append_as_follower_fast(batches, now_ms, leader_epoch)
        if info is not None:
            return info
        chunks = split_replica_batches(
            batches,
            log_end_offset=self.log_end_offset,
            segment_bytes=self.config.segment_bytes,
            leader_epoch=leader_epoch,
        )
        self._truncation.finish_pending_steps()
        for chunk in chunks:
            self._append_chunk(batches, chunk, now_ms)
        return append_info_of(chunks, self.log_start_offset)

    def append_as_follower_fast(
        self, batches: memoryview, now_ms: int, leader_epoch: int
    ) -> AppendInfo | None:
        """Append one valid batch of the latest epoch, as most fetched batches are.

        Returns None, with nothing appended, for several batches, older formats, a new epoch, or a
        wrong CRC: the general path then appends them or raises.
        """
        size = len(batches)
        if size < HEADER_BYTES:
            return None
        (
            first, length, epoch, magic, crc, _, delta, _, max_ms, producer_id, _, _, _,
        ) = read_header(batches)  # fmt: skip
        if not (
            length + 12 == size <= self.config.segment_bytes
            and magic == MAGIC
            and first >= self.log_end_offset
            and delta >= 0
            and epoch == self.epochs.latest_epoch
            and epoch <= leader_epoch
            and self._truncation.is_settled
            and crc == crc32c(batches[CHECKED_FROM:])
        ):
            return None
        last = first + delta
        largest = (max_ms, last) if max_ms > NO_TIMESTAMP else (NO_TIMESTAMP, first)
        self._append_to_segment(batches, first, last, largest, now_ms)
        if producer_id >= 0:
            self._note_completed(self.producers.apply_batch(BatchView(batches, 0)))
        start = self.log_start_offset
        appended = (first, last, largest[0], NO_TIMESTAMP, start, size, epoch, False)
        return new_tuple(AppendInfo, appended)

    def _append_chunk(self, data: memoryview, chunk: ReplicaChunk, now_ms: int) -> None:
        """Append a chunk of fetched batches; assign epochs before, update producer states after."""
        epochs, end_offset = self.epochs, self.log_end_offset
        for batch in chunk.batches:
            if batch.magic < MAGIC:
                # Below magic 2 a batch has no epoch: earlier epochs must not cover it.
                epochs.clear()
            elif batch.leader_epoch != epochs.latest_epoch:
                epochs.assign_next_batch(end_offset, batch.leader_epoch, batch.first_offset)
            end_offset = batch.last_offset + 1
        self._append_to_segment(
            chunk.data, chunk.first_offset, chunk.last_offset, chunk.largest, now_ms
        )
        for batch in chunk.batches:
            if batch.producer_id >= 0:
                self._note_completed(self.producers.apply_batch(BatchView(data, batch.position)))

    def _append_to_segment(
        self,
        data: Buffer,
        first_offset: int,
        last_offset: int,
        largest: tuple[int, int],
        now_ms: int,
    ) -> None:
        """Append bytes to the active segment, or to a new one if full; raise the log end offset.

        `largest` is the largest timestamp of the bytes, with the offset of its record. Flushes the
        log after flush.messages.
        """
        segment, size = self._active, len(data)
        largest_ms, _ = largest
        if segment.should_roll(size, last_offset, largest_ms, now_ms):
            segment = self.roll(now_ms, first_offset)
        segment.append((data,), size, last_offset, largest, first_offset=first_offset)
        self.log_end_offset = last_offset + 1
        if last_offset + 1 - self._flush.recovery_point >= self._flush_messages:
            self.flush(now_ms)

    def _duplicate_info(self, batch: WrittenBatch, leader_epoch: int) -> AppendInfo:
        """Return the offsets and time of the stored batch that a producer has sent again."""
        first, last, time_ms = batch.first_offset, batch.last_offset, batch.timestamp_ms
        start = self.log_start_offset
        return AppendInfo(first, last, time_ms, time_ms, start, 0, leader_epoch, is_duplicate=True)

    def _note_completed(self, completed: CompletedTransaction | None) -> None:
        """Add an aborted transaction to the transaction index of the active segment."""
        if completed is not None and completed.is_aborted:
            self._active.add_aborted(completed.to_index_entry())

    # Epochs

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int] | None:
        """Return the largest known epoch ≤ the requested one and its end offset (exclusive).

        None if the requested epoch is above all known epochs, or none is known.
        """
        epoch, end = self.epochs.end_offset_for(leader_epoch, self.log_end_offset)
        return None if end < 0 else (epoch, end)

    # Reading

    def read(
        self,
        start_offset: int,
        max_bytes: int,
        upper_bound: int | None = None,
        *,
        at_least_one_batch: bool = True,
        with_aborted: bool = False,
    ) -> FetchSlice:
        """Return batches from `start_offset` on, below `upper_bound` (None: the log end offset).

        `with_aborted` adds the aborted transactions of the batches, for read_committed. Raises
        OffsetOutOfRange and CorruptRecord. See `log_reader.read_slice`.
        """
        end = self.log_end_offset
        bound = end if upper_bound is None else upper_bound
        return log_reader.read_slice(
            self.segments,
            start_offset,
            max_bytes,
            log_reader.ReadBounds(self.log_start_offset, end, bound),
            at_least_one_batch=at_least_one_batch,
            with_aborted=with_aborted,
        )

    def locate(self, offset: int) -> OffsetMetadata:
        """Return an offset with its segment's base offset and its position in that .log."""
        return log_reader.offset_metadata(self.segments, offset, self.log_end_offset)

    def offset_for_timestamp(self, timestamp_ms: int) -> OffsetAndTimestamp | None:
        """Return the first record with this timestamp or a later one, None without one.

        Negative times have the meanings of ListOffsets: see `log_reader.find_offset_for_timestamp`.
        """
        return log_reader.find_offset_for_timestamp(
            self.segments,
            timestamp_ms,
            self.epochs,
            log_start_offset=self.log_start_offset,
            log_end_offset=self.log_end_offset,
        )

    def last_stable_offset(self, high_watermark: int) -> int:
        """Return the last stable offset (exclusive end), at most the high watermark.

        It is the first offset of the earliest open transaction, or the high watermark without one.
        """
        unstable = self.producers.first_unstable_offset(high_watermark)
        if unstable is None or unstable >= high_watermark:
            return high_watermark
        return max(unstable, self.log_start_offset)

    # Rolling and flushing

    def roll(self, now_ms: int, first_offset: int | None = None) -> Segment:
        """Close the active segment and start one at `first_offset`, by default the log end offset.

        An empty active segment at that offset is kept. The closed segment is synced on a worker
        thread, after which the recovery point rises.
        """
        base = max(self.log_end_offset, first_offset or 0)
        active = self._active
        if active.base_offset == base:
            return active
        self._truncation.finish_pending_steps()
        active.become_inactive()
        if self.recovery_point >= base:
            # Recovery would begin after this segment, and not check its indexes.
            active.sync(with_indexes=True)
        segment = self._start_segment(base, now_ms)
        self._lines.rolled(base)
        self.snapshots.take_snapshot(base, self.log_start_offset, self.producers)
        self._flush.start_flush(base, now_ms)
        return segment

    def _start_segment(self, base_offset: int, now_ms: int) -> Segment:
        """Create the new active segment, with a random roll jitter (segment.jitter.ms)."""
        segment = create_segment(
            self._files, self.directory, base_offset, self.config, now_ms=now_ms
        )
        if self.config.segment_jitter_ms:
            bound = min(self.config.segment_jitter_ms, self.config.segment_ms)
            segment.roll_jitter_ms = self._hooks.jitter_ms(bound)
        self.segments.add(segment)
        self._active = segment
        self._flush.note_new_names()
        return segment

    def raise_end(self, offset: int, now_ms: int) -> None:
        """Raise the log end offset without records: a new segment starts at `offset`.

        For a future log, if the log that it copies ends with offsets that compaction removed.
        """
        assert offset > self.log_end_offset
        self.roll(now_ms, offset)
        self.log_end_offset = offset

    def flush(self, now_ms: int) -> None:
        """Flush all appended records to disk and move the recovery point to the log end offset."""
        self._truncation.finish_pending_steps()
        self._flush.flush(now_ms)

    def start_flush(self, now_ms: int, on_end: Callable[[], None]) -> None:
        """Flush all appended records on a worker thread; then call `on_end`, also after a failure.

        A failure takes the log directory offline.
        """
        self._truncation.finish_pending_steps()
        self._flush.start_flush(self.log_end_offset, now_ms, on_end)

    def close(self, now_ms: int) -> None:
        """Flush the log with its indexes and a producer snapshot, and close the files.

        With the clean shutdown marker the next start needs no recovery.
        """
        self._truncation.finish_pending_steps()
        self._active.become_inactive()
        self.snapshots.take_snapshot(self.log_end_offset, self.log_start_offset, self.producers)
        self._flush.close(now_ms)
        # After the segments before it: otherwise a power cut could leave a gap.
        self._active.sync(with_indexes=True)
        self.close_files()

    def close_files(self) -> None:
        """Close the files without flushing, for a log whose directory has failed or is removed."""
        for segment in self.segments:
            segment.close_file()

    # Truncating

    def truncate_to(self, offset: int, now_ms: int) -> bool:
        """Remove all records from `offset` on; return True if there were any.

        A batch that contains `offset` is removed completely. An offset below the first segment
        restarts the log there (`restart_at`). Nothing is flushed here: see `log_truncation.py`.
        Raises CorruptRecord if damage hides the first batch to remove, with nothing changed.
        """
        assert offset >= 0
        self._truncation.finish_pending_steps()
        if offset >= self.log_end_offset:
            self._truncation.drop_epochs(self.log_end_offset)
            return False
        if self.segments.first.base_offset > offset:
            self.restart_at(offset, now_ms)
            return True
        kept = self.segments.floor(offset)
        assert kept is not None
        place = kept.find_first_truncated(offset)
        self._lines.log_truncation(offset)
        self.truncation_count += 1
        later = [segment for segment in self.segments if segment.base_offset > offset]
        self._deletion.discard(reversed(later))
        self._active = kept
        kept.truncate_at(place, offset, now_ms)
        self.log_end_offset = offset
        self.log_start_offset = min(self.log_start_offset, offset)
        self._truncation.schedule_truncation_steps(offset, (self._active,))
        self._note_settled()
        rebuild_producers(
            self.producers,
            self.snapshots,
            self.segments,
            log_start_offset=self.log_start_offset,
            end_offset=offset,
            now_ms=now_ms,
            expiration_ms=self.config.producer_id_expiration_ms,
        )
        return True

    def restart_at(self, offset: int, now_ms: int, log_start_offset: int | None = None) -> None:
        """Remove all records and continue at `offset`, by default the new log start offset too.

        A follower calls this if its log has no offset in common with its leader's log.
        """
        self._truncation.finish_pending_steps()
        self._lines.restarted(offset)
        self.truncation_count += 1
        self._deletion.discard(reversed(list(self.segments)))
        self._start_segment(offset, now_ms)
        self.snapshots.remove_all()
        self.producers.clear()
        self.log_start_offset = offset if log_start_offset is None else log_start_offset
        self.log_end_offset = offset
        self.epochs.truncate_from_end(0)
        self._truncation.schedule_truncation_steps(offset, ())
        self._note_settled()

    # Deleting

    def maybe_increment_log_start_offset(
        self, offset: int, high_watermark: int, reason: LogStartReason
    ) -> bool:
        """Raise the log start offset; return True if it rose.

        Records below it cannot be read any more; the next retention check deletes their segments.
        Raises OffsetOutOfRange above the high watermark.
        """
        if offset > high_watermark:
            raise OffsetOutOfRange(offset, self.log_start_offset, high_watermark)
        if offset <= self.log_start_offset:
            return False
        self._truncation.finish_pending_steps()
        self.log_start_offset = offset
        self._lines.log_start_offset_change(offset, reason)
        self.epochs.truncate_from_start(offset)
        return True

    def delete_old_segments(self, high_watermark: int, now_ms: int) -> dict[RetentionReason, int]:
        """Delete segments by retention (RET-4); return the number for each reason."""
        return self._deletion.apply_retention(high_watermark, now_ms)

    def delete_segments_before(self, offset: int, high_watermark: int, now_ms: int) -> int:
        """Delete inactive segments that end at or below `offset`; return their number."""
        return self._deletion.delete_before(offset, high_watermark, now_ms)

    def replace_segments(self, new: Segment, old: Sequence[Segment]) -> None:
        """Replace adjacent inactive segments with the segment that the cleaner made of them."""
        self._truncation.finish_pending_steps()
        self._deletion.replace_segments(new, old)
        self._flush.note_new_names()

    def take_over(self, replaced: LocalLog) -> None:
        """Copy the state that batches do not carry from the log that this future log replaces.

        That is the log start offset, leader epochs without records, producers whose records are all
        deleted, and the topic id, which a power cut may lose in a folder that is not synced. Both
        logs end at the same offset.
        """
        end, start = self.log_end_offset, replaced.log_start_offset
        assert end == replaced.log_end_offset
        if self.topic_id is None and replaced.topic_id is not None:
            self.assign_topic_id(replaced.topic_id)
        self.maybe_increment_log_start_offset(start, end, LogStartReason.LEADER_START)
        self.epochs.take_over(replaced.epochs)
        if self.producers.take_over(replaced.producers):
            self.snapshots.take_snapshot(end, self.log_start_offset, self.producers)

    def rename_directory(self, directory: str) -> None:
        """Rename the log's folder, after all pending syncs under its old name.

        Raises the StorageError of the syncs or of the rename; the folder then keeps the old name.
        """
        self._truncation.finish_pending_steps()
        self._flush.rename(directory)
        self.directory = self._lines.directory = directory
        self.snapshots.directory = self.epochs.directory = directory
        for segment in self.segments:
            segment.directory = directory
