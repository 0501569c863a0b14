"""Folders for the time of one block, removed however often the process is interrupted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from engine.errors import StorageError
from engine.host.deferred_signals import signals_blocked


class NoTemporaryFolder(StorageError):
    """Nowhere is a place for temporary files, or that place is full."""

    hint = "set TMPDIR to a folder with room that can be written"

    def __init__(self, reason: str) -> None:
        super().__init__(f"no folder for temporary files can be made: {reason}")


def new_temporary_folder(prefix: str) -> str:
    """Create a folder that is not removed automatically.

    Return its path. Raises NoTemporaryFolder.
    """
    import tempfile

    try:
        return tempfile.mkdtemp(prefix=prefix)
    except OSError as error:
        raise NoTemporaryFolder(str(error.strerror)) from error


@contextmanager
def temporary_folder(prefix: str) -> Iterator[str]:
    """Create a folder that is removed after the block, even if signals interrupt it repeatedly.

    Only a kill of the process leaves it. Errors: NoTemporaryFolder.
    """
    import shutil

    folder = None
    try:
        with signals_blocked():
            folder = new_temporary_folder(prefix)
        yield folder
    finally:
        with signals_blocked():
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)
