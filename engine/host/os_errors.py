"""The mapping of `OSError` to the engine's errors, shared by every implementation of Files.

```
ENOENT                                    FileMissing    nothing there
EACCES EPERM EROFS EISDIR ENOTDIR         FileRefused    this path, and only it, cannot be used so
EEXIST ENOTEMPTY ENAMETOOLONG ELOOP EXDEV
anything else (EIO, ENOSPC, EMFILE, …)    LogDirOffline  the directory can no longer be trusted
```
"""

from __future__ import annotations

import errno
import os

from engine.errors import StorageError

_REFUSED = frozenset(
    (
        errno.EACCES,
        errno.EPERM,
        errno.EROFS,
        errno.EISDIR,
        errno.ENOTDIR,
        errno.EEXIST,
        errno.ENOTEMPTY,
        errno.ENAMETOOLONG,
        errno.ELOOP,
        errno.EXDEV,
    )
)


def storage_error(code: int, path: str, operation: str) -> StorageError:
    """Return the engine's error for an errno raised by `operation` on `path`."""
    # Imported late: a client of a cluster needs the ports only for an error.
    from engine.host.ports import FileMissing, FileRefused, LogDirOffline

    if code == errno.ENOENT:
        return FileMissing(path)
    reason = os.strerror(code)
    if code in _REFUSED:
        return FileRefused(path, operation, reason, code)
    return LogDirOffline(path, operation, reason, code)
