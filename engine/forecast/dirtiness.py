"""Dirtiness of the compacted logs in a directory, by names, sizes and indexes; opens no log.

Open transactions are ignored here, although the cleaner stops before the first record of one.

Source: CMP-2, CMP-3; Kafka's LogCleanerManager.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from engine.errors import CorruptRecord
from engine.forecast.directory_history import first_timestamp_ms, read_history
from engine.forecast.log_history import LogHistory
from engine.host.ports import Files
from engine.log.cleaner.cleanable import (
    CleanableLog,
    CleanableSegment,
    find_cleanable_range,
)
from engine.log.cleaner.compaction_wait import CompactionWait, compaction_wait
from engine.log.directory.log_dir import LogDir
from engine.log.directory.offset_checkpoint import CLEANER_POINTS
from engine.log.log_config import LogConfig
from engine.model import TopicPartition


class CompactedLog(NamedTuple):
    """The dirtiness of a log, or the result of its cleaning; end offsets are exclusive.

    `cleanable_bytes` is the size of what may be cleaned, and so the most that can be freed. `fault`
    is the damage because of which it could not be cleaned.
    """

    topic_partition: TopicPartition
    first_dirty_offset: int
    first_uncleanable_offset: int
    log_end_offset: int
    size_bytes: int
    cleanable_bytes: int
    dirty_ratio: float
    is_due: bool
    waits_for: CompactionWait | None = None
    pass_count: int = 0
    freed_bytes: int = 0
    freed_records: int = 0
    fault: CorruptRecord | None = None


def compacted_log(facts: CleanableLog, config: LogConfig, now_ms: int) -> CompactedLog:
    """Return the dirty range, dirty ratio and sizes of a log at the wall time `now_ms`."""
    cleanable = find_cleanable_range(facts, config, now_ms)
    return CompactedLog(
        cleanable.topic_partition,
        cleanable.first_dirty_offset,
        cleanable.first_uncleanable_offset,
        facts.log_end_offset,
        sum(segment.size_bytes for segment in facts.segments),
        cleanable.cleanable_bytes,
        cleanable.dirty_ratio,
        cleanable.may_be_cleaned(config),
        compaction_wait(facts, cleanable, config, now_ms),
    )


def read_dirtiness(
    files: Files,
    log_dir: LogDir,
    config: LogConfig,
    is_wanted: Callable[[str], bool],
    now_ms: int,
) -> Iterator[CompactedLog]:
    """Yield the dirtiness of each wanted log, as if all were compacted with `config`."""
    for folder in log_dir.partitions:
        log = read_history(files, folder, log_dir)
        if log is None or not is_wanted(log.topic_partition.topic):
            continue
        first_ms = partial(first_timestamp_ms, files, folder)
        checkpoint = log_dir.state.offset(CLEANER_POINTS, log.topic_partition)
        yield compacted_log(_cleanable_facts(log, checkpoint, first_ms), config, now_ms)


def _cleanable_facts(
    log: LogHistory, checkpoint_offset: int | None, first_ms: Callable[[int], int]
) -> CleanableLog:
    """Return the facts about a log from which the cleaner's rules find the cleanable range.

    `first_ms` returns the first timestamp of the segment with a base offset.
    """
    largest_ms = {segment.base_offset: segment.largest_timestamp_ms for segment in log.segments}
    end = log.segments[-1].end_offset
    return CleanableLog(
        log.topic_partition,
        [CleanableSegment(segment.base_offset, segment.size_bytes) for segment in log.segments],
        log.log_start_offset,
        end,
        min(log.high_watermark, end),
        checkpoint_offset,
        largest_ms.__getitem__,
        first_ms,
    )
