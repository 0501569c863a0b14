"""Simulated disk: its contents after a crash or power cut, and the operations that fail meanwhile.

| end | what is left |
|---|---|
| process killed | all that was written: the machine keeps it, and may still lose it |
| power cut | what was synced, of the rest a prefix in the order of writing; a torn last write |
| power cut, scattered | the same, and of the file written next any writes, and zeros for some |
| disk full | everything so far; nothing more is written until there is room |
| cut during | as above, before a change that a callback makes: a file is written, synced, renamed |
| sync failed | what was unsynced is lost with the next power cut, even if synced again |
| sync failed, power cut | both at once: what that sync was to save is lost, nothing below it |
| read failed | one read below a log directory fails |
| directory failed | nothing below it is changed or synced until it is healed; others work |
"""

from __future__ import annotations

import errno
from random import Random

from engine.host.memory import MemoryFiles
from engine.host.ports import Clock

_MANY = 1 << 30
#: Operations that need room.
_WRITING = ("write", "create")
_SECTOR_BYTES = 512
#: How many power cuts find a disk that writes in any order.
_SCATTERED_SHARE = 0.5
#: What fails below a directory that has failed. Reads are served, as from the page cache.
_CHANGING = ("create", "write", "truncate", "sync", "rename", "remove")


class Disk:
    """The disk of one machine, over the lives of its process."""

    def __init__(self, clock: Clock) -> None:
        """Begin with an empty disk; `clock` gives the modification times."""
        self.files = MemoryFiles(clock=clock)
        self.is_full = False
        #: Whether the disk ever failed: only then a broker may take a directory offline.
        self.has_failed_once = False
        #: The directory that failed last; empty before.
        self.failed_last = ""
        #: Directories in which every change fails now.
        self._failed: set[str] = set()
        #: Whether the process works on with writes that a failed sync has lost: they are on no
        #: disk.
        self.is_hollow = False
        #: Whether the power is cut at the next sync that fails.
        self.cuts_with_failed_sync = False

    def cut_power(self, draw: Random, *, keeps_nothing: bool) -> int:
        """Lose some or all of the unsynced changes; return how many are lost.

        After a failed sync nothing unsynced is kept: a later segment without the one before it is a
        gap that no recovery sees, in Kafka too.
        """
        unsynced = self.files.unsynced_changes()
        keeps_nothing = keeps_nothing or self.files.has_dropped_writes
        self.is_hollow = self.cuts_with_failed_sync = False
        if not keeps_nothing and draw.random() < _SCATTERED_SHARE:
            self._become(self.files.after_scattered_crash(draw))
            return unsynced
        kept = 0 if keeps_nothing else draw.randrange(unsynced + 1)
        torn_bytes = draw.choice((0, 1, _SECTOR_BYTES))
        self._become(self.files.after_crash(kept_changes=kept, torn_bytes=torn_bytes))
        return unsynced - kept

    def begin_life(self) -> None:
        """Take note of a new process, which takes what it reads for what is on the disk."""
        self.is_hollow = self.is_hollow or self.files.has_dropped_writes
        self.cuts_with_failed_sync = False

    @property
    def loses_power(self) -> bool:
        """Return whether a sync has failed with which the power is to go."""
        return self.cuts_with_failed_sync and self.files.has_dropped_writes

    def fail_read(self, directory: str, skip: int) -> None:
        """Let one read below a directory fail, after some that work."""
        self.has_failed_once = True
        self.failed_last = directory
        self.files.fail("read", errno.EIO, path_start=directory, skip=skip)

    def read_again(self) -> None:
        """Take back a read that was to fail and has not."""
        self._refuse()

    def stop_after(self, changes: int) -> None:
        """Stop before a change to come, in the middle of the work of that moment."""
        self.has_failed_once = True
        self.files.stop_at(self.files.operations + changes)

    def go_on(self) -> None:
        """Work on with all that was written, or take back a stop that has not come."""
        self.files.go_on()

    def _become(self, files: MemoryFiles) -> None:
        """Replace the files by those that a crash left; what has failed or is full stays so."""
        self.files = files
        self._refuse()

    def _refuse(self) -> None:
        """Make the files refuse the operations that the disk's present faults forbid."""
        self.files.work_again()
        for directory in sorted(self._failed):
            for operation in _CHANGING:
                self.files.fail(operation, errno.EIO, path_start=directory, times=_MANY)
        if self.is_full:
            for operation in _WRITING:
                self.files.fail(operation, errno.ENOSPC, times=_MANY)

    def has_failed(self, directory: str) -> bool:
        """Return whether nothing below a directory can be changed now."""
        return directory in self._failed

    def fail_directory(self, directory: str) -> None:
        """Fail all changes below a directory."""
        self.has_failed_once = True
        self.failed_last = directory
        self._failed.add(directory)
        self._refuse()

    def folder_bytes(self, path: str) -> int:
        """Return how many bytes the files of a folder have."""
        return sum(self.files.size_bytes(f"{path}/{name}") for name in self.files.list_dir(path))

    def remove_folder(self, path: str) -> None:
        """Remove a folder and its files, as an operator does."""
        for name in self.files.list_dir(path):
            self.files.remove(f"{path}/{name}")
        self.files.remove(path)
        self.files.sync_dir(path.rpartition("/")[0])

    def heal_directory(self, directory: str) -> None:
        """Have a directory back as it was."""
        self._failed.discard(directory)
        self._refuse()

    def fill(self) -> None:
        """Refuse all that needs room."""
        self.is_full = self.has_failed_once = True
        self._refuse()

    def make_room(self) -> None:
        """Refuse nothing any more."""
        self.is_full = False
        self._refuse()

    def fail_sync(self, *, cuts_power: bool = False) -> None:
        """Let the next sync fail, and with `cuts_power` the power with it."""
        self.has_failed_once = True
        self.cuts_with_failed_sync = cuts_power
        self.files.fail("sync", errno.EIO)
