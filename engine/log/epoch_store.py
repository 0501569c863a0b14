"""Leader epochs of one log, in memory and in its checkpoint file.

`truncate_from_end` does not write the file, `log_truncation.py` does so later: the loader drops
epochs that start above the log end offset.

Source: Kafka's LeaderEpochFileCache; KAFKA-15046.
"""

from __future__ import annotations

from collections.abc import Iterable

from engine.host.ports import Files
from engine.log.directory import leader_epoch_checkpoint
from engine.log.directory.leader_epoch_checkpoint import EpochStart
from engine.log.epoch_cache import EpochCache, EpochGap


class EpochStore(EpochCache):
    """Leader epochs; every change except `truncate_from_end` is written before the call returns."""

    __slots__ = ("_files", "directory")

    def __init__(self, files: Files, directory: str, entries: Iterable[EpochStart] = ()) -> None:
        super().__init__()
        # The file has these entries already.
        self._replace_entries(EpochCache(entries).entries)
        self._files = files
        self.directory = directory

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Set the start offset of an epoch, and write the file; return True if changed.

        Epochs below 0, of batches of old formats, are ignored.
        """
        if epoch < 0 or not super().assign(epoch, start_offset):
            return False
        self.write()
        return True

    def close_gap(self, gap: EpochGap, start_offset: int) -> bool:
        """Set the start of a gap's epoch to the one that the leader returned, and write the file.

        Returns True if an entry changed.
        """
        if not super().close_gap(gap, start_offset):
            return False
        self.write()
        return True

    def truncate_from_start(self, start_offset: int) -> bool:
        """Remove epochs below the new log start offset, and write the file.

        Return True if changed.
        """
        if not super().truncate_from_start(start_offset):
            return False
        self.write()
        return True

    def clear(self) -> bool:
        """Remove all epochs, and write the file; return True if there were any."""
        if not super().clear():
            return False
        self.write()
        return True

    def take_over(self, replaced: EpochCache) -> bool:
        """Copy the epochs of the log that this one replaces, and write the file.

        Returns True if they differ.
        """
        if not super().take_over(replaced):
            return False
        self.write()
        return True

    def write(self) -> None:
        """Write leader-epoch-checkpoint; may be called on a worker thread."""
        path = f"{self.directory}/{leader_epoch_checkpoint.FILE_NAME}"
        self._files.replace_file(path, self.encode())
