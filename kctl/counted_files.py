"""Files that count the bytes read, for a progress line."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine.host.ports import Buffer, File
from engine.host.real import RealFiles


class CountedFile:
    """An open file that calls `on_read` with the number of bytes of each read."""

    __slots__ = ("_file", "_on_read", "path")

    def __init__(self, file: File, on_read: Callable[[int], object]) -> None:
        self._file = file
        self._on_read = on_read
        self.path = file.path

    def size_bytes(self) -> int:
        """Return the current size of the file in bytes."""
        return self._file.size_bytes()

    def read_at(self, position: int, length: int) -> bytes:
        """Return up to `length` bytes from `position`, and count them.

        It returns fewer only at the end of the file.
        """
        content = self._file.read_at(position, length)
        self._on_read(len(content))
        return content

    def read_into(self, position: int, buffer: bytearray | memoryview) -> int:
        """Fill `buffer` from `position`; count the bytes read, and return their number.

        It is less than the buffer's length only at the end of the file.
        """
        count = self._file.read_into(position, buffer)
        self._on_read(count)
        return count

    def append(self, buffers: Sequence[Buffer]) -> int:
        """Write all buffers at the end of the file, uncounted; return the first's position."""
        return self._file.append(buffers)

    def write_at(self, position: int, buffer: Buffer) -> None:
        """Overwrite bytes in place, growing the file if needed; they are not counted."""
        self._file.write_at(position, buffer)

    def truncate(self, size_bytes: int) -> None:
        """Truncate or zero-extend the file to `size_bytes`."""
        self._file.truncate(size_bytes)

    def reserve(self, size_bytes: int) -> None:
        """Reserve disk space for the file up to a size in bytes."""
        self._file.reserve(size_bytes)

    def sync(self) -> None:
        """Make all written bytes durable."""
        self._file.sync()

    def fileno(self) -> int | None:
        """Return None: reads through a descriptor would not be counted."""
        return None

    def close(self) -> None:
        """Release the file; closing twice is allowed."""
        self._file.close()


class CountedFiles(RealFiles):
    """The file system of this machine, with counted reads."""

    def __init__(self, on_read: Callable[[int], object]) -> None:
        """Create a view of the file system whose files count the bytes read from them.

        `on_read` is called with the number of bytes of each read; `dump-log` advances its progress
        line so.
        """
        self._on_read = on_read

    def open(self, path: str, *, write: bool = False, create: bool = False) -> File:
        """Open a file whose reads are counted, read-only unless `write`.

        Errors: FileMissing unless `create`.
        """
        return CountedFile(super().open(path, write=write, create=create), self._on_read)
