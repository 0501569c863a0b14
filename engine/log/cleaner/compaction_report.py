"""Report the progress of a broker's cleaner in each compacted log."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from engine.errors import EngineError
from engine.log.cleaner.cleanable import CleanableRange, find_cleanable_range
from engine.log.cleaner.compaction_state import (
    CleaningProgress,
    CleaningResult,
    CompactionPhase,
    LogCompaction,
)
from engine.log.cleaner.compaction_wait import CompactionWait, compaction_wait
from engine.log.cleaner.log_cleaner import LastCleaning, LogCleaner, RunningCleaning
from engine.log.cleaner.log_facts import collect_cleanable_log
from engine.log.local_log import LocalLog
from engine.model import TopicPartition


class CleanerLogs(NamedTuple):
    """The logs and offsets of the broker that the report reads."""

    logs: Mapping[TopicPartition, LocalLog]
    first_dirty_offset: Callable[[LocalLog], int | None]
    high_watermark_of: Callable[[TopicPartition], int]


def compaction_states(
    cleaner: LogCleaner, around: CleanerLogs, now_ms: int
) -> Iterator[LogCompaction]:
    """Yield the state of each compacted log of a broker, sorted by partition; changes nothing.

    The caller may serve other requests between two logs: a log that is deleted meanwhile is
    skipped.
    """
    for key, log in sorted(around.logs.items()):
        if log.config.is_compacted and around.logs.get(key) is log:
            yield _compaction_of(cleaner, around, log, now_ms)


def _compaction_of(
    cleaner: LogCleaner, around: CleanerLogs, log: LocalLog, now_ms: int
) -> LogCompaction:
    """Return the compaction state of one log; an unreadable file is reported as its `fault`."""
    key = log.topic_partition
    fault = cleaner.uncleanable.get(key)
    in_progress = cleaner.running_cleanings().get(key)
    cleanable: CleanableRange | None = None
    waiting: CompactionWait | None = None
    try:
        facts = collect_cleanable_log(
            log,
            high_watermark=around.high_watermark_of(key),
            checkpoint_offset=around.first_dirty_offset(log),
        )
        cleanable = find_cleanable_range(facts, log.config, now_ms)
        waiting = compaction_wait(facts, cleanable, log.config, now_ms)
    except EngineError as error:
        # Times of segments are read from files.
        fault = fault or str(error)
    return LogCompaction(
        *key,
        _phase(cleaner, key, fault, cleanable),
        log.size_bytes,
        *_dirty_bounds(around, log, cleanable),
        log.log_end_offset,
        0 if cleanable is None else cleanable.cleanable_bytes,
        0.0 if cleanable is None else cleanable.dirty_ratio,
        cleanable is not None and fault is None and cleanable.may_be_cleaned(log.config),
        waiting if fault is None else None,
        fault,
        None if in_progress is None else _progress(in_progress),
        _last_result(cleaner.last_cleanings.get(key)),
    )


def _phase(
    cleaner: LogCleaner, key: TopicPartition, fault: str | None, cleanable: CleanableRange | None
) -> CompactionPhase:
    """Return UNCLEANABLE with a `fault`, else CLEANING, WAITING (requested by users) or IDLE.

    `cleanable` is None if the log's files could not be read.
    """
    if fault is not None:
        return CompactionPhase.UNCLEANABLE
    if key in cleaner.in_progress:
        return CompactionPhase.CLEANING
    if key in cleaner.wanted and cleanable is not None and cleanable.cleanable_bytes:
        return CompactionPhase.WAITING
    return CompactionPhase.IDLE


def _dirty_bounds(
    around: CleanerLogs, log: LocalLog, cleanable: CleanableRange | None
) -> tuple[int, int]:
    """Return first dirty and first uncleanable offset; equal if the cleanable range is unknown."""
    if cleanable is not None:
        return cleanable.first_dirty_offset, cleanable.first_uncleanable_offset
    known = around.first_dirty_offset(log)
    first_dirty = log.log_start_offset if known is None else known
    return first_dirty, first_dirty


def _progress(cleaning: RunningCleaning) -> CleaningProgress:
    """Return elapsed ms, bytes read, and all bytes to read in this cleaning."""
    cleanable, counts = cleaning.cleanable, cleaning.counts
    # The dirty part is read for its keys first, then all of it for the kept records.
    total = cleanable.cleanable_bytes + cleanable.total_bytes
    done = counts.map_bytes + counts.read_bytes
    return CleaningProgress(cleaning.elapsed_ms, min(done, total), total)


def _last_result(last: LastCleaning | None) -> CleaningResult | None:
    """Return offsets, sizes and times of the last cleaning, or None if there was none."""
    if last is None:
        return None
    counts = last.counts
    return CleaningResult(
        last.start_offset,
        last.end_offset,
        counts.read_bytes,
        counts.kept_bytes,
        counts.read_records,
        counts.kept_records,
        counts.map_bytes + counts.read_bytes,
        last.elapsed_ms,
        last.ended_ms,
    )
