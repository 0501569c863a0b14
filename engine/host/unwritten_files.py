"""Links to another owner's files, with new logs that have a length and use no disk space.

For operations whose result is only measured, such as a trial cleaning of a log: its new segments
grow by holes, and their readers find zeros.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.host.copy_on_write import CopyOnWriteFiles
from engine.host.ports import Buffer, File


class UnwrittenFile:
    """An open file that counts appended bytes and stores none of them."""

    __slots__ = ("_file", "path")

    def __init__(self, file: File) -> None:
        self.path = file.path
        self._file = file

    def size_bytes(self) -> int:
        """Return the present size of the file, of which no byte is stored."""
        return self._file.size_bytes()

    def read_at(self, position: int, length: int) -> bytes:
        """Return up to `length` zeros from `position`; fewer only at the end of the file."""
        return self._file.read_at(position, length)

    def read_into(self, position: int, buffer: bytearray | memoryview) -> int:
        """Fill `buffer` with zeros from `position`; return how many bytes the file had."""
        return self._file.read_into(position, buffer)

    def append(self, buffers: Sequence[Buffer]) -> int:
        """Grow by the size of all buffers; return the position of the first byte."""
        position = self._file.size_bytes()
        self._file.truncate(position + sum(memoryview(buffer).nbytes for buffer in buffers))
        return position

    def write_at(self, position: int, buffer: Buffer) -> None:
        """Extend the file if the bytes end after it; their content is not stored."""
        end = position + memoryview(buffer).nbytes
        if end > self._file.size_bytes():
            self._file.truncate(end)

    def truncate(self, size_bytes: int) -> None:
        """Truncate or zero-extend the file to `size_bytes`."""
        self._file.truncate(size_bytes)

    def reserve(self, size_bytes: int) -> None:
        """Reserve nothing, because no content is written."""

    def sync(self) -> None:
        """Do nothing: there is no content."""

    def fileno(self) -> int | None:
        """Return None: there is nothing to send."""
        return None

    def close(self) -> None:
        """Release the file; closing twice is allowed."""
        self._file.close()


class UnwrittenFiles(CopyOnWriteFiles):
    """The file system of this machine: links are read, files with one suffix are not written."""

    def __init__(self, unwritten_end: str) -> None:
        """Create files that store no content of paths that end with `unwritten_end`."""
        super().__init__()
        self._unwritten_end = unwritten_end

    def open(self, path: str, *, write: bool = False, create: bool = False) -> File:
        """Open a file, read-only unless `write`; one whose content is not stored discards writes.

        Raises FileMissing unless `create`.
        """
        file = super().open(path, write=write, create=create)
        return UnwrittenFile(file) if write and path.endswith(self._unwritten_end) else file
