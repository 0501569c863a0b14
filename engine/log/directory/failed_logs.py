"""Logs that could not be opened at the start although their directories work.

They remain here until their topics are deleted.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.host.ports import Files
from engine.log.directory.log_directory import FailedLog, LogDirectory
from engine.model import TopicPartition


class FailedLogs:
    """Logs and future replicas that could not be opened, by partition.

    A partition's log and its future replica fail independently of each other.
    """

    def __init__(self, files: Files, directories: Sequence[LogDirectory]) -> None:
        self._files = files
        self._directories = directories
        self._failed: dict[tuple[TopicPartition, bool], FailedLog] = {}

    def note(self, failed: FailedLog) -> None:
        """Add a log that could not be opened, as its directory was loaded."""
        self._failed[failed.topic_partition, failed.is_future] = failed

    def get(self, topic_partition: TopicPartition, *, is_future: bool) -> FailedLog | None:
        """Return the failed log of a partition, None if its log has not failed."""
        return self._failed.get((topic_partition, is_future))

    def in_reach(self, topic_partition: TopicPartition, *, is_future: bool) -> FailedLog | None:
        """Return a partition's failed log; None if it has none, or its directory is offline.

        The files of such a log can be renamed, so that the partition can be deleted.
        """
        failed = self.get(topic_partition, is_future=is_future)
        return failed if failed is not None and self.home(failed).is_online else None

    def is_damaged(self, topic_partition: TopicPartition) -> bool:
        """Return True if a partition's log could not be opened, though its directory is online."""
        return self.in_reach(topic_partition, is_future=False) is not None

    def home(self, failed: FailedLog) -> LogDirectory:
        """Return the log directory that contains a failed log."""
        folder, _, _ = failed.directory.rpartition("/")
        return next(home for home in self._directories if home.path == folder)

    def set_aside(self, failed: FailedLog, path: str) -> None:
        """Rename the folder of a failed log to `path`, and remove it from the failed logs.

        Called as the partition is deleted; `path` is a name with the suffix `-delete`.
        """
        self._files.rename(failed.directory, path)
        del self._failed[failed.topic_partition, failed.is_future]
        self.home(failed).forget_failed(failed)
