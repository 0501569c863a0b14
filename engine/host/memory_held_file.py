"""Held files in memory; see `held_file.py`."""

from __future__ import annotations

import errno
from collections.abc import Callable

from engine.host.held_file import FileReplaced, HeldFile
from engine.host.lock_file import LockHeld
from engine.host.memory import MemoryFiles
from engine.host.os_errors import storage_error


class MemoryHeldFiles(MemoryFiles):
    """In-memory files of a machine; each file that is not closed counts as held by a process."""

    def __init__(self) -> None:
        super().__init__()
        self._held: dict[str, MemoryHeldFile] = {}

    def hold(self, path: str, *, create: bool = False) -> HeldFile:
        """Hold a file exclusively; raises LockHeld, FileMissing unless `create`."""
        if path in self._held:
            raise LockHeld(path)
        self.open(path, write=True, create=create).close()
        held = MemoryHeldFile(self, path, lambda: self._held.pop(path, None))
        self._held[path] = held
        return held

    def append(self, path: str, content: bytes) -> None:
        """Append content to a file that another process may hold; raises FileMissing."""
        handle = self.open(path, write=True)
        handle.append((content,))
        handle.sync()
        handle.close()

    def after_crash(self, *, kept_changes: int = 0, torn_bytes: int = 0) -> MemoryHeldFiles:
        """Return the disk as found after a power cut, with no file held."""
        disk = MemoryHeldFiles()
        found = super().after_crash(kept_changes=kept_changes, torn_bytes=torn_bytes)
        disk._root = found._root
        return disk

    def kill_holders(self) -> None:
        """End every process: all held files are released."""
        for held in list(self._held.values()):
            held.close()


class MemoryHeldFile:
    """A held file in memory."""

    def __init__(self, files: MemoryHeldFiles, path: str, on_close: Callable[[], object]) -> None:
        """Create a held file; `on_close` releases the path when it is closed."""
        self.path = path
        self._files = files
        self._on_close = on_close
        self._is_closed = False

    def append(self, content: bytes) -> None:
        """Append content and make it durable; raises FileReplaced if the file was removed."""
        if self._is_closed:
            raise storage_error(errno.EBADF, self.path, "write")
        if not self._files.exists(self.path):
            raise FileReplaced(self.path)
        self._files.append(self.path, content)

    def close(self) -> None:
        """Release the file; closing twice is allowed."""
        if not self._is_closed:
            self._is_closed = True
            self._on_close()
