"""The lock of a directory that one process at a time may use.

A broker holds an exclusive POSIX record lock on `.lock` while it runs (Java's FileChannel.tryLock).
The file alone says nothing: a kill leaves it behind.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable

from engine.errors import StorageError
from engine.host.os_errors import storage_error

_FILE_MODE = 0o644


class LockHeld(StorageError):
    """Another process holds a lock."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path}: another process holds the lock")
        self.path = path


def acquire(path: str, *, waits: bool = False) -> Callable[[], None]:
    """Take a lock, making its file if needed, and return what lets go of it; the file stays.

    It `waits` for the holder of a lock that is held for one small write alone; else it raises
    LockHeld. Other errors: what the host refuses. The process must open and close the file nowhere
    else while it holds the lock: that would let go of it (POSIX).
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _FILE_MODE)
    except OSError as error:
        raise storage_error(error.errno or 0, path, "open") from error
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
    except (BlockingIOError, PermissionError) as error:
        os.close(descriptor)
        raise LockHeld(path) from error
    except OSError as error:
        os.close(descriptor)
        raise storage_error(error.errno or 0, path, "lock") from error
    return lambda: os.close(descriptor)


def is_held(path: str) -> bool:
    """Return whether another process holds the lock; False without the file.

    It is asked by a shared lock, for which the file need not be writable: Kafka leaves one behind,
    and it may be on a read-only copy. A lock that this process holds itself cannot be seen this
    way, and is lost by asking.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise storage_error(error.errno or 0, path, "open") from error
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return True
    except OSError as error:
        raise storage_error(error.errno or 0, path, "lock") from error
    finally:
        os.close(descriptor)
    return False
