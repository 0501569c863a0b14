"""Read small files completely, refusing files above a size limit."""

from __future__ import annotations

from engine.errors import CorruptFile
from engine.host.ports import Files


def read_small_file(files: Files, path: str, most_bytes: int) -> bytes:
    """Return a file's content; raises CorruptFile if it is larger than `most_bytes`."""
    handle = files.open(path)
    try:
        size = handle.size_bytes()
        if size > most_bytes:
            raise CorruptFile(path, f"at most {most_bytes} bytes", size)
        return handle.read_at(0, size)
    finally:
        handle.close()
