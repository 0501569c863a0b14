"""One cleaning of one log: its steps on a worker thread, and those on the loop.

```
 on the loop                              on a worker thread
 1 record the dirty segments
                                          2 offset map of the dirty segments
 3 group the segments up to its end
 4 record a group                    ┐
                                     │    5 write the group's .cleaned files; sync files and folder
 6 replace the group by them         ┘
 7 first dirty offset = after the map's last offset
```

Between two steps a log may be truncated, deleted or moved, without waiting for the cleaning. Before
each chunk that it reads and in step 6 the cleaning checks that the log still has the segments that
were read. If not, it ends (`CleaningAborted`), and its files are removed. Groups are independent of
each other, so an end between two groups leaves a partly cleaned log.

Source: Kafka's Cleaner.doClean, cleanSegments. Differs: there is no lock of the cleaner's manager,
so that a truncation never waits.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.errors import EngineError
from engine.host.ports import FileMissing, Files
from engine.log.cleaner.cleanable import CleanableRange
from engine.log.cleaner.cleaning_facts import (
    CleaningCounts,
    CleaningFacts,
    CleaningSettings,
    CleaningWork,
    DirtySegment,
    GroupedSource,
    ProducerEnd,
    SegmentGroup,
)
from engine.log.cleaner.grouping import GroupedSegment, group_segments
from engine.log.cleaner.segment_cleaner import SegmentCleaner, remove_cleaned_files
from engine.log.local_log import LocalLog
from engine.log.log_reader import collect_aborted
from engine.log.segment import Segment
from engine.naming import FileKind, FileState


class CleaningAborted(EngineError):
    """A cleaning ended because its log changed, or because the cleaner stops."""


class CleaningRun:
    """One cleaning, seen from the loop: collects facts for its worker, and applies the results."""

    def __init__(
        self,
        files: Files,
        log: LocalLog,
        cleanable: CleanableRange,
        settings: CleaningSettings,
        *,
        now_ms: int,
    ) -> None:
        """Record the dirty segments: step 1. Call it on the loop."""
        self.log = log
        self.cleanable = cleanable
        #: Set by an abort; results of the worker that come later are discarded.
        self.is_stopped = False
        self._files = files
        self._now_ms = now_ms
        #: The log's number of truncations at the start; a later one invalidates the cleaning.
        self._truncation_count = log.truncation_count
        start, end = cleanable.first_dirty_offset, cleanable.first_uncleanable_offset
        #: The segments being read, to notice when one is removed.
        self._at_hand: Sequence[Segment] = log.segments.between(start, end) if start < end else ()
        self.facts = self._collect_facts(settings)
        #: The worker's part; may be exchanged before it begins.
        self.work: CleaningWork = SegmentCleaner(files, self.facts)
        #: The segments that the worker is rewriting into one. None between groups.
        self._group: SegmentGroup | None = None

    def _collect_facts(self, settings: CleaningSettings) -> CleaningFacts:
        """Return what the worker thread needs: dirty segments, horizons and aborted transactions.

        The worker must not read the log's own state, which the event loop changes.
        """
        log, cleanable = self.log, self.cleanable
        start, end = cleanable.first_dirty_offset, cleanable.first_uncleanable_offset
        ends = [*(segment.base_offset for segment in self._at_hand[1:]), end]
        dirty = [
            DirtySegment(segment.base_offset, _position_in(segment, start), end_offset)
            for segment, end_offset in zip(self._at_hand, ends, strict=False)
        ]
        return CleaningFacts(
            log.directory,
            log.config,
            settings,
            self._now_ms,
            start,
            end,
            self._legacy_horizon(),
            dirty,
            collect_aborted(log.segments, start, end),
        )

    def _legacy_horizon(self) -> int:
        """Return the file time in ms up to which segments lose their tombstones of magic 0 and 1.

        The modification time of the last clean segment less `delete.retention.ms`; 0 if none is
        clean. Such batches have no delete horizon field. Source: Cleaner.doClean.
        """
        start = self.cleanable.first_dirty_offset
        clean = [segment for segment in self.log.segments if segment.base_offset < start]
        if not clean:
            return 0
        return clean[-1].modified_ms() - self.log.config.delete_retention_ms

    @property
    def counts(self) -> CleaningCounts:
        """Return the bytes and records read and written."""
        return self.work.counts

    @property
    def end_offset(self) -> int:
        """Return the offset up to which the log is clean after this run (exclusive)."""
        return self.work.latest_offset + 1

    def stop(self) -> None:
        """Request the abort of the cleaning: the worker's next check raises CleaningAborted."""
        self.is_stopped = True

    @property
    def is_still_valid(self) -> bool:
        """Return True if the log still has the segments that were read, and is still compacted.

        Source: LogManager.updateTopicConfig, which aborts the cleaning of a log that is no longer
        compacted.
        """
        # Truncated records are in the map, and must not hide earlier ones.
        is_cut = self.log.truncation_count != self._truncation_count
        is_kept_whole = not self.log.config.is_compacted
        is_gone = any(segment.is_gone for segment in self._at_hand)
        return not (self.is_stopped or is_cut or is_kept_whole or is_gone)

    def ensure_unchanged(self) -> None:
        """Raise CleaningAborted unless the log still has the segments that were read.

        Called before each step: a truncated or deleted log must not get cleaned segments.
        """
        if not self.is_still_valid:
            raise CleaningAborted(f"the cleaning of {self.log.topic_partition} was stopped")

    # 3, 4 groups

    def group_segments(self) -> list[list[int]]:
        """Return, for each group of segments to merge into one, the base offsets of its segments.

        Step 3 of the cleaning, on the event loop, after the map of keys is built. The sizes of
        indexes count too, because an index has a size limit as the log file has.
        """
        end = self.end_offset
        segments = self.log.segments.between(0, end) if end > 0 else []
        facts = [
            GroupedSegment(
                segment.base_offset,
                segment.size_bytes,
                self._index_bytes(segment.path(FileKind.INDEX)),
                self._index_bytes(segment.path(FileKind.TIMEINDEX)),
            )
            for segment in segments
        ]
        first_uncleanable = self.cleanable.first_uncleanable_offset
        return group_segments(facts, self.log.config, first_uncleanable)

    def _index_bytes(self, path: str) -> int:
        """Return the size of a closed segment's index file, 0 without a file.

        The index itself is not loaded.
        """
        try:
            return self._files.size_bytes(path)
        except FileMissing:
            return 0

    def begin_group(self, bases: Sequence[int]) -> SegmentGroup:
        """Record a group's segments, and return the facts that the worker needs to rewrite them.

        Step 4 of the cleaning, on the event loop. Raises CleaningAborted if one of the segments is
        gone.
        """
        self._at_hand = ()
        self.ensure_unchanged()
        log = self.log
        chosen = set(bases)
        segments = [segment for segment in log.segments if segment.base_offset in chosen]
        if len(segments) != len(bases) or segments[-1] is log.active_segment:
            raise CleaningAborted(f"the segments of {log.topic_partition} are gone")
        self._at_hand = segments
        sources = []
        for segment in segments:
            following = log.segments.higher(segment.base_offset)
            assert following is not None
            start, end = segment.base_offset, following.base_offset
            sources.append(GroupedSource(start, collect_aborted(log.segments, start, end)))
        producers = {
            producer_id: ProducerEnd(
                producer.epoch, producer.batches[-1].last_offset if producer.batches else None
            )
            for producer_id, producer in log.producers.producers.items()
        }
        self._group = SegmentGroup(log.config, sources, producers)
        return self._group

    def discard(self) -> None:
        """Remove the `.cleaned` files of a group that has not replaced its segments.

        They are removed from the folder in which they were written, even if the log was renamed
        since.
        """
        group, self._group = self._group, None
        if group is not None:
            remove_cleaned_files(self._files, self.facts.directory, group.base_offset)

    # 6 replacing

    def replace_group(self) -> None:
        """Replace the current group of segments by the cleaned one.

        Step 6 of the cleaning, on the event loop. Raises CleaningAborted if the log's segments have
        changed meanwhile; the cleaned files are then discarded.
        """
        group = self._group
        assert group is not None
        try:
            self.ensure_unchanged()
        except CleaningAborted:
            self.discard()
            raise
        log, old = self.log, self._at_hand
        cleaned = Segment(
            self._files,
            log.directory,
            group.base_offset,
            log.config,
            now_ms=self._now_ms,
            state=FileState.CLEANED,
        )
        self._group, self._at_hand = None, ()
        log.replace_segments(cleaned, old)

    def clean_inline(self) -> int:
        """Run the whole cleaning on the caller's thread, where no broker serves the log.

        Returns the new first dirty offset. Raises CorruptRecord and the errors of the host.
        """
        for _ in self.work.build_map():
            pass
        for bases in self.group_segments():
            for _ in self.work.write_group(self.begin_group(bases)):
                pass
            self.replace_group()
        self._files.sync_dir(self.log.directory)
        return self.end_offset


def _position_in(segment: Segment, offset: int) -> int:
    """Return the byte position in a segment from which the records from `offset` on can be read."""
    if offset <= segment.base_offset:
        return 0
    return segment.index.lookup(offset).position
