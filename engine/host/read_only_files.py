"""Files that are read and never written: those inside archives and in object stores."""

from __future__ import annotations

import errno
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NoReturn

from engine.host.ports import Buffer, DiskSpace, FileRefused


def refuse_writing(path: str) -> NoReturn:
    """Raise FileRefused: archives and object stores are only read."""
    raise FileRefused(path, "write", "archives and object stores are only read", errno.EROFS)


class ReadOnlyFile(ABC):
    """Base of all read-only files."""

    def __init__(self, path: str, size_bytes: int) -> None:
        self.path = path
        self._size_bytes = size_bytes

    def size_bytes(self) -> int:
        """Return the size, which does not change."""
        return self._size_bytes

    @abstractmethod
    def read_at(self, position: int, length: int) -> bytes:
        """Return up to `length` bytes from `position`; fewer only at the end of the file."""

    def read_into(self, position: int, buffer: bytearray | memoryview) -> int:
        """Fill `buffer` from `position`; returns the bytes read, short only at the end."""
        content = self.read_at(position, len(buffer))
        memoryview(buffer)[: len(content)] = content
        return len(content)

    def append(self, buffers: Sequence[Buffer]) -> int:
        """Raise FileRefused, as the file is read-only."""
        refuse_writing(self.path)

    def write_at(self, position: int, buffer: Buffer) -> None:
        """Raise FileRefused, as the file is read-only."""
        refuse_writing(self.path)

    def truncate(self, size_bytes: int) -> None:
        """Raise FileRefused, as the file is read-only."""
        refuse_writing(self.path)

    def reserve(self, size_bytes: int) -> None:
        """Raise FileRefused, as the file is read-only."""
        refuse_writing(self.path)

    def sync(self) -> None:
        """Raise FileRefused, as the file is read-only."""
        refuse_writing(self.path)

    def fileno(self) -> int | None:
        """Return None: there is no descriptor of these bytes alone."""
        return None

    def close(self) -> None:
        """Return at once: nothing is held."""
        return


class ReadOnlyFiles:
    """Base of all read-only file systems; links do not exist there."""

    def is_link(self, path: str) -> bool:
        """Return False: archives and object stores have no links."""
        return False

    def absolute_path(self, path: str) -> str:
        """Return the path, which is absolute already."""
        return path

    def modified_ms(self, path: str) -> int:
        """Return 0: the modification time of copies is not used."""
        return 0

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        """Raise FileRefused, as the file system is read-only."""
        refuse_writing(path)

    def make_private(self, path: str) -> None:
        """Raise FileRefused, as the file system is read-only."""
        refuse_writing(path)

    def disk_space(self, path: str) -> DiskSpace:
        """Return 0 bytes in total and 0 usable: nothing can be written."""
        return DiskSpace(0, 0)

    def make_dir(self, path: str) -> None:
        """Raise FileRefused, as the file system is read-only."""
        refuse_writing(path)

    def rename(self, source: str, target: str) -> None:
        """Raise FileRefused, as the file system is read-only."""
        refuse_writing(target)

    def remove(self, path: str) -> None:
        """Raise FileRefused, as the file system is read-only."""
        refuse_writing(path)

    def sync_dir(self, path: str) -> None:
        """Raise FileRefused, as the file system is read-only."""
        refuse_writing(path)

    def replace_file(self, path: str, content: bytes) -> None:
        """Raise FileRefused, as the file system is read-only."""
        refuse_writing(path)
