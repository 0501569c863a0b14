"""Whether another process holds the lock of a log directory.

A broker holds an exclusive POSIX record lock on `.lock` while it runs (Java's FileChannel.tryLock).
The file alone says nothing: a kill leaves it behind.
"""

from __future__ import annotations

import fcntl
import os

from engine.host.os_errors import storage_error


def is_held(path: str) -> bool:
    """Tell whether another process holds the lock; False without the file.

    A lock that this process holds itself cannot be seen this way, and is lost by asking.
    """
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise storage_error(error.errno or 0, path, "open") from error
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return True
    except OSError as error:
        raise storage_error(error.errno or 0, path, "lock") from error
    finally:
        os.close(descriptor)
    return False
