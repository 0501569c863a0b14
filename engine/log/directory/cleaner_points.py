"""`cleaner-offset-checkpoint` of one log directory: the offset up to which each log was cleaned.

The values in memory are used; the file is for the next start. After a change the file is written
only when the cleaned segments are synced: it may be older than the logs, but never newer.

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
        """Create it empty; `take` sets the offsets of the file when the directory is loaded."""
        self._files = files
        self._path = f"{directory}/{CLEANER_POINTS}"
        #: Held while the file is written: the loop and worker threads may do so.
        self._writing = Lock()
        self._offsets: dict[TopicPartition, int] = {}
        #: Whether any offset has changed since the file was written.
        self._has_changed = False

    def create_file(self) -> None:
        """Create an empty cleaner-offset-checkpoint if there is none, for a broker that cleans.

        Source: the fields of LogCleanerManager.
        """
        create_text_checkpoint(self._files, self._path)

    def take(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Replace all first dirty offsets by those of the file, as the directory is loaded."""
        self._offsets = dict(offsets)

    def keep(self, partitions: Container[TopicPartition]) -> None:
        """Drop the offsets of partitions that are not in `partitions`."""
        for key in [key for key in self._offsets if key not in partitions]:
            self.forget(key)

    def get(self, key: TopicPartition) -> int | None:
        """Return a log's first dirty offset, None if it was never cleaned."""
        return self._offsets.get(key)

    def set(self, key: TopicPartition, first_dirty_offset: int) -> None:
        """Set the offset up to which a log is clean (exclusive), in memory."""
        if self._offsets.get(key) != first_dirty_offset:
            self._offsets[key] = first_dirty_offset
            self._has_changed = True

    def lower(self, key: TopicPartition, offset: int) -> None:
        """Lower a log's first dirty offset to the offset to which the log was truncated.

        Otherwise records that are appended later would count as clean.
        """
        if self._offsets.get(key, 0) > offset:
            self.set(key, offset)

    def forget(self, key: TopicPartition) -> None:
        """Drop the offset of a log that leaves this directory."""
        if self._offsets.pop(key, None) is not None:
            self._has_changed = True

    def write(self) -> None:
        """Write the file if its content has changed."""
        with self._writing:
            if self._has_changed:
                self._has_changed = False
                self._files.replace_file(self._path, encode_offsets(dict(self._offsets)))
