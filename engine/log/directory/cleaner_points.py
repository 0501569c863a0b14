"""`cleaner-offset-checkpoint` of one log directory: the offset up to which each log was cleaned.

The values in memory count; the file is for the next start. It is written again after a change,
once the cleaned segments are durable: it may be older than the logs, and never newer.

Source: Kafka's LogCleanerManager.updateCheckpoints.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from threading import Lock

from engine.host.ports import Files
from engine.log.directory.offset_checkpoint import CLEANER_POINTS, encode_offsets
from engine.log.directory.text_checkpoint import create_text_checkpoint
from engine.model import TopicPartition


class CleanerPoints:
    """First dirty offsets by partition; `write` may be called on a worker thread."""

    def __init__(self, files: Files, directory: str) -> None:
        """Begin empty; the directory's loading fills it from the checkpoint."""
        self._files = files
        self._path = f"{directory}/{CLEANER_POINTS}"
        #: Held while the file is written: the loop and worker threads may do so.
        self._writing = Lock()
        self._offsets: dict[TopicPartition, int] = {}
        #: Whether any offset has changed since the file was written.
        self._has_changed = False

    def create_file(self) -> None:
        """Create the file, for a broker that cleans. Source: the fields of LogCleanerManager."""
        create_text_checkpoint(self._files, self._path)

    def take(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Take the offsets of the file."""
        self._offsets = dict(offsets)

    def keep(self, partitions: Container[TopicPartition]) -> None:
        """Forget partitions that are not here any more."""
        for key in [key for key in self._offsets if key not in partitions]:
            self.forget(key)

    def get(self, key: TopicPartition) -> int | None:
        """Return a log's first dirty offset, None if it was never cleaned."""
        return self._offsets.get(key)

    def set(self, key: TopicPartition, first_dirty_offset: int) -> None:
        """Note up to where a log is clean (exclusive)."""
        if self._offsets.get(key) != first_dirty_offset:
            self._offsets[key] = first_dirty_offset
            self._has_changed = True

    def lower(self, key: TopicPartition, offset: int) -> None:
        """Lower a log's first dirty offset to the truncation offset.

        Records appended later are dirty.
        """
        if self._offsets.get(key, 0) > offset:
            self.set(key, offset)

    def forget(self, key: TopicPartition) -> None:
        """Drop a log that leaves this directory."""
        if self._offsets.pop(key, None) is not None:
            self._has_changed = True

    def write(self) -> None:
        """Write the file if its content has changed."""
        with self._writing:
            if self._has_changed:
                self._has_changed = False
                self._files.replace_file(self._path, encode_offsets(dict(self._offsets)))
