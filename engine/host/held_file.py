"""Line files that one process holds exclusively, and to which other processes may append a line.

The holder has an exclusive BSD `flock` on the file itself: the kernel releases it when the process
ends, and no lock file is needed. Lines are appended with `O_APPEND`, so that a line of another
process is never overwritten.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from typing import Protocol

from engine.errors import StorageError
from engine.host.lock_file import LockHeld
from engine.host.os_errors import storage_error
from engine.host.real import RealFiles

_FILE_MODE = 0o644


class HeldFile(Protocol):
    """A file that this process holds."""

    path: str

    def append(self, content: bytes) -> None:
        """Append content and make it durable.

        Raises StorageError; FileReplaced if the path now leads to another file, or to none.
        """
        ...

    def close(self) -> None:
        """Release the file; closing twice is allowed."""
        ...


class HeldFiles(Protocol):
    """The files of a machine, shared by its processes."""

    def exists(self, path: str) -> bool:
        """Return True if a file is at this path."""
        ...

    def size_bytes(self, path: str) -> int:
        """Return the size of a file; raises FileMissing."""
        ...

    def read_bytes(self, path: str) -> bytes:
        """Return the content of a file; raises FileMissing."""
        ...

    def hold(self, path: str, *, create: bool = False) -> HeldFile:
        """Hold a file exclusively; raises LockHeld, FileMissing unless `create`."""
        ...

    def append(self, path: str, content: bytes) -> None:
        """Append content to a file that another process may hold; raises FileMissing."""
        ...


class FileReplaced(StorageError):
    """A file that this process holds locked was removed or replaced by another file."""

    hint = "put it back under its name, or go on without it"

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} was removed or replaced while it was in use")
        self.path = path


class RealHeldFile:
    """A held file of this machine, by its descriptor."""

    def __init__(self, path: str, descriptor: int) -> None:
        self.path = path
        self._descriptor: int | None = descriptor

    def append(self, content: bytes) -> None:
        """Append content and make it durable.

        Raises FileReplaced if the path has another file now.
        """
        assert self._descriptor is not None
        if not _is_same_file(self.path, self._descriptor):
            raise FileReplaced(self.path)
        _append_durably(self.path, self._descriptor, content)

    def close(self) -> None:
        """Release the file; closing twice is allowed."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


class RealHeldFiles(RealFiles):
    """The files of this machine."""

    def hold(self, path: str, *, create: bool = False) -> HeldFile:
        """Open a file and lock it exclusively; raises LockHeld, FileMissing unless `create`.

        The file stays locked until `HeldFile.close`.
        """
        while True:
            descriptor = _open_to_append(path, create=create)
            try:
                _lock(path, descriptor)
                # Another process may have replaced the file between open and lock.
                is_there = _is_same_file(path, descriptor)
            except BaseException:
                os.close(descriptor)
                raise
            if is_there:
                if create:
                    self.sync_dir(os.path.dirname(path) or ".")
                return RealHeldFile(path, descriptor)
            os.close(descriptor)

    def append(self, path: str, content: bytes) -> None:
        """Append content to a file that another process may hold; raises FileMissing."""
        descriptor = _open_to_append(path, create=False)
        try:
            _append_durably(path, descriptor, content)
        finally:
            os.close(descriptor)


def _open_to_append(path: str, *, create: bool) -> int:
    """Open a regular file to append, without following a link. Raises StorageError."""
    flags = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags | (os.O_CREAT if create else 0), _FILE_MODE)
    except OSError as error:
        raise storage_error(error.errno or 0, path, "open") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise storage_error(errno.EPERM, path, "open")
    return descriptor


def _lock(path: str, descriptor: int) -> None:
    """Lock a file exclusively without waiting; raises LockHeld if another process has it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise LockHeld(path) from error
    except OSError as error:
        raise storage_error(error.errno or 0, path, "lock") from error


def _is_same_file(path: str, descriptor: int) -> bool:
    """Return True if a path still leads to the open file of a descriptor.

    False if the file was removed or replaced since it was opened.
    """
    try:
        there = os.stat(path)
    except OSError:
        return False
    mine = os.fstat(descriptor)
    return (there.st_dev, there.st_ino) == (mine.st_dev, mine.st_ino)


def _append_durably(path: str, descriptor: int, content: bytes) -> None:
    """Append content and flush it to disk. Raises StorageError: a part may be written."""
    try:
        written = os.write(descriptor, content)
        while written < len(content):
            # A full disk accepts a part of the bytes, and fails the next write.
            written += os.write(descriptor, content[written:])
        os.fsync(descriptor)
    except OSError as error:
        raise storage_error(error.errno or 0, path, "write") from error
