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
from engine.log.cleaner.segment_cleaner import SegmentCleaner, remove_cleaned
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
        self.facts = self._facts(settings)
        #: The worker's part; may be exchanged before it begins.
        self.work: CleaningWork = SegmentCleaner(files, self.facts)
        #: The segments that the worker is rewriting into one. None between groups.
        self._group: SegmentGroup | None = None

    def _facts(self, settings: CleaningSettings) -> CleaningFacts:
        """Return the facts for the worker: the dirty segments, horizons, aborted transactions."""
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
        """Return the file time in ms up to which segments lose tombstones of magic 0 and 1."""
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
        """Make the worker's next check raise CleaningAborted."""
        self.is_stopped = True

    @property
    def is_of_use(self) -> bool:
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
        """Raise CleaningAborted unless the log still has the segments that were read."""
        if not self.is_of_use:
            raise CleaningAborted(f"the cleaning of {self.log.topic_partition} was stopped")

    # 3, 4 groups

    def groups(self) -> list[list[int]]:
        """Return the base offsets of each group of segments that become one.

        Step 3, on the loop.
        """
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
        """Return the size of a closed segment's index file, without loading the index."""
        try:
            return self._files.size_bytes(path)
        except FileMissing:
            return 0

    def begin_group(self, bases: Sequence[int]) -> SegmentGroup:
        """Record a group's segments: step 4, on the loop. Raises CleaningAborted."""
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
            remove_cleaned(self._files, self.facts.directory, group.base_offset)

    # 6 replacing

    def replace(self) -> None:
        """Replace the group of segments by the cleaned one: step 6, on the loop.

        Raises CleaningAborted if the log's segments have changed meanwhile.
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
        """Run the whole cleaning on this thread, for tools and tests; return the new clean offset.

        Raises CorruptRecord and the errors of the host.
        """
        for _ in self.work.build_map():
            pass
        for bases in self.groups():
            for _ in self.work.write_group(self.begin_group(bases)):
                pass
            self.replace()
        self._files.sync_dir(self.log.directory)
        return self.end_offset


def _position_in(segment: Segment, offset: int) -> int:
    """Return the position to read a segment from, to get all records from an offset on."""
    if offset <= segment.base_offset:
        return 0
    return segment.index.lookup(offset).position
