"""Copy files and sync the copies."""

from __future__ import annotations

from collections.abc import Iterable

from engine.host.ports import File, Files
from engine.limits import COPY_CHUNK_BYTES


def copy_file(files: Files, source: str, target: str, size_bytes: int | None = None) -> None:
    """Copy a file, or its first `size_bytes`, and sync the copy's content."""
    handle = files.open(source)
    try:
        whole = handle.size_bytes()
        end = whole if size_bytes is None else min(size_bytes, whole)
        store_file(files, target, _chunks(handle, end))
    finally:
        handle.close()


def _chunks(handle: File, end: int) -> Iterable[bytes]:
    """Yield a file's bytes below `end`, in chunks that bound the memory."""
    for position in range(0, end, COPY_CHUNK_BYTES):
        yield handle.read_at(position, min(COPY_CHUNK_BYTES, end - position))


def store_file(files: Files, path: str, chunks: Iterable[bytes]) -> None:
    """Write a file and sync its content; the caller syncs the folder (`sync_dir`)."""
    handle = files.open(path, write=True, create=True)
    try:
        handle.truncate(0)
        for chunk in chunks:
            handle.append((chunk,))
        handle.sync()
    finally:
        handle.close()
