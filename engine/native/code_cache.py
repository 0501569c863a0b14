"""The cache folder of compiled code: which files are trusted, and when files are removed.

`native_code.py` keeps object code there, `flat_code.py` code that needs no loader.

Each version of the sources has files of its own, and several versions may share the folder. Loading
a file updates its modification time; a file that no process has loaded for long is removed when
another one is added. Any process may remove files at any time: code that is mapped stays mapped
until its process ends, and a process that does not find a file compiles it again.
"""

from __future__ import annotations

import os
import zlib
from contextlib import suppress

from engine.errors import StorageError
from engine.host.real import RealClock, RealFiles
from engine.limits import KEPT_CODE_NOTED_MS, KEPT_CODE_UNUSED_MS

# Code, lock files of compiler processes, and temporary files of processes that were killed.
_SUFFIXES = (".o", ".flat", ".lock", ".trial", ".tmp")


def kept_path(name: str) -> str:
    """Return the path of a file in the user's cache folder of compiled code."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return f"{base}/kctl/native/{name}"


def key_of(text: bytes) -> str:
    """Return the key in the names of cached files: checksums (16 hex digits) of the source text."""
    return f"{zlib.crc32(text):08x}{zlib.adler32(text):08x}"


def sources_of(files: RealFiles, beside: str, sources: tuple[str, ...]) -> bytes:
    """Return the joined content of source files in the folder of the file `beside`.

    Raises StorageError if one cannot be read.
    """
    folder = os.path.dirname(beside)
    return b"".join(files.read_bytes(f"{folder}/{source}") for source in sources)


def read_own_file(files: RealFiles, path: str) -> bytes | None:
    """Return a cached file's content; None if it is absent or another user could have written it.

    The file's time of change is renewed now and then, so that it does not count as unused.
    """
    try:
        status = os.stat(path)
        is_ours = status.st_uid == os.getuid() and not status.st_mode & 0o022
        content = files.read_bytes(path) if is_ours else None
    except (StorageError, OSError):
        return None
    if content is not None:
        # Another process may have removed the file, or the file system may be read-only.
        with suppress(StorageError, OSError):
            if _age_ms(files, path) > KEPT_CODE_NOTED_MS:
                os.utime(path)
    return content


def make_folder() -> bool:
    """Create the cache folder, accessible only to its owner; return True if it exists."""
    try:
        os.makedirs(kept_path(""), mode=0o700, exist_ok=True)
    except OSError:
        # If the folder is not writable, the next run only has to compile again.
        return False
    return True


def add_to_cache(files: RealFiles, path: str, content: bytes) -> bool:
    """Add a file to the cache, and remove unused ones; return True if it could be added."""
    try:
        if not make_folder():
            return False
        files.replace_file(path, content)
    except StorageError:
        return False
    with suppress(StorageError):
        _remove_unused(files, path)
    return True


def _remove_unused(files: RealFiles, kept: str) -> None:
    """Remove cached files not used for KEPT_CODE_UNUSED_MS, except the one kept and its lock."""
    folder, _, own = kept.rpartition("/")
    own = own.partition(".")[0]
    for name in files.list_dir(folder):
        path = f"{folder}/{name}"
        if name.partition(".")[0] == own or not name.endswith(_SUFFIXES):
            continue
        # Another process may remove it at the same moment.
        with suppress(StorageError):
            if _age_ms(files, path) > KEPT_CODE_UNUSED_MS:
                files.remove(path)


def _age_ms(files: RealFiles, path: str) -> int:
    """Return the milliseconds since a file was last changed; below 0 if the clock was set back."""
    return RealClock().wall_ms() - files.modified_ms(path)
