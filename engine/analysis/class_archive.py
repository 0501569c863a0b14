"""Archive of Spark's loaded Java classes (class data sharing), which halves a JVM's start.

```
$XDG_CACHE_HOME/kctl/spark/<key>.jsa          the archive, some 160 MB
                          <key>.<pid>.new     what the JVM of process <pid> writes when it ends
                          <key>.none          marker: this Java writes no archive
```

1. The first JVM of a key writes its loaded classes when it ends (-XX:ArchiveClassesAtExit).
2. kctl waits for the JVM's end and renames the file: a `.jsa` file is always complete.
3. Later JVMs read it (-XX:SharedArchiveFile). A JVM compares the archive with its own version and
   with the jars; if they differ it starts without the archive.

The key covers the Java program, Spark's folder and its jars, because an archive of other jars would
be ignored on every start. Archives that were not used for long are removed when another is written.
"""

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
    """The class archive of one Java program and one Spark folder."""

    def __init__(self, folder: str, key: str) -> None:
        """Describe the archive of loaded Java classes in `folder`, which starts Spark faster.

        `key` identifies the releases of Java and Spark.
        """
        self._files = RealFiles()
        self._folder = folder
        #: Paths of the archive, of the marker that this Java writes none, and of the file that a
        #: JVM writes before it is renamed to the archive.
        self._path = f"{folder}/{key}.jsa"
        self._none = f"{folder}/{key}.none"
        self._new = f"{folder}/{key}.{os.getpid()}.new"
        #: Whether the JVM that was started with `prepare_options` writes the archive at its end
        #: (step 1).
        self.is_made = False

    def prepare_options(self) -> list[str]:
        """Return the JVM options that use the archive, or that write one if it is missing.

        An archive that exists is marked as used; before a new one is written, unused ones are
        removed. Empty if this Java writes no archives or the cache folder is not writable.
        """
        if self._is_ours(self._path):
            with suppress(OSError):
                os.utime(self._path)
            return [f"-XX:SharedArchiveFile={self._path}"]
        if self._files.exists(self._none) or not self._make_folder():
            return []
        self._remove_unused()
        with suppress(StorageError):
            # A leftover of an earlier process with this pid: in a container every process has it.
            self._files.remove(self._new)
        self.is_made = True
        return [f"-XX:ArchiveClassesAtExit={self._new}"]

    def keep(self, exit_code: int | None) -> None:
        """Give the file that a JVM has written its final name, after the JVM's end (step 2).

        `exit_code` is None for a JVM that was killed. A JVM that failed, for example on a full
        disk, does not show whether its Java can write archives.
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
        """Remove the archive that a crashed JVM was started with; return False if it used none.

        Called after such a crash: the JVM is then started again without an archive.
        """
        if self.is_made:
            return False
        with suppress(StorageError):
            self._files.remove(self._path)
            return True
        return False

    def _is_ours(self, path: str) -> bool:
        """Return True if a file belongs to this user and no other user may write it.

        A JVM maps an archive as code, so an archive of another user could run anything.
        """
        try:
            status = os.stat(path)
        except OSError:
            return False
        return status.st_uid == os.getuid() and not status.st_mode & 0o022

    def _make_folder(self) -> bool:
        """Create the cache folder with mode 0700; return False if it is not writable."""
        if not os.path.isabs(self._folder):
            # A user that is in no user database has no home folder.
            return False
        try:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
        except OSError:
            # Without a writable home each run only starts slower.
            return False
        return os.access(self._folder, os.W_OK | os.X_OK)

    def _remove_unused(self) -> None:
        """Remove other archives that were not used for a long time, and old `.new` files."""
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
    """Return the archive for a Java program and Spark's folder, in the user's cache folder.

    Another release, or changed jars, has another archive.
    """
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    program, home = os.path.realpath(java), os.path.realpath(spark_home)
    parts = [program, _stamp(program), home, _stamp(f"{home}/jars")]
    return ClassArchive(f"{base}/kctl/spark", key_of("\0".join(parts).encode()))


def _stamp(path: str) -> str:
    """Return size and modification time of a file or folder as text; "" if it is missing."""
    try:
        status = os.stat(path)
    except OSError:
        return ""
    return f"{status.st_size} {status.st_mtime_ns}"
