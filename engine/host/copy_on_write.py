"""Links to files of another owner: read through the link, copied before the first change.

```
<path> ──link──▶ source     read through the link; the source is opened for reading only
first change of the content: source ─copy─▶ <path>.copy ─sync─▶ renamed over the link
rename, remove              of the link itself: the source keeps its name
```

A crash leaves the link, or the whole copy. A truncation copies only the bytes that it keeps.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from engine.host.os_errors import storage_error
from engine.host.ports import Buffer, File
from engine.host.real import RealFiles
from engine.limits import COPY_CHUNK_BYTES

_COPY_SUFFIX = ".copy"


class CopyOnWriteFile:
    """An open link; after its first change, the copy that has replaced it."""

    __slots__ = ("_copy", "_files", "_source", "path")

    def __init__(self, files: CopyOnWriteFiles, path: str, source: File) -> None:
        """Open a link at `path`; `source` is the linked file, which is never changed."""
        self.path = path
        self._files = files
        self._source = source
        #: The copy; None before the first change.
        self._copy: File | None = None

    @property
    def _current(self) -> File:
        """Return the file that reads go to: the copy once there is one, else the source."""
        return self._copy or self._source

    def size_bytes(self) -> int:
        """Return the present size of the file."""
        return self._current.size_bytes()

    def read_at(self, position: int, length: int) -> bytes:
        """Return up to `length` bytes from `position`; fewer only at the end of the file."""
        return self._current.read_at(position, length)

    def read_into(self, position: int, buffer: bytearray | memoryview) -> int:
        """Fill `buffer` from `position`; returns the bytes read, short only at the end."""
        return self._current.read_into(position, buffer)

    def append(self, buffers: Sequence[Buffer]) -> int:
        """Write all buffers at the end; returns the position of the first byte."""
        return self._get_copy().append(buffers)

    def write_at(self, position: int, buffer: Buffer) -> None:
        """Overwrite bytes in place, growing the file if needed."""
        self._get_copy().write_at(position, buffer)

    def truncate(self, size_bytes: int) -> None:
        """Truncate or zero-extend the file; a link is not copied for its current size."""
        if self._copy is None and size_bytes == self._source.size_bytes():
            return
        self._get_copy(size_bytes).truncate(size_bytes)

    def reserve(self, size_bytes: int) -> None:
        """Reserve disk space for later writes; for a link that is not copied yet, do nothing."""
        if self._copy is not None:
            self._copy.reserve(size_bytes)

    def sync(self) -> None:
        """Make all written bytes durable; the source is synced by its owner."""
        if self._copy is not None:
            self._copy.sync()

    def fileno(self) -> int | None:
        """Return a descriptor for sendfile; it stays valid until this file is closed."""
        return self._current.fileno()

    def close(self) -> None:
        """Release the file; closing twice is allowed."""
        self._source.close()
        if self._copy is not None:
            self._copy.close()

    def _get_copy(self, kept_bytes: int | None = None) -> File:
        """Return the copy; the first call makes it, of the first `kept_bytes` or of all bytes."""
        if self._copy is None:
            self._copy = self._files.copy_up(self.path, self._source, kept_bytes)
        return self._copy


class CopyOnWriteFiles(RealFiles):
    """The file system of this machine; a write to a link copies its target first."""

    def link(self, source: str, path: str) -> None:
        """Create a link at `path` to another file; its first change replaces the link by a copy."""
        try:
            os.symlink(os.path.abspath(source), path)
        except OSError as error:
            raise storage_error(error.errno or 0, path, "link") from error

    def open(self, path: str, *, write: bool = False, create: bool = False) -> File:
        """Open a file, read-only unless `write`; raises FileMissing unless `create`."""
        if not write or not self.is_link(path):
            return super().open(path, write=write, create=create)
        return CopyOnWriteFile(self, path, super().open(path))

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        """Set a file's modification time; a link is copied first: its target is unchanged."""
        if self.is_link(path):
            source = super().open(path)
            try:
                self.copy_up(path, source, None).close()
            finally:
                source.close()
        super().set_modified_ms(path, modified_ms)

    def copy_up(self, path: str, source: File, kept_bytes: int | None) -> File:
        """Replace a link by a copy of its target, or of the target's first `kept_bytes`."""
        temporary = f"{path}{_COPY_SUFFIX}"
        copy = super().open(temporary, write=True, create=True)
        try:
            copy.truncate(0)
            size_bytes = source.size_bytes()
            end = size_bytes if kept_bytes is None else min(kept_bytes, size_bytes)
            for position in range(0, end, COPY_CHUNK_BYTES):
                chunk = source.read_at(position, min(COPY_CHUNK_BYTES, end - position))
                copy.append((chunk,))
            copy.sync()
            self.rename(temporary, path)
            self.sync_dir(os.path.dirname(path) or ".")
        finally:
            copy.close()
        return super().open(path, write=True)
