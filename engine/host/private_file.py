"""Files with secrets: accessible to their owner only, and never replaced.

A file is created with its mode, so that other users can never open it. A file that another library
writes, such as SQLite, is created empty before, or gets its mode if it exists.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO, Final

from engine.host.os_errors import storage_error

_PRIVATE_MODE: Final = 0o600
_PUBLIC_MODE: Final = 0o644
_OF_OTHERS: Final = 0o077


def create_file(path: str, content: bytes, *, is_private: bool = True) -> None:
    """Create a file durably; raises FileRefused if the name exists, even as a link."""
    with open_new_file(path, is_private=is_private) as file:
        file.write(content)


@contextmanager
def open_new_file(path: str, *, is_private: bool = True) -> Iterator[BinaryIO]:
    """Create a file whose content is durable after the block; removed after an exception.

    So a file certainly exists before a secret is made that can be shown only once. Raises
    FileRefused if the name exists, even as a link.
    """
    mode = _PRIVATE_MODE if is_private else _PUBLIC_MODE
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    try:
        descriptor = os.open(path, flags, mode)
    except OSError as error:
        raise storage_error(error.errno or 0, path, "create") from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
    except BaseException as error:
        with suppress(OSError):
            os.unlink(path)
        if isinstance(error, OSError):
            raise storage_error(error.errno or 0, path, "write") from error
        raise


def make_private(path: str) -> None:
    """Create an empty file that only its owner may access, or remove other users' access to one.

    An error is ignored: opening the file later then fails for the same reason.
    """
    with suppress(OSError):
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE_MODE))
        except FileExistsError:
            mode = stat.S_IMODE(os.stat(path).st_mode)
            if mode & _OF_OTHERS:
                os.chmod(path, mode & ~_OF_OTHERS)
