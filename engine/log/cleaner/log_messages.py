"""The log lines about the cleaner that operators search for, at INFO and WARN.

```
Beginning cleaning of log <partition>: [<first dirty>, <first uncleanable>)
Log cleaner thread cleaned log <partition> (dirty section = [<from>, <to>])
    … of log processed, indexed, buffer utilization, start and end size, reduction
The cleaning for partition <partition> is aborted
Resetting first dirty offset of <partition> to log start offset <offset>: …
Unexpected exception thrown when cleaning log <partition>. Marking its partition as uncleanable
    … uncleanable-partitions-count, uncleanable-bytes of its log directory
The cleaning for partition <partition> failed, and is tried again
```

The logger and the first words are Kafka's, which tools search for. Source: kafka.log.LogCleaner.
"""

from __future__ import annotations

import logging

from engine.errors import EngineError
from engine.log.cleaner.cleanable import CheckpointFault, CleanableRange
from engine.log.cleaner.cleaning_facts import CleaningCounts
from engine.log.cleaner.uncleanable import UncleanableCount
from engine.model import TopicPartition

_log = logging.getLogger("kafka.log.LogCleaner")
_manager_log = logging.getLogger("kafka.log.LogCleanerManager")

_MIB = 1 << 20


def log_begin(cleanable: CleanableRange) -> None:
    """Log that the cleaning of a log starts."""
    _log.info(
        "Beginning cleaning of log %s: [%d, %d), %.1f%% dirty",
        cleanable.topic_partition,
        cleanable.first_dirty_offset,
        cleanable.first_uncleanable_offset,
        100 * cleanable.dirty_ratio,
    )


def log_end(
    topic_partition: TopicPartition,
    section: tuple[int, int],
    counts: CleaningCounts,
    elapsed_ms: int,
) -> None:
    """Log the figures of a finished cleaning, in the words of Kafka's log cleaner.

    `section` is the cleaned range of offsets, [first dirty, end).
    """
    seconds = max(elapsed_ms, 1) / 1000
    processed = (counts.read_bytes + counts.kept_bytes + counts.map_bytes) / _MIB
    size_reduction = _reduction(counts.read_bytes, counts.kept_bytes)
    record_reduction = _reduction(counts.read_records, counts.kept_records)
    _log.info(
        "Log cleaner thread cleaned log %s (dirty section = [%d, %d])\n"
        "\t%.1f MB of log processed in %.1f seconds (%.1f MB/sec).\n"
        "\tIndexed %.1f MB, %d messages\n"
        "\tBuffer utilization: %.1f%%\n"
        "\tStart size: %.1f MB (%d messages)\n"
        "\tEnd size: %.1f MB (%d messages)\n"
        "\t%.1f%% size reduction (%.1f%% fewer messages)",
        topic_partition,
        *section,
        processed,
        seconds,
        processed / seconds,
        counts.map_bytes / _MIB,
        counts.map_records,
        100 * counts.map_utilization,
        counts.read_bytes / _MIB,
        counts.read_records,
        counts.kept_bytes / _MIB,
        counts.kept_records,
        100 * size_reduction,
        100 * record_reduction,
    )


def log_aborted(topic_partition: TopicPartition, reason: object) -> None:
    """Log that a cleaning ended because its log changed."""
    _manager_log.info("The cleaning for partition %s is aborted: %s", topic_partition, reason)


def log_reset(cleanable: CleanableRange) -> None:
    """Log that a cleaner checkpoint outside of its log is ignored, so that all of it is dirty."""
    fault = cleanable.checkpoint_fault
    if fault is CheckpointFault.ABOVE_END or fault is CheckpointFault.BELOW_START:
        _manager_log.warning(
            "Resetting first dirty offset of %s to log start offset %d: the checkpoint is %s",
            cleanable.topic_partition,
            cleanable.first_dirty_offset,
            fault.value,
        )


def log_uncleanable(
    topic_partition: TopicPartition, error: Exception, directory: str, count: UncleanableCount
) -> None:
    """Log that a partition is not cleaned until the broker restarts.

    `count` has the figures of its log directory, under the names of Kafka's metrics. An error that
    is no EngineError is logged with its traceback.
    """
    _log.warning(
        "Unexpected exception thrown when cleaning log %s. "
        "Marking its partition as uncleanable: %s "
        "(uncleanable-partitions-count=%d, uncleanable-bytes=%d in %s)",
        topic_partition,
        error if isinstance(error, EngineError) else repr(error),
        *count,
        directory,
        exc_info=None if isinstance(error, EngineError) else error,
    )


def log_process_gone(topic_partition: TopicPartition, reason: object) -> None:
    """Log that the cleaner's process has ended; the cleaning is retried later."""
    _log.error(
        "The cleaning for partition %s failed, and is tried again: %s", topic_partition, reason
    )


def log_process_not_started(reason: object) -> None:
    """Log that no cleaner process could be started, so a thread of the broker does the work."""
    _log.warning("The cleaner works on a thread of the broker, which it slows down: %s", reason)


def _reduction(before: int, after: int) -> float:
    """Return the share, 0.0 to 1.0, of `before` that a cleaning removed; 0.0 if `before` is 0."""
    return 1 - after / before if before else 0.0
