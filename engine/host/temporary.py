"""Folders for the time of one block, removed however often the process is interrupted.

A kill of the process leaves its folder. The next process that creates one for the same purpose
removes it: the kernel has released its lock (flock on the folder itself).
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO

from engine.errors import StorageError
from engine.host.deferred_signals import block_signals

#: A younger folder may not be locked yet by the process that created it.
_ABANDONED_AFTER_S = 60


class NoTemporaryFolder(StorageError):
    """No folder for temporary files can be written, or its disk is full."""

    hint = "set TMPDIR to a folder with room that can be written"

    def __init__(self, reason: str) -> None:
        super().__init__(f"no temporary file can be made: {reason}")


def find_temporary_place() -> str:
    """Return the folder of temporary files: TMPDIR, also if it is wrong, else the system's.

    Python's own module silently takes another place than a wrong TMPDIR. Raises NoTemporaryFolder.
    """
    if named := os.environ.get("TMPDIR"):
        return os.path.abspath(named)
    import tempfile

    try:
        return tempfile.gettempdir()
    except OSError as error:
        raise NoTemporaryFolder(str(error.strerror)) from error


def create_temporary_folder(prefix: str) -> str:
    """Create a folder that is not removed automatically; return its path.

    Raises NoTemporaryFolder.
    """
    import tempfile

    place = find_temporary_place()
    try:
        return tempfile.mkdtemp(prefix=prefix, dir=place)
    except OSError as error:
        raise NoTemporaryFolder(f"{place}: {error.strerror}") from error


def temporary_file() -> IO[bytes]:
    """Return a file without a name, which goes when it is closed. Raises NoTemporaryFolder."""
    import tempfile

    place = find_temporary_place()
    try:
        return tempfile.TemporaryFile(dir=place)
    except OSError as error:
        raise NoTemporaryFolder(f"{place}: {error.strerror}") from error


@contextmanager
def temporary_folder(prefix: str) -> Iterator[str]:
    """Create a folder that is removed after the block, even if signals interrupt it repeatedly.

    Only a kill of the process leaves it, until `remove_abandoned`. Errors: NoTemporaryFolder.
    """
    import shutil

    folder, lock = None, None
    try:
        with block_signals():
            folder = create_temporary_folder(prefix)
            lock = _lock_folder(folder)
        yield folder
    finally:
        with block_signals():
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)
            if lock is not None:
                os.close(lock)


def remove_abandoned(prefix: str) -> None:
    """Remove this user's folders with a prefix whose processes were killed."""
    import shutil

    with suppress(OSError, NoTemporaryFolder), os.scandir(find_temporary_place()) as entries:
        for entry in entries:
            if entry.name.startswith(prefix) and _may_be_abandoned(entry):
                lock = _lock_folder(entry.path)
                if lock is not None:
                    shutil.rmtree(entry.path, ignore_errors=True)
                    os.close(lock)


def _may_be_abandoned(entry: os.DirEntry[str]) -> bool:
    """Return True for a folder of this user that is old enough to have been locked."""
    with suppress(OSError):
        status = entry.stat(follow_symlinks=False)
        is_own = entry.is_dir(follow_symlinks=False) and status.st_uid == os.getuid()
        return is_own and time.time() - status.st_mtime > _ABANDONED_AFTER_S
    return False


def _lock_folder(folder: str) -> int | None:
    """Lock a folder; return the descriptor to close, None if another process has the lock."""
    descriptor = None
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        if descriptor is not None:
            os.close(descriptor)
        return None
    return descriptor
