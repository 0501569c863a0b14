"""Spark's Java classes, kept as a JVM had loaded them: the next one starts with half the work.

```
$XDG_CACHE_HOME/kctl/spark/<key>.jsa          the archive, some 160 MB
                          <key>.<pid>.new     what the JVM of a process writes as it ends
                          <key>.none          this Java makes no archive
```

1. The first JVM of a key writes the classes that it has loaded when it ends (-XX:ArchiveClassesAtExit).
2. Its process waits for that, and renames the file: a file with the final name is whole.
3. Later ones read it (-XX:SharedArchiveFile). A JVM compares the archive with its own version and
   with the jars, and starts as without one if it is of others.

The key covers the program of Java, where Spark is and its jars: of other jars an archive would be
passed over for ever. An archive that was not used for long is removed when another is kept.
"""  # noqa: E501 - prose

from __future__ import annotations

import os
from contextlib import closing, suppress

from engine.errors import StorageError
from engine.host.real import RealClock, RealFiles
from engine.limits import CLASS_ARCHIVE_MADE_MS, KEPT_CODE_UNUSED_MS
from engine.native.code_cache import key_of

_NEW = ".new"
_SUFFIXES = (".jsa", ".none", _NEW)


class ClassArchive:
    """The archive of one Java and one Spark."""

    def __init__(self, folder: str, key: str) -> None:
        """`key` names the releases of Java and Spark, for which the archive holds."""
        self._files = RealFiles()
        self._folder = folder
        #: The archive; a file that says that none can be made; and the file that a JVM writes
        #: before it becomes the archive.
        self._path = f"{folder}/{key}.jsa"
        self._none = f"{folder}/{key}.none"
        self._new = f"{folder}/{key}.{os.getpid()}.new"
        #: Whether the JVM that was started with `options` writes the archive at its end (step 1).
        self.is_made = False

    def options(self) -> list[str]:
        """Return the JVM's options: to use the archive, or to write one if there is none."""
        if self._is_ours(self._path):
            with suppress(OSError):
                os.utime(self._path)
            return [f"-XX:SharedArchiveFile={self._path}"]
        if self._files.exists(self._none) or not self._make_folder():
            return []
        self._remove_unused()
        with suppress(StorageError):
            # What a process of this number left: in a container each has the same.
            self._files.remove(self._new)
        self.is_made = True
        return [f"-XX:ArchiveClassesAtExit={self._new}"]

    def keep(self, exit_code: int | None) -> None:
        """Keep the archive that a JVM has written, once it has ended (step 2).

        `exit_code` is None for a JVM that was killed. A JVM that failed, as on a full disk, does
        not show whether its Java can write archives.
        """
        self.is_made = False
        with suppress(StorageError, OSError):
            if not self._files.exists(self._new):
                if exit_code == 0:
                    self._files.replace_file(self._none, b"")
            elif exit_code == 0:
                with closing(self._files.open(self._new)) as file:
                    file.sync()
                self._files.rename(self._new, self._path)
            else:
                self._files.remove(self._new)
            self._remove_unused()

    def discard(self) -> bool:
        """Remove the archive that a JVM was started with and crashed; False if it had none."""
        if self.is_made:
            return False
        with suppress(StorageError):
            self._files.remove(self._path)
            return True
        return False

    def _is_ours(self, path: str) -> bool:
        """Return True if a file exists that no other user could have written.

        A JVM maps an archive as code: one of another user could run anything.
        """
        try:
            status = os.stat(path)
        except OSError:
            return False
        return status.st_uid == os.getuid() and not status.st_mode & 0o022

    def _make_folder(self) -> bool:
        """Make the cache folder for this user alone; return False if it cannot be written."""
        if not os.path.isabs(self._folder):
            # Of a user that no table has there is no home.
            return False
        try:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
        except OSError:
            # A home that cannot be written costs each run its time, no more.
            return False
        return os.access(self._folder, os.W_OK | os.X_OK)

    def _remove_unused(self) -> None:
        """Remove archives unused for long, and leftovers of killed processes."""
        now_ms = RealClock().wall_ms()
        with suppress(StorageError):
            for name in self._files.list_dir(self._folder):
                unused_ms = CLASS_ARCHIVE_MADE_MS if name.endswith(_NEW) else KEPT_CODE_UNUSED_MS
                path = f"{self._folder}/{name}"
                if not name.endswith(_SUFFIXES) or path == self._path:
                    continue
                # Another process may remove it at the same moment.
                with suppress(StorageError):
                    if now_ms - self._files.modified_ms(path) > unused_ms:
                        self._files.remove(path)


def class_archive(java: str, spark_home: str) -> ClassArchive:
    """Return the archive of a program of Java and of Spark's folder."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    program, home = os.path.realpath(java), os.path.realpath(spark_home)
    parts = [program, _stamp(program), home, _stamp(f"{home}/jars")]
    return ClassArchive(f"{base}/kctl/spark", key_of("\0".join(parts).encode()))


def _stamp(path: str) -> str:
    """Return a text that changes with a file, or with the names in a folder; empty if absent."""
    try:
        status = os.stat(path)
    except OSError:
        return ""
    return f"{status.st_size} {status.st_mtime_ns}"
