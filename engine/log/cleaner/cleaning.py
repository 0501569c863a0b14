"""One cleaning of one log: what is read and written beside the loop, and what is done on it.

```
 on the loop                              beside it
 1 take note of what is dirty
                                          2 offset map of the dirty segments
 3 group the segments up to its end
 4 take note of a group              ┐
                                     │    5 write the group's .cleaned files, make them durable
 6 put them in the group's place     ┘      names too
 7 first dirty offset = behind the map's last offset
```

Between two steps a log may be cut, deleted, or moved. Nobody is asked to wait for a cleaning: it
looks whether the segments that it read are still those of the log, before each piece that it reads
and in step 6. If not, it ends (`CleaningAborted`), and what it has written is removed. Steps 4 to
6 of one group change nothing that those of another one need, so an end between them leaves a log
that is cleaned in part.

Source: Kafka's Cleaner.doClean, cleanSegments. Differs: no lock of the cleaner's manager, so that a
truncation waits for nothing.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from engine.errors import CorruptRecord, EngineError, StorageError
from engine.host.ports import FileMissing, Files
from engine.log.cleaner.batch_filter import (
    BatchFilter,
    CleaningMoment,
    KeptBatch,
    ProducerEnd,
    usual_spans,
)
from engine.log.cleaner.chunks import ChunkReader
from engine.log.cleaner.cleanable import CleanableRange
from engine.log.cleaner.grouping import GroupedSegment, group_segments
from engine.log.cleaner.offset_map import OffsetMap
from engine.log.cleaner.throttle import CleanerThrottle
from engine.log.cleaner.transactions import CleanedTransactions
from engine.log.local_log import LocalLog
from engine.log.log_reader import collect_aborted
from engine.log.segment import Segment, create_segment
from engine.log.txn_index import AbortedTransaction
from engine.naming import FileKind, FileState
from engine.records.batch import BatchView
from engine.records.record import Record
from engine.records.view import RecordBatch

_INT_MAX = (1 << 31) - 1


class CleaningAborted(EngineError):
    """A cleaning ended because its log changed, or because the cleaner stops."""


class CleaningSettings(NamedTuple):
    """What one cleaner has: memory for its map, and for reading; sizes in bytes."""

    map_bytes: int = 128 << 20
    load_factor: float = 0.9
    buffer_bytes: int = 512 << 9
    batch_bytes_max: int = 1_048_588


class CleaningCounts:
    """What a cleaning has read and written."""

    def __init__(self) -> None:
        self.map_bytes = 0
        self.map_records = 0
        self.read_bytes = 0
        self.read_records = 0
        self.kept_bytes = 0
        self.kept_records = 0
        self.map_utilization = 0.0


class SegmentGroup(NamedTuple):
    """Segments that become one, each with the aborted transactions that touch it."""

    segments: Sequence[Segment]
    aborted: Sequence[Sequence[AbortedTransaction]]
    producers: dict[int, ProducerEnd]


class CleaningRun:
    """One cleaning; generators run beside the loop, and yield for how many ms to pause."""

    def __init__(
        self,
        files: Files,
        log: LocalLog,
        cleanable: CleanableRange,
        settings: CleaningSettings,
        *,
        now_ms: int,
        throttle: CleanerThrottle,
    ) -> None:
        """Take note of what is dirty: step 1."""
        self.log = log
        self.cleanable = cleanable
        self.counts = CleaningCounts()
        self.is_stopped = False
        self._files = files
        self._settings = settings
        self._throttle = throttle
        self._now_ms = now_ms
        start, end = cleanable.first_dirty_offset, cleanable.first_uncleanable_offset
        keys_max = max(end - start, 1)
        self._offsets = OffsetMap(settings.map_bytes, settings.load_factor, keys_max=keys_max)
        self._offsets.note_offset(start - 1)
        self._dirty = log.segments.between(start, end) if start < end else []
        self._dirty_aborted = collect_aborted(log.segments, start, end)
        self._transactions = CleanedTransactions()
        self._legacy_horizon_ms = self._legacy_horizon()
        self._borrowed: list[Segment] = []
        self._cut_count = log.cut_count

    @property
    def end_offset(self) -> int:
        """Return up to where the log is clean after this (exclusive)."""
        return self._offsets.latest_offset + 1

    def stop(self) -> None:
        """End soon, with CleaningAborted."""
        self.is_stopped = True

    def ensure_unchanged(self) -> None:
        """Raise CleaningAborted unless the log still has what was read of it."""
        log = self.log
        # Records that were cut off are in the map, and must not hide earlier ones.
        is_cut = log.cut_count != self._cut_count
        if self.is_stopped or is_cut or any(segment.is_gone for segment in self._borrowed):
            raise CleaningAborted(f"the cleaning of {log.topic_partition} was stopped")

    def _borrow(self, segments: Sequence[Segment]) -> None:
        """Keep the files of segments open until `release`."""
        for segment in segments:
            segment.borrow()
        self._borrowed += segments

    def release(self) -> None:
        """Let go of all files."""
        borrowed, self._borrowed = self._borrowed, []
        for segment in borrowed:
            segment.give_back()

    def _legacy_horizon(self) -> int:
        start = self.cleanable.first_dirty_offset
        clean = [segment for segment in self.log.segments if segment.base_offset < start]
        if not clean:
            return 0
        return clean[-1].modified_ms() - self.log.config.delete_retention_ms

    # 2 the map

    def begin_map(self) -> None:
        """Keep the dirty segments open for `build_map`, on the loop."""
        self._borrow(self._dirty)

    def build_map(self) -> Generator[int, None, None]:
        """Note the last offset of each key in the dirty segments. Raises CorruptRecord."""
        transactions = CleanedTransactions()
        transactions.add_aborted(self._dirty_aborted)
        bases = [segment.base_offset for segment in self._dirty[1:]]
        ends = (*bases, self.cleanable.first_uncleanable_offset)[: len(self._dirty)]
        for segment, end in zip(self._dirty, ends, strict=True):
            yield from self._map_segment(segment, transactions)
            if self._offsets.is_full and self._offsets.latest_offset < end - 1:
                break
            # Behind its last record a segment may have had others.
            self._offsets.note_offset(end - 1)
        self.counts.map_utilization = self._offsets.utilization

    def _map_segment(self, segment: Segment, transactions: CleanedTransactions) -> Iterator[int]:
        reader = self._reader(segment)
        position = segment.index.lookup(self.cleanable.first_dirty_offset).position
        while position < reader.size_bytes:
            self.ensure_unchanged()
            batches = reader.batches_at(position)
            for batch in batches:
                if not self._map_batch(batch, transactions):
                    return
                position += batch.size_bytes
                self.counts.map_bytes += batch.size_bytes
            yield self._throttle.pause_ms(sum(batch.size_bytes for batch in batches))

    def _map_batch(self, batch: RecordBatch, transactions: CleanedTransactions) -> bool:
        """Take a batch into the map; tells whether all of it had room."""
        offsets, start = self._offsets, self.cleanable.first_dirty_offset
        if not transactions.may_discard(batch) and not batch.is_control:
            for key, offset in keys_of(batch):
                if key is not None and offset >= start:
                    if offsets.size >= offsets.limit:
                        return False
                    offsets.put(key, offset)
                self.counts.map_records += 1
        if batch.last_offset >= start:
            offsets.note_offset(batch.last_offset)
        return True

    def _reader(self, segment: Segment) -> ChunkReader:
        settings = self._settings
        batch_bytes_max = max(settings.batch_bytes_max, self.log.config.max_message_bytes)
        return ChunkReader(
            segment.file, buffer_bytes=settings.buffer_bytes, batch_bytes_max=batch_bytes_max
        )

    # 3, 4 groups

    def groups(self) -> list[list[int]]:
        """Return the base offsets of the segments that become one each; steps 3, on the loop."""
        end = self.end_offset
        segments = self.log.segments.between(0, end) if end > 0 else []
        facts = [
            GroupedSegment(
                segment.base_offset,
                segment.size_bytes,
                self._size_of(segment.path(FileKind.INDEX)),
                self._size_of(segment.path(FileKind.TIMEINDEX)),
            )
            for segment in segments
        ]
        first_uncleanable = self.cleanable.first_uncleanable_offset
        return group_segments(facts, self.log.config, first_uncleanable)

    def _size_of(self, path: str) -> int:
        """Return the size of a closed segment's index, which is not loaded for that."""
        try:
            return self._files.size_bytes(path)
        except FileMissing:
            return 0

    def begin_group(self, bases: Sequence[int]) -> SegmentGroup:
        """Take note of a group: step 4, on the loop. Raises CleaningAborted."""
        self.ensure_unchanged()
        log = self.log
        chosen = set(bases)
        segments = [segment for segment in log.segments if segment.base_offset in chosen]
        if len(segments) != len(bases) or segments[-1] is log.active_segment:
            raise CleaningAborted(f"the segments of {log.topic_partition} are gone")
        self._borrow(segments)
        aborted = []
        for segment in segments:
            following = log.segments.higher(segment.base_offset)
            assert following is not None
            start, end = segment.base_offset, following.base_offset
            aborted.append(collect_aborted(log.segments, start, end))
        producers = {
            producer_id: ProducerEnd(
                producer.epoch, producer.batches[-1].last_offset if producer.batches else None
            )
            for producer_id, producer in log.producers.producers.items()
        }
        return SegmentGroup(segments, aborted, producers)

    # 5 writing

    def write_group(self, group: SegmentGroup) -> Generator[int | Segment, None, None]:
        """Write what is left of a group, durably; yields the new segment last.

        Raises CorruptRecord, CleaningAborted; what was written is removed then.
        """
        log, now_ms = self.log, self._now_ms
        cleaned = create_segment(
            self._files,
            log.directory,
            group.segments[0].base_offset,
            log.config,
            now_ms=now_ms,
            state=FileState.CLEANED,
        )
        try:
            yield from self._write(group, cleaned)
            cleaned.become_inactive()
            cleaned.sync(with_indexes=True)
            cleaned.keep_modified_ms(group.segments[-1].modified_ms())
            self._files.sync_dir(log.directory)
            self.ensure_unchanged()
        except (EngineError, GeneratorExit):
            self.discard(cleaned)
            raise
        yield cleaned

    def _write(self, group: SegmentGroup, cleaned: Segment) -> Iterator[int]:
        transactions = self._transactions
        transactions.on_kept = cleaned.add_aborted
        moment = CleaningMoment(self._now_ms, self.log.config.delete_retention_ms)
        batch_filter = BatchFilter(self._offsets, transactions, group.producers, moment)
        for segment, aborted in zip(group.segments, group.aborted, strict=True):
            transactions.add_aborted(aborted)
            modified_ms = segment.modified_ms()
            batch_filter.keeps_legacy_tombstones = modified_ms > self._legacy_horizon_ms
            yield from self._write_segment(segment, cleaned, batch_filter)
        self.counts.read_records += batch_filter.records_read

    def _write_segment(
        self, segment: Segment, cleaned: Segment, batch_filter: BatchFilter
    ) -> Iterator[int]:
        reader, position, counts = self._reader(segment), 0, self.counts
        while position < reader.size_bytes:
            self.ensure_unchanged()
            batches = reader.batches_at(position)
            kept: list[KeptBatch] = []
            done_bytes = sum(batch.size_bytes for batch in batches)
            for batch in batches:
                kept_batch = batch_filter.keep(batch)
                if kept_batch is not None:
                    kept.append(kept_batch)
            kept_bytes = sum(len(batch.content) for batch in kept)
            position += done_bytes
            counts.read_bytes += done_bytes
            counts.kept_bytes += kept_bytes
            counts.kept_records += sum(batch.record_count for batch in kept)
            if kept:
                _append(cleaned, kept)
            yield self._throttle.pause_ms(done_bytes + kept_bytes)

    def discard(self, cleaned: Segment) -> None:
        """Remove a new segment that has no place in the log any more."""
        cleaned.close_file()
        # If its directory is gone so is the segment, and the next start removes what is left.
        with suppress(StorageError):
            cleaned.remove_files()

    # 6 replacing

    def replace(self, group: SegmentGroup, cleaned: Segment) -> None:
        """Put a new segment in the place of its group: step 6, on the loop.

        Raises CleaningAborted when the log has others by now.
        """
        try:
            self.ensure_unchanged()
        except CleaningAborted:
            self.discard(cleaned)
            raise
        self.log.replace_segments(cleaned, group.segments)

    def clean_inline(self) -> int:
        """Do all of it at once, as tools and tests do; returns the offset up to which it is clean.

        Errors: CorruptRecord, and those of the host.
        """
        try:
            self.begin_map()
            for _ in self.build_map():
                pass
            for bases in self.groups():
                self.release()
                group = self.begin_group(bases)
                for step in self.write_group(group):
                    if isinstance(step, Segment):
                        self.replace(group, step)
        finally:
            self.release()
        self._files.sync_dir(self.log.directory)
        return self.end_offset


def _append(cleaned: Segment, kept: Sequence[KeptBatch]) -> None:
    last_offset = kept[-1].last_offset
    if last_offset - cleaned.base_offset > _INT_MAX:
        raise CorruptRecord(f"an offset up to 2^31 above {cleaned.base_offset}", last_offset)
    contents = [batch.content for batch in kept]
    facts = [(len(b.content), b.last_offset, b.max_timestamp_ms) for b in kept]
    cleaned.append_batches(contents, facts)


def keys_of(batch: RecordBatch) -> Iterator[tuple[bytes | None, int]]:
    """Yield the key and the offset of each record. Raises CorruptRecord."""
    records: Iterable[Record] = ()
    if not isinstance(batch, BatchView):
        records = batch.read_records()
    elif batch.record_count:
        data = batch.opened()
        spans = usual_spans(batch, data)
        if spans is not None:
            base = batch.base_offset
            for span in spans:
                yield span.key, base + span.offset_delta
            return
        records = batch.records_in(data)
    for record in records:
        yield record.key, record.offset
