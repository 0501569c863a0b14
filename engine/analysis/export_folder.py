"""The folder of an export: claimed by one process, filled beside its place, published by renames.

```
out                       the export that readers see
.out.kctl-<job>           staging: what a running export has written so far
.out.kctl-replaced        the earlier export, from the first rename until it is removed
.out.kctl-lock            held by the process that exports into `out`
```

1. Claim: hold the lock. If a whole `replaced` is there and `out` is absent, or was made again
   since and is empty, a crash came between the two renames: the earlier export takes its name
   back. If `out` is something else, nothing is touched. Beside a whole `out`, `replaced` is of no
   use any more and is removed, its manifest first, after the names in the parent are durable.
2. Tasks fill the staging folder and sync each file; the manifest is made durable last.
3. `out` becomes `replaced`, staging becomes `out`, the parent is synced.
4. `replaced` and the staging folders of crashed exports are removed, then the lock.

| after a crash in step | there is |
|---|---|
| 1 or 2 | the earlier export, if any, and a staging folder |
| 3, between the renames | the earlier export as `replaced`, which the next claim puts back |
| 3 or 4, after the renames | the new export |

A `replaced` without its manifest is half removed and never put back.
"""

from __future__ import annotations

import posixpath
from contextlib import suppress
from types import TracebackType
from typing import Protocol

from engine.errors import EngineError, StorageError
from engine.host.held_file import HeldFile, HeldFiles
from engine.host.lock_file import LockHeld
from engine.host.ports import Files

#: Lists the files of an export; a folder with it is one.
MANIFEST = "_kctl_manifest.json"
#: Between the folder's name and the use, in the names beside it.
_HIDDEN = ".kctl-"


class ExportFiles(Files, HeldFiles, Protocol):
    """A file system with files that one process at a time holds."""


class ForeignFolder(EngineError):
    """The folder to export to holds something that no export made."""

    hint = "choose an empty or new folder for --out"

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} is not empty and not an earlier export")
        self.path = path


class ExportRunning(EngineError):
    """Another process exports into the same folder."""

    hint = "wait for its end, or choose another folder for --out"

    def __init__(self, path: str) -> None:
        super().__init__(f"another export into {path} is running")
        self.path = path


