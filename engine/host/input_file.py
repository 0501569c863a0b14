"""Input files named on a command line, read once from the beginning to the end.

Pipes, which shells pass for `<(command)`, and the empty device /dev/null are accepted too. A read
of a pipe without a writer waits, and can be interrupted. Other devices and directories are
refused: some of them never end.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import BinaryIO, Final

from engine.host.os_errors import storage_error
from engine.host.ports import FileRefused

_READ_ONCE: Final = (stat.S_ISFIFO, stat.S_ISSOCK)
_OPENED: Final = (stat.S_ISREG, *_READ_ONCE)


def open_input(path: str) -> BinaryIO:
    """Open a file or a pipe for reading; raises FileMissing, FileRefused.

    Directories, sockets and devices other than /dev/null are refused.
    """
    try:
        file = open(path, "rb")  # noqa: SIM115 - the caller closes it
    except OSError as error:
        raise storage_error(error.errno or errno.EIO, path, "open") from error
    status = os.fstat(file.fileno())
    if not any(is_kind(status.st_mode) for is_kind in _OPENED) and not _is_null(status):
        file.close()
        raise FileRefused(path, "open", "it is neither a file nor a pipe", errno.EPERM)
    return file


def is_read_once(path: str) -> bool:
    """Return True for a pipe or another source that can be read only once, and for /dev/null.

    False for a regular file, and if nothing is there.
    """
    try:
        status = os.stat(path)
    except OSError:
        return False
    return any(is_kind(status.st_mode) for is_kind in _READ_ONCE) or _is_null(status)


def _is_null(status: os.stat_result) -> bool:
    """Return True if a status is that of /dev/null, which is read as an empty file."""
    return os.path.samestat(status, os.stat(os.devnull))


def read_input(path: str, bytes_max: int | None = None) -> bytes:
    """Return a whole file or the output of a pipe; at most one byte more than `bytes_max`.

    That byte shows the caller that the input is too large. Errors: FileMissing, FileRefused,
    LogDirOffline.
    """
    with open_input(path) as file:
        try:
            return file.read(-1 if bytes_max is None else bytes_max + 1)
        except OSError as error:
            raise storage_error(error.errno or errno.EIO, path, "read") from error
