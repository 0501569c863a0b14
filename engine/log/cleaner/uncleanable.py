"""Uncleanable logs of a broker, per log directory, with the error of their last cleaning.

A log stays here until the broker starts again. One that is deleted, or that another directory has
taken over, is another log: it begins without a mark.

Source: Kafka's LogCleanerManager.markPartitionUncleanable, and its metrics
uncleanable-partitions-count and uncleanable-bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from engine.log.local_log import LocalLog
from engine.model import TopicPartition


class UncleanableCount(NamedTuple):
    """Number and size of the uncleanable logs in one log directory."""

    partitions: int
    size_bytes: int


class _Mark(NamedTuple):
    log: LocalLog
    directory: str
    reason: str


class UncleanableLogs:
    """The logs whose cleaning failed, with the reasons."""

    def __init__(self) -> None:
        self._marks: dict[TopicPartition, _Mark] = {}

    def mark(self, log: LocalLog, directory: str, reason: str) -> None:
        """Exclude a log of this log directory from further cleanings."""
        self._marks[log.topic_partition] = _Mark(log, directory, reason)

    def has(self, log: LocalLog) -> bool:
        """Return True for a marked log; False for another log of the same partition."""
        mark = self._marks.get(log.topic_partition)
        return mark is not None and mark.log is log

    def reasons(self) -> dict[TopicPartition, str]:
        """Return the reason of each uncleanable partition."""
        return {key: mark.reason for key, mark in self._marks.items()}

    def counts(self) -> dict[str, UncleanableCount]:
        """Return the number and size of uncleanable logs, by log directory."""
        counts: dict[str, UncleanableCount] = {}
        for mark in self._marks.values():
            partitions, size_bytes = counts.get(mark.directory, (0, 0))
            size_bytes += mark.log.size_bytes
            counts[mark.directory] = UncleanableCount(partitions + 1, size_bytes)
        return counts

    def keep(self, logs: Mapping[TopicPartition, LocalLog]) -> None:
        """Drop the marks of logs that are not in `logs` any more."""
        for key in self._gone(logs):
            del self._marks[key]

    def _gone(self, logs: Mapping[TopicPartition, LocalLog]) -> Iterable[TopicPartition]:
        """Return the partitions whose marked log was removed or replaced."""
        return [key for key, mark in self._marks.items() if logs.get(key) is not mark.log]
