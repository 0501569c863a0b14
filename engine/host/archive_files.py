"""Files inside a tar archive, which stands for a directory: `/copies/a.tar.gz/data/orders-0`.

The members of a `.tar` are read in place. A `.tar.gz` or `.tgz` is unpacked into one unnamed
temporary file first, because its members can only be read from the beginning on; that needs disk
space in TMPDIR as long as this process runs. Links, devices and paths out of the archive are
ignored.
"""

from __future__ import annotations

import errno
import gzip
import os
import posixpath
import shutil
import tarfile
import zlib
from functools import lru_cache
from typing import IO, NamedTuple

from engine.errors import StorageError
from engine.host.os_errors import storage_error
from engine.host.ports import FileMissing, FileRefused
from engine.host.read_only_files import ReadOnlyFile, ReadOnlyFiles, refuse_writing

SUFFIXES = (".tar", ".tar.gz", ".tgz")
_COPY_BYTES = 1 << 20
#: Number of archives that a process keeps open, with their members and unpacked bytes.
_OPEN_MAX = 16


class ArchiveDamaged(StorageError):
    """A file is no tar archive, or ends too early."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: not a whole tar archive: {reason}")
        self.path = path
        self.reason = reason


class _Member(NamedTuple):
    position: int
    size_bytes: int


class _Archive(NamedTuple):
    """An open archive: its bytes, where each file is in them, and the names in each folder."""

    content: IO[bytes]
    members: dict[str, _Member]
    folders: dict[str, set[str]]


def split_archive_path(path: str) -> tuple[str, str] | None:
    """Return the archive in a path and the path inside it, None if no part of it is an archive."""
    if ".t" not in path:
        return None
    parts = path.split("/")
    for count, part in enumerate(parts, 1):
        if part.endswith(SUFFIXES):
            outer = "/".join(parts[:count])
            if os.path.isfile(outer):
                return outer, "/".join(part for part in parts[count:] if part)
    return None


class ArchiveFiles(ReadOnlyFiles):
    """The files inside of archives, by paths through them."""

    def open(self, path: str, *, write: bool = False, create: bool = False) -> ReadOnlyFile:
        """Open a file read-only; raises FileMissing, FileRefused."""
        if write or create:
            refuse_writing(path)
        archive, inner = _open_archive_of(path)
        member = archive.members.get(inner)
        if member is None:
            if inner in archive.folders:
                raise FileRefused(path, "open", "it is a directory", errno.EISDIR)
            raise FileMissing(path)
        return _ArchiveFile(path, archive.content, member)

    def exists(self, path: str) -> bool:
        """Return True if a file or directory is at the path inside its archive."""
        archive, inner = _open_archive_of(path)
        return inner in archive.members or inner in archive.folders

    def is_dir(self, path: str) -> bool:
        """Return True if the path inside its archive is a directory."""
        archive, inner = _open_archive_of(path)
        return inner in archive.folders

    def size_bytes(self, path: str) -> int:
        """Return the size of an archived file; raises FileMissing."""
        return self.open(path).size_bytes()

    def read_bytes(self, path: str) -> bytes:
        """Return the content of an archived file, which should be small; raises FileMissing."""
        file = self.open(path)
        return file.read_at(0, file.size_bytes())

    def list_dir(self, path: str) -> list[str]:
        """Return the names in a directory of an archive, sorted; raises FileMissing."""
        archive, inner = _open_archive_of(path)
        if inner not in archive.folders:
            raise FileMissing(path)
        return sorted(archive.folders[inner])


class _ArchiveFile(ReadOnlyFile):
    def __init__(self, path: str, content: IO[bytes], member: _Member) -> None:
        super().__init__(path, member.size_bytes)
        self._content = content
        self._start = member.position

    def read_at(self, position: int, length: int) -> bytes:
        """Return up to `length` bytes from `position` in the file; fewer only at its end."""
        length = min(length, self._size_bytes - position)
        parts: list[bytes] = []
        while length > 0:
            try:
                part = os.pread(self._content.fileno(), length, self._start + position)
            except OSError as error:
                raise storage_error(error.errno or errno.EIO, self.path, "read") from error
            if not part:
                break
            parts.append(part)
            position, length = position + len(part), length - len(part)
        return b"".join(parts)


def _open_archive_of(path: str) -> tuple[_Archive, str]:
    """Return the archive of a path and the path inside it; raises StorageError."""
    found = split_archive_path(path)
    if found is None:
        raise FileMissing(path)
    outer, inner = found
    try:
        status = os.stat(outer)
        return _open_archive(outer, status.st_mtime_ns, status.st_size), inner
    except OSError as error:
        raise storage_error(error.errno or errno.EIO, outer, "open") from error


@lru_cache(maxsize=_OPEN_MAX)
def _open_archive(path: str, _modified_ns: int, _size_bytes: int) -> _Archive:
    """Open an archive; unpack a compressed one into a temporary file.

    Cached by path, modification time and size of the file, so that a changed archive is opened
    again.
    """
    from engine.host.temporary import temporary_file

    content = temporary_file() if path.endswith("gz") else open(path, "rb")  # noqa: SIM115
    try:
        if path.endswith("gz"):
            with gzip.open(path, "rb") as packed:
                shutil.copyfileobj(packed, content, _COPY_BYTES)
        return _read_members(content)
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        content.close()
        raise ArchiveDamaged(path, str(error)) from error
    except BaseException:
        content.close()
        raise


def _read_members(content: IO[bytes]) -> _Archive:
    """Return the positions of the members of an unpacked archive; raises TarError."""
    members: dict[str, _Member] = {}
    folders: dict[str, set[str]] = {"": set()}
    end = content.seek(0, os.SEEK_END)
    content.seek(0)
    with tarfile.open(fileobj=content, mode="r:") as archive:
        for entry in archive:
            name = posixpath.normpath(entry.name).lstrip("/")
            if name.split("/")[0] in ("..", ".") or entry.issparse():
                continue
            if entry.isreg():
                if entry.offset_data + entry.size > end:
                    raise tarfile.ReadError(f"{name} is not whole")
                members[name] = _Member(entry.offset_data, entry.size)
                _add_to_folders(folders, name)
            elif entry.isdir():
                folders.setdefault(name, set())
                _add_to_folders(folders, name)
    return _Archive(content, members, folders)


def _add_to_folders(folders: dict[str, set[str]], name: str) -> None:
    """Add a name to its folder's listing, and each missing folder to its parent's listing."""
    while name:
        folder, _, last = name.rpartition("/")
        folders.setdefault(folder, set()).add(last)
        name = folder
