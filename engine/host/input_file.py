"""Files that somebody names on a command line to be read from the beginning to the end, once.

Beside files these are pipes, which shells give for `<(command)`. A pipe that nobody writes to is
waited for, and can be interrupted. Devices and directories are refused: some of them never end.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import BinaryIO, Final

from engine.host.os_errors import storage_error

_OPENED: Final = (stat.S_ISREG, stat.S_ISFIFO, stat.S_ISSOCK)


def open_input(path: str) -> BinaryIO:
    """Open a file or a pipe for reading; raises FileMissing, FileRefused."""
    try:
        file = open(path, "rb")  # noqa: SIM115 - the caller closes it
    except OSError as error:
        raise storage_error(error.errno or errno.EIO, path, "open") from error
    mode = os.fstat(file.fileno()).st_mode
    if not any(is_kind(mode) for is_kind in _OPENED):
        file.close()
        raise storage_error(errno.EPERM, path, "open")
    return file


def read_input(path: str, bytes_max: int | None = None) -> bytes:
    """Return a whole file or what comes out of a pipe; one byte more than `bytes_max` at most.

    Errors: FileMissing, FileRefused, LogDirOffline.
    """
    with open_input(path) as file:
        try:
            return file.read(-1 if bytes_max is None else bytes_max + 1)
        except OSError as error:
            raise storage_error(error.errno or errno.EIO, path, "read") from error
