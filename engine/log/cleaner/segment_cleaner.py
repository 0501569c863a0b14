"""The work of a cleaning on files: the map of keys, and the `.cleaned` files of a group.

Segments are opened by their paths. If one is truncated, deleted or replaced meanwhile, the work
fails or has a useless result: the owner of the log notices the change, and discards the result.

Source: Kafka's Cleaner.buildOffsetMap, cleanSegments.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from engine.errors import CorruptRecord, StorageError
from engine.host.ports import Buffer, Files
from engine.log.cleaner.batch_filter import (
    BatchFilter,
    CleaningTime,
    KeptBatch,
    fast_spans,
    has_plain_numbers,
    opened_bytes_max,
    opened_records,
)
from engine.log.cleaner.chunks import ChunkReader
from engine.log.cleaner.cleaning_facts import (
    CleaningCounts,
    CleaningFacts,
    DirtySegment,
    SegmentGroup,
    WorkSteps,
)
from engine.log.cleaner.offset_map import OffsetMap
from engine.log.cleaner.transactions import CleanedTransactions
from engine.log.log_config import LogConfig
from engine.log.new_segment import create_segment
from engine.log.segment import KINDS, Segment
from engine.naming import FileKind, FileState, SegmentFileName
from engine.native.clean_records import CleanerTier, CompiledCleaner
from engine.records.batch import BatchView
from engine.records.record import Record
from engine.records.view import RecordBatch

_INT_MAX = (1 << 31) - 1


class SegmentCleaner:
    """The work of one cleaning, over the files of its log; for one thread."""

    def __init__(self, files: Files, facts: CleaningFacts) -> None:
        """Allocate the map of offsets for the dirty range of `facts`."""
        #: Grow while the cleaning runs; copied for the loop at the end.
        self.counts = CleaningCounts()
        self._files = files
        self._facts = facts
        settings = facts.settings
        keys_max = max(facts.end_offset - facts.start_offset, 1)
        self._offsets = OffsetMap(settings.map_bytes, settings.load_factor, keys_max=keys_max)
        self._offsets.note_offset(facts.start_offset - 1)
        code = CleanerTier.code
        #: Native code over the memory of `_offsets`. None: plain Python does the same.
        self._compiled = None if code is None else CompiledCleaner(code, self._offsets.memory)
        #: Open and aborted transactions, across all groups: a marker may be removed once no batch
        #: of its transaction is left, in an earlier group either.
        self._transactions = CleanedTransactions()

    @property
    def latest_offset(self) -> int:
        """Return the last offset that the map covers (inclusive)."""
        return self._offsets.latest_offset

    def _path(self, base_offset: int) -> str:
        """Return the path of the .log file of a segment."""
        name = SegmentFileName(base_offset, FileKind.LOG).name
        return f"{self._facts.directory}/{name}"

    # The map

    def build_map(self) -> WorkSteps:
        """Add the last offset of each key in the dirty segments to the map, until the map is full.

        Yields the bytes read in each step. Raises CorruptRecord.
        """
        transactions = CleanedTransactions()
        transactions.add_aborted(self._facts.dirty_aborted)
        for segment in self._facts.dirty:
            yield from self._map_segment(segment, transactions)
            if self._offsets.is_full and self._offsets.latest_offset < segment.end_offset - 1:
                break
            # After its last record the segment may have had records that were removed.
            self._offsets.note_offset(segment.end_offset - 1)
        self.counts.map_utilization = self._offsets.utilization

    def _map_segment(
        self, segment: DirtySegment, transactions: CleanedTransactions
    ) -> Iterator[int]:
        """Add a dirty segment's keys to the map, up to the end or until the map is full.

        Yields the bytes read in each step, for the throttle.
        """
        for batches, size_bytes in self._read_batches(segment.base_offset, segment.position):
            for batch in batches:
                if not self._map_batch(batch, transactions):
                    self.counts.map_bytes += batch.position
                    return
            self.counts.map_bytes += size_bytes
            yield size_bytes

    def _map_batch(self, batch: RecordBatch, transactions: CleanedTransactions) -> bool:
        """Add a batch's keys to the offset map; return False if the map had no room for all.

        Batches of aborted transactions and control batches add no keys. The map's latest offset,
        up to which the log will be clean, moves to the end of the batch.
        """
        offsets, start, has_room = self._offsets, self._facts.start_offset, True
        if not transactions.may_discard(batch) and not batch.is_control:
            config = self._facts.config
            opened = opened_records(batch, config) if isinstance(batch, BatchView) else b""
            noted = self._map_keys_fast(batch, opened)
            has_room = self._map_keys(batch, opened) if noted is None else noted
        offsets.end_batch(max(batch.last_offset, start - 1))
        if has_room:
            offsets.note_offset(max(batch.last_offset, start - 1))
        return has_room

    def _map_keys_fast(self, batch: RecordBatch, opened: Buffer) -> bool | None:
        """Add a batch's keys to the map by compiled code; False if the map had no room for all.

        None if the compiled code does not support the batch.
        """
        if (
            self._compiled is None
            or not isinstance(batch, BatchView)
            or not has_plain_numbers(batch)
        ):
            return None
        offsets = self._offsets
        noted = self._compiled.note_keys(
            opened,
            batch.record_count,
            base_offset=batch.base_offset,
            start_offset=self._facts.start_offset,
            size=offsets.size,
            limit=offsets.limit,
        )
        if noted is None:
            return None
        offsets.size = noted.size
        offsets.note_offset(noted.latest_offset)
        self.counts.map_records += noted.record_count
        return not noted.is_full

    def _map_keys(self, batch: RecordBatch, opened: Buffer) -> bool:
        """Add a batch's keys to the map one by one; return False if the map had no room for all.

        For batches that the compiled code does not support.
        """
        offsets, start = self._offsets, self._facts.start_offset
        for key, offset in iter_keys(batch, opened, self._facts.config):
            if key is not None and offset >= start:
                if offsets.size >= offsets.limit:
                    return False
                offsets.put(key, offset)
            self.counts.map_records += 1
        return True

    def _read_batches(
        self, base_offset: int, position: int
    ) -> Iterator[tuple[Sequence[RecordBatch], int]]:
        """Yield (batches, their bytes) for each buffer that is read from `position` on."""
        settings = self._facts.settings
        batch_bytes_max = max(settings.batch_bytes_max, self._facts.config.max_message_bytes)
        file = self._files.open(self._path(base_offset))
        try:
            reader = ChunkReader(
                file, buffer_bytes=settings.buffer_bytes, batch_bytes_max=batch_bytes_max
            )
            while position < reader.size_bytes:
                batches = reader.read_batches(position)
                size_bytes = batches[-1].position + batches[-1].size_bytes
                position += size_bytes
                yield batches, size_bytes
        finally:
            file.close()

    # New segments

    def write_group(self, group: SegmentGroup) -> WorkSteps:
        """Write the kept records of a group to `.cleaned` files, and sync them.

        Yields the bytes read and written in each step, for the throttle. The files are removed at
        any error, and when the generator is closed. Raises CorruptRecord, and the errors of the
        host.
        """
        files, directory, base_offset = self._files, self._facts.directory, group.base_offset
        cleaned = create_segment(
            files,
            directory,
            base_offset,
            group.config,
            now_ms=self._facts.now_ms,
            state=FileState.CLEANED,
        )
        try:
            yield from self._write_sources(group, cleaned)
            cleaned.become_inactive()
            cleaned.sync(with_indexes=True)
            cleaned.keep_modified_ms(files.modified_ms(self._path(group.sources[-1].base_offset)))
            files.sync_dir(directory)
        except BaseException:
            # Also at a fault of the code: the log continues without this cleaning.
            cleaned.close_file()
            remove_cleaned_files(files, directory, base_offset)
            raise
        cleaned.close_file()

    def _write_sources(self, group: SegmentGroup, cleaned: Segment) -> Iterator[int]:
        """Write the kept records of a group to the cleaned segment.

        Yields after each chunk of a source the sum of the bytes read and written, because
        `log.cleaner.io.max.bytes.per.second` limits both together.
        """
        transactions = self._transactions
        transactions.on_kept = cleaned.add_aborted
        moment = CleaningTime(self._facts.now_ms, group.config.delete_retention_ms)
        batch_filter = BatchFilter(
            self._offsets,
            transactions,
            group.producers,
            moment,
            self._compiled,
            config=group.config,
        )
        for source in group.sources:
            transactions.add_aborted(source.aborted)
            modified_ms = self._files.modified_ms(self._path(source.base_offset))
            batch_filter.keeps_legacy_tombstones = modified_ms > self._facts.legacy_horizon_ms
            for batches, size_bytes in self._read_batches(source.base_offset, 0):
                self.counts.read_bytes += size_bytes
                yield size_bytes + self._write_batches(batches, cleaned, batch_filter)
        self.counts.read_records += batch_filter.records_read

    def _write_batches(
        self, batches: Sequence[RecordBatch], cleaned: Segment, batch_filter: BatchFilter
    ) -> int:
        """Append the kept parts of batches to the cleaned segment; return the bytes written."""
        kept: list[KeptBatch] = []
        for batch in batches:
            kept_batch = batch_filter.filter_batch(batch)
            if kept_batch is not None:
                kept.append(kept_batch)
        if kept:
            append_kept_batches(cleaned, kept)
        kept_bytes = sum(len(batch.content) for batch in kept)
        self.counts.kept_bytes += kept_bytes
        self.counts.kept_records += sum(batch.record_count for batch in kept)
        return kept_bytes


def remove_cleaned_files(files: Files, directory: str, base_offset: int) -> None:
    """Remove the `.cleaned` files of a base offset; ignore errors, the next start removes them."""
    for kind in KINDS:
        name = SegmentFileName(base_offset, kind, FileState.CLEANED).name
        # If the log's directory was deleted or renamed, the file has left this path too.
        with suppress(StorageError):
            if files.exists(f"{directory}/{name}"):
                files.remove(f"{directory}/{name}")


class CleanedSegmentTooLarge(StorageError):
    """The kept records of a group do not fit into one segment: positions are int32.

    Source: FileRecords.append, whose exception makes the partition uncleanable.
    """

    def __init__(self, path: str, size_bytes: int) -> None:
        super().__init__(f"{path}: {size_bytes} bytes are more than a segment takes")
        self.path = path
        self.size_bytes = size_bytes


def append_kept_batches(cleaned: Segment, kept: Sequence[KeptBatch]) -> None:
    """Append the kept batches to the cleaned segment in one write.

    Raises CleanedSegmentTooLarge for a segment above 2 GiB, CorruptRecord for an offset that does
    not fit into the segment's index.
    """
    size_bytes = cleaned.size_bytes + sum(len(batch.content) for batch in kept)
    if size_bytes > _INT_MAX:
        raise CleanedSegmentTooLarge(cleaned.path(FileKind.LOG), size_bytes)
    last_offset = kept[-1].last_offset
    if last_offset - cleaned.base_offset > _INT_MAX:
        raise CorruptRecord(f"an offset up to 2^31 above {cleaned.base_offset}", last_offset)
    contents = [batch.content for batch in kept]
    facts = [(len(b.content), b.last_offset, b.max_timestamp_ms) for b in kept]
    cleaned.append_batches(contents, facts)


def iter_keys(
    batch: RecordBatch, opened: Buffer, config: LogConfig
) -> Iterator[tuple[bytes | None, int]]:
    """Yield (key, offset) of each record of a batch. Raises CorruptRecord.

    `opened` are the decompressed records of a batch of magic 2.
    """
    records: Iterable[Record] = ()
    if not isinstance(batch, BatchView):
        limit_bytes = opened_bytes_max(batch.size_bytes, config)
        records = batch.read_records(limit_bytes=limit_bytes)
    elif batch.record_count:
        data = bytes(opened)
        spans = fast_spans(batch, data)
        if spans is not None:
            base = batch.base_offset
            for span in spans:
                yield span.key, base + span.offset_delta
            return
        records = batch.records_in(data)
    for record in records:
        yield record.key, record.offset
