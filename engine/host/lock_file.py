"""The lock of a directory that one process at a time may use.

A broker holds an exclusive POSIX record lock on `.lock` while it runs (Java's FileChannel.tryLock).
The file alone proves nothing: a killed process leaves it.
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


def lock_file(path: str, *, waits: bool = False) -> Callable[[], None]:
    """Lock a file, creating it if needed; return a function to unlock it. The file stays.

    With `waits` the call blocks while the lock is held, for locks held during one small write;
    otherwise it raises LockHeld. Other errors are those of the host. While the process holds the
    lock it must not open and close the file elsewhere: that would release the lock (POSIX).
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
    """Return True if another process holds the lock; False if the file does not exist.

    The test takes a shared lock, so the file need not be writable: Kafka leaves one, and it may
    be on a read-only copy. Do not call it for a lock held by this process: the test cannot
    detect that lock, and releases it.
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
