"""Simulated disk: its content after a crash or power cut, and operations that fail.

| fault | content afterwards |
|---|---|
| process killed | all writes: they are in the page cache, and a power cut may still lose them |
| power cut | all synced writes, and a prefix of the others in order; the last may be torn |
| power cut, scattered | the same, and any writes of the next written file, some of them zeros |
| disk full | all former writes; writes fail until there is room |
| cut during | like the first two, but in the middle of a callback's writes, syncs and renames |
| sync failed | unsynced writes are lost at the next power cut, even if synced again |
| sync failed, power cut | both at once: only the writes that the sync should save are lost |
| read failed | one read below a log directory fails |
| directory failed | changes and syncs below it fail until it is healed; other directories work |
"""

from __future__ import annotations

import errno
from random import Random

from engine.host.memory import MemoryFiles
from engine.host.ports import Clock

_MANY = 1 << 30
#: Operations that need disk space.
_WRITING = ("write", "create")
_SECTOR_BYTES = 512
#: Share of power cuts after which writes survive out of order.
_SCATTERED_SHARE = 0.5
#: Operations that fail below a failed directory. Reads succeed, as if from the page cache.
_CHANGING = ("create", "write", "truncate", "sync", "rename", "remove")


class Disk:
    """The disk of one machine; it outlives the processes of the machine."""

    def __init__(self, clock: Clock) -> None:
        """Create an empty disk; `clock` gives the modification times."""
        self.files = MemoryFiles(clock=clock)
        self.is_full = False
        #: Whether the disk has ever failed: only then may a broker take a directory offline.
        self.has_failed_once = False
        #: The directory that failed last; "" if none did.
        self.failed_last = ""
        #: Directories in which every change fails now.
        self._failed: set[str] = set()
        #: Whether a process uses writes that a failed sync has lost: they are in the page cache,
        #: but not on disk.
        self.is_hollow = False
        #: Whether the power is cut at the next sync that fails.
        self.cuts_with_failed_sync = False

    def cut_power(self, draw: Random, *, keeps_nothing: bool) -> int:
        """Drop some or all of the unsynced changes; return how many are lost.

        After a failed sync no unsynced change is kept: a later segment without the one before it
        would be a gap that no recovery notices, in Kafka too.
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
        """Record the start of a process on the machine of this disk.

        It trusts the page cache even after a failed sync, and the disk may then be hollow.
        """
        self.is_hollow = self.is_hollow or self.files.has_dropped_writes
        self.cuts_with_failed_sync = False

    @property
    def loses_power(self) -> bool:
        """Return True if the sync has failed that was to cut the power at the same time."""
        return self.cuts_with_failed_sync and self.files.has_dropped_writes

    def fail_read(self, directory: str, skip: int) -> None:
        """Make one read below a directory fail, after `skip` successful ones."""
        self.has_failed_once = True
        self.failed_last = directory
        self.files.fail("read", errno.EIO, path_start=directory, skip=skip)

    def read_again(self) -> None:
        """Cancel a read failure that has not happened yet."""
        self._apply_faults()

    def stop_after(self, changes: int) -> None:
        """Stop the disk after `changes` further changes, also in the middle of a callback."""
        self.has_failed_once = True
        self.files.stop_at(self.files.operations + changes)

    def go_on(self) -> None:
        """Continue after a stop with all that was written, or cancel a future stop."""
        self.files.go_on()

    def _become(self, files: MemoryFiles) -> None:
        """Replace the files by those that remain after a crash.

        Failed directories and fullness persist.
        """
        self.files = files
        self._apply_faults()

    def _apply_faults(self) -> None:
        """Make the files fail exactly the operations that the disk's present faults forbid."""
        self.files.cancel_failures()
        for directory in sorted(self._failed):
            for operation in _CHANGING:
                self.files.fail(operation, errno.EIO, path_start=directory, times=_MANY)
        if self.is_full:
            for operation in _WRITING:
                self.files.fail(operation, errno.ENOSPC, times=_MANY)

    def has_failed(self, directory: str) -> bool:
        """Return True if changes below a directory fail now."""
        return directory in self._failed

    def fail_directory(self, directory: str) -> None:
        """Make all changes below a directory fail."""
        self.has_failed_once = True
        self.failed_last = directory
        self._failed.add(directory)
        self._apply_faults()

    def folder_bytes(self, path: str) -> int:
        """Return the total bytes of the files in a folder."""
        return sum(self.files.size_bytes(f"{path}/{name}") for name in self.files.list_dir(path))

    def remove_folder(self, path: str) -> None:
        """Remove a folder and its files, as an operator would."""
        for name in self.files.list_dir(path):
            self.files.remove(f"{path}/{name}")
        self.files.remove(path)
        self.files.sync_dir(path.rpartition("/")[0])

    def heal_directory(self, directory: str) -> None:
        """Make changes below a failed directory possible again; its files are as before."""
        self._failed.discard(directory)
        self._apply_faults()

    def fill(self) -> None:
        """Make all operations fail that need disk space."""
        self.is_full = self.has_failed_once = True
        self._apply_faults()

    def make_room(self) -> None:
        """Make operations that need disk space possible again."""
        self.is_full = False
        self._apply_faults()

    def fail_sync(self, *, cuts_power: bool = False) -> None:
        """Make the next sync fail; with `cuts_power` the power is cut at the same time."""
        self.has_failed_once = True
        self.cuts_with_failed_sync = cuts_power
        self.files.fail("sync", errno.EIO)
