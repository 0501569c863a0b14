"""Files of copied log directories: on this machine, in tar archives, in object stores.

| path | files |
|---|---|
| `s3://bucket/…`, `gs://`, `abfs://`, `hdfs://` | `object_files.py` |
| `/copies/a.tar/…`, also `.tar.gz` and `.tgz`, where that is a file | `archive_files.py` |
| any other | `real.py` |
"""

from __future__ import annotations

from engine.host.archive_files import ArchiveFiles, split_archive_path
from engine.host.object_files import ObjectFiles, is_object_path
from engine.host.ports import File, Files
from engine.host.real import RealFiles


class SourceFiles(RealFiles):
    """The files of all sources (local, archive, object store); only local files can be written."""

    def __init__(self) -> None:
        super().__init__()
        self._archives = ArchiveFiles()
        self._objects = ObjectFiles()

    def open(self, path: str, *, write: bool = False, create: bool = False) -> File:
        """Open a file; raises FileMissing, FileRefused."""
        other = self._source_of(path)
        if other is None:
            return super().open(path, write=write, create=create)
        return other.open(path, write=write, create=create)

    def exists(self, path: str) -> bool:
        """Return True if a file or directory exists at the path."""
        other = self._source_of(path)
        return super().exists(path) if other is None else other.exists(path)

    def is_dir(self, path: str) -> bool:
        """Return True if the path is a directory; an archive is one."""
        other = self._source_of(path)
        return super().is_dir(path) if other is None else other.is_dir(path)

    def is_link(self, path: str) -> bool:
        """Return True if the path itself is a symbolic link."""
        return self._source_of(path) is None and super().is_link(path)

    def size_bytes(self, path: str) -> int:
        """Return a file's size without opening it."""
        other = self._source_of(path)
        return super().size_bytes(path) if other is None else other.size_bytes(path)

    def read_bytes(self, path: str) -> bytes:
        """Return the content of a file, which should be small."""
        other = self._source_of(path)
        return super().read_bytes(path) if other is None else other.read_bytes(path)

    def list_dir(self, path: str) -> list[str]:
        """Return the names in a directory, sorted."""
        other = self._source_of(path)
        return super().list_dir(path) if other is None else other.list_dir(path)

    def _source_of(self, path: str) -> Files | None:
        """Return the object store or archives that a path is in, None for this machine's files."""
        if is_object_path(path):
            return self._objects
        return self._archives if split_archive_path(path) is not None else None
