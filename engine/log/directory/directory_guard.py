"""Take a log directory offline at an I/O error during work on it."""

from __future__ import annotations

from collections.abc import Callable

from engine.errors import StorageError
from engine.log.directory.log_directory import is_failure_of_directory


class DirectoryGuard:
    """A context in which an I/O error takes the directory offline, and is not raised further."""

    __slots__ = ("_path", "_take_offline")

    def __init__(self, take_offline: Callable[[str, StorageError], None], path: str) -> None:
        """`take_offline` is called with the directory and the error of the host."""
        self._take_offline = take_offline
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        """Take the directory offline after an I/O error, and return True to suppress the error."""
        if isinstance(error, StorageError) and is_failure_of_directory(error):
            self._take_offline(self._path, error)
            return True
        return False