class ExportFolder:
    """A claim on the folder of an export; leaving it gives the claim up.

    Without `publish` the earlier export is still there afterwards, and the staging folder is not.
    `mark` is a name in it that says that it is an earlier export. Raises ExportRunning,
    ForeignFolder.
    """

    def __init__(self, files: ExportFiles, out: str, job_id: str, mark: str = MANIFEST) -> None:
        """Claim the folder `out`, an absolute path, and create the staging folder."""
        assert posixpath.isabs(out)
        self._mark = mark
        self._files = files
        self._out = out
        self._parent, name = posixpath.split(out)
        #: Start of the names of all hidden files and folders of exports to `out`.
        self._hidden = f".{name}{_HIDDEN}"
        #: The earlier export while the new one takes its place: a crash between leaves it there.
        self._replaced = f"{self._parent}/{self._hidden}replaced"
        self._lock_path = f"{self._parent}/{self._hidden}lock"
        #: Folder in which the files of this export are written.
        self.staging = f"{self._parent}/{self._hidden}{job_id}"
        #: File with notes about an export under way; see `table_export.py`.
        self.pending = f"{self._parent}/{self._hidden}pending"
        make_durable_dir(files, self._parent)
        self._lock = self._hold()
        try:
            self._check_target()
            self._recover()
            _remove_if_there(files, self.staging)
            files.make_dir(self.staging)
        except BaseException:
            self._release()
            raise

    def __enter__(self) -> ExportFolder:
        """Return the claim."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove files that were not published, and release the lock."""
        try:
            if error is not None:
                # The error that ends the export is the one to report, not one of the cleaning.
                with suppress(StorageError):
                    self._put_back()
                with suppress(StorageError):
                    _remove_if_there(self._files, self.staging)
        finally:
            self._release()

    def publish(self) -> list[str]:
        """Rename the staging folder to its final name; return the paths that could not be removed.

        Its files must be durable, the manifest last. An earlier export is moved aside first, so
        that a crash leaves one of the two whole.
        """
        files = self._files
        files.sync_dir(self.staging)
        if files.exists(self._out):
            files.rename(self._out, self._replaced)
        files.rename(self.staging, self._out)
        files.sync_dir(self._parent)
        return self.clean_up()

    def _hold(self) -> HeldFile:
        """Lock the export's folder; raises ExportRunning if another process has the lock."""
        try:
            return self._files.hold(self._lock_path, create=True)
        except LockHeld as error:
            raise ExportRunning(self._out) from error

    def _release(self) -> None:
        """Remove the lock file and release the lock."""
        # The name goes while the lock is held: a process that waits on the old file sees that, and
        # makes a new one.
        with suppress(StorageError):
            self._files.remove(self._lock_path)
        self._lock.close()

    def _recover(self) -> None:
        """Leave `out` as it was before or after a crashed export, and no `replaced`."""
        files = self._files
        # What is visible now may not be durable yet, and what is removed below may be.
        files.sync_dir(self._parent)
        self._put_back()
        _remove_if_there(files, self._replaced)

    def _put_back(self) -> None:
        """Restore the earlier export if it was renamed away and no new export replaced it."""
        files = self._files
        if not files.exists(f"{self._replaced}/{MANIFEST}"):
            return
        if files.exists(self._out):
            if files.list_dir(self._out):
                return
            files.remove(self._out)
        files.rename(self._replaced, self._out)
        files.sync_dir(self._parent)

    def _check_target(self) -> None:
        """Raise ForeignFolder if the target is not an export's folder, and not empty."""
        if not self._files.exists(self._out):
            return
        if not self._files.is_dir(self._out):
            raise ForeignFolder(self._out)
        names = self._files.list_dir(self._out)
        if names and self._mark not in names:
            raise ForeignFolder(self._out)

    def clean_up(self) -> list[str]:
        """Remove the earlier export and leftovers of crashed exports; return what remains."""
        left: list[str] = []
        for name in self._files.list_dir(self._parent):
            path = f"{self._parent}/{name}"
            if not self._is_own(name) or path == self._lock_path:
                continue
            try:
                remove_tree(self._files, path)
            except StorageError:
                left.append(path)
        return left

    def _is_own(self, name: str) -> bool:
        """Return True for the hidden names that exports into this folder use next to it.

        A folder may be called `out.kctl-2`: the hidden names of that one are not this folder's.
        """
        return name.startswith(self._hidden) and _HIDDEN not in name[len(self._hidden) :]


def remove_tree(files: Files, path: str) -> None:
    """Remove a folder and its content, the manifest first; of a link, only the link."""
    if files.is_link(path) or not files.is_dir(path):
        files.remove(path)
        return
    names = files.list_dir(path)
    if MANIFEST in names:
        # Durably: without it nobody takes what is left for a whole export.
        files.remove(f"{path}/{MANIFEST}")
        files.sync_dir(path)
    for name in names:
        if name != MANIFEST:
            remove_tree(files, f"{path}/{name}")
    files.remove(path)


def _remove_if_there(files: Files, path: str) -> None:
    """Remove a tree or a link; a link is there also where its target does not exist."""
    if files.exists(path) or files.is_link(path):
        remove_tree(files, path)


def make_durable_dir(files: Files, path: str) -> None:
    """Create a folder and its missing parents, durably."""
    missing: list[str] = []
    while not files.exists(path):
        missing.append(path)
        path = posixpath.dirname(path)
    if missing:
        files.make_dir(missing[0])
        for made in missing:
            files.sync_dir(posixpath.dirname(made))
