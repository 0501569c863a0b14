"""The folder that compiled code is kept in, and whose files there are trusted.

`native_code.py` keeps object code there, `flat_code.py` code that needs no loader.
"""

from __future__ import annotations

import os
import zlib

from engine.errors import StorageError
from engine.host.real import RealFiles


def kept_path(name: str) -> str:
    """Return the path of a file in the folder of compiled code."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return f"{base}/kctl/native/{name}"


def key_of(text: bytes) -> str:
    """Return what tells kept files of different origin apart."""
    return f"{zlib.crc32(text):08x}{zlib.adler32(text):08x}"


def sources_of(files: RealFiles, beside: str, sources: tuple[str, ...]) -> bytes:
    """Return the content of files in the folder of `beside`; raises StorageError."""
    folder = os.path.dirname(beside)
    return b"".join(files.read_bytes(f"{folder}/{source}") for source in sources)


def read_ours(files: RealFiles, path: str) -> bytes | None:
    """Return a file's content if nobody else could have written it, None otherwise."""
    try:
        status = os.stat(path)
        is_ours = status.st_uid == os.getuid() and not status.st_mode & 0o022
        return files.read_bytes(path) if is_ours else None
    except (StorageError, OSError):
        return None


def make_folder() -> bool:
    """Make the folder, for its owner alone; tells whether it is there."""
    try:
        os.makedirs(kept_path(""), mode=0o700, exist_ok=True)
    except OSError:
        # A home that cannot be written costs the next run its time, no more.
        return False
    return True


def keep(files: RealFiles, path: str, content: bytes) -> bool:
    """Write a file for later runs; tells whether that worked."""
    try:
        if not make_folder():
            return False
        files.replace_file(path, content)
    except StorageError:
        return False
    return True
