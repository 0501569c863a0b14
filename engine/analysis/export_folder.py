"""The folder of an export: claimed by one process, written to a sibling, published by renames.

```
out                       the export that readers see
.out.kctl-<job>           staging: the files of a running export
.out.kctl-replaced        the earlier export, from the first rename until it is removed
.out.kctl-lock            held by the process that exports into `out`
```

1. Claim: hold the lock. If a complete `replaced` exists and `out` is absent, or is an empty folder
   that was created since, a crash came between the two renames: `replaced` is renamed back to
   `out`. If `out` is a foreign folder, nothing is changed. If `out` is complete, `replaced` is
   obsolete and is removed, its manifest first, after the parent folder was synced.
2. Tasks write to the staging folder and sync each file; the manifest is written and synced last.
3. `out` is renamed to `replaced`, staging to `out`, and the parent folder is synced.
4. `replaced` and the staging folders of crashed exports are removed, then the lock.

| after a crash in step | there is |
|---|---|
| 1 or 2 | the earlier export, if any, and a staging folder |
| 3, between the renames | the earlier export as `replaced`, which the next claim renames back |
| 3 or 4, after the renames | the new export |

A `replaced` without its manifest is partly removed and is never renamed back.
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

#: Name of the manifest, which lists the files of an export; a folder with it is an export.
MANIFEST = "_kctl_manifest.json"
#: Part of the hidden names, between the folder's name and their purpose.
_HIDDEN = ".kctl-"


class ExportFiles(Files, HeldFiles, Protocol):
    """A file system that can also lock files for one process."""


class ForeignFolder(EngineError):
    """The folder to export to has content that no export wrote."""

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
    """A claim on the folder of an export, released at the end of its `with` block.

    If the block fails before `publish`, the earlier export remains and the staging folder is
    removed. `mark` is the file or folder name that identifies an earlier export. Raises
    ExportRunning, ForeignFolder.
    """

    def __init__(self, files: ExportFiles, out: str, job_id: str, mark: str = MANIFEST) -> None:
        """Lock the export's folder `out`, an absolute path, and create the staging folder.

        A crashed export is cleaned up first. Raises ExportRunning, ForeignFolder.
        """
        assert posixpath.isabs(out)
        self._mark = mark
        self._files = files
        self._out = out
        self._parent, name = posixpath.split(out)
        #: Prefix of the names of all hidden files and folders of exports to `out`.
        self._hidden = f".{name}{_HIDDEN}"
        #: Path of the earlier export between the two renames; a crash there leaves it.
        self._replaced = f"{self._parent}/{self._hidden}replaced"
        self._lock_path = f"{self._parent}/{self._hidden}lock"
        #: Folder in which the files of this export are written.
        self.staging = f"{self._parent}/{self._hidden}{job_id}"
        #: File with the state of a running table export; see `table_export.py`.
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
        """Return this folder, which is locked already."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Release the lock; after an error restore the earlier export and remove staging."""
        try:
            if error is not None:
                # The error that ends the export is reported, not an error of the cleaning.
                with suppress(StorageError):
                    self._put_back()
                with suppress(StorageError):
                    _remove_if_there(self._files, self.staging)
        finally:
            self._release()

    def publish(self) -> list[str]:
        """Rename the staging folder to its final name; return the paths that could not be removed.

        The files in it must be synced, the manifest last. An earlier export is first renamed to
        `replaced`, so that a crash leaves one of both complete.
        """
        files = self._files
        files.sync_dir(self.staging)
        if files.exists(self._out):
            files.rename(self._out, self._replaced)
        files.rename(self.staging, self._out)
        files.sync_dir(self._parent)
        return self.clean_up()

    def _hold(self) -> HeldFile:
        """Lock the export's folder against other processes; raises ExportRunning."""
        try:
            return self._files.hold(self._lock_path, create=True)
        except LockHeld as error:
            raise ExportRunning(self._out) from error

    def _release(self) -> None:
        """Remove the lock file and release the lock."""
        # The name is removed while the lock is held: a process that waits for the old file notices
        # the removal and creates a new file.
        with suppress(StorageError):
            self._files.remove(self._lock_path)
        self._lock.close()

    def _recover(self) -> None:
        """Restore `out` after an export that crashed between its two renames.

        The earlier export at `replaced` is removed afterwards.
        """
        files = self._files
        # Sync first: the renames may not be durable yet, but the removal below could be.
        files.sync_dir(self._parent)
        self._put_back()
        _remove_if_there(files, self._replaced)

    def _put_back(self) -> None:
        """Rename `replaced` to `out` if it is complete and `out` is absent or an empty folder."""
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
        """Raise ForeignFolder if `out` is a file, or a non-empty folder without an export.

        So that no files of others are replaced.
        """
        if not self._files.exists(self._out):
            return
        if not self._files.is_dir(self._out):
            raise ForeignFolder(self._out)
        names = self._files.list_dir(self._out)
        if names and self._mark not in names:
            raise ForeignFolder(self._out)

    def clean_up(self) -> list[str]:
        """Remove the replaced export and leftovers of crashed ones; return paths that remain."""
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
        """Return True if a name is that of a hidden file or folder that exports to `out` create.

        For a folder named `out.kctl-2` the hidden names start equally, but are not own names of
        `out`.
        """
        return name.startswith(self._hidden) and _HIDDEN not in name[len(self._hidden) :]


def remove_tree(files: Files, path: str) -> None:
    """Remove a folder and its content, the manifest first; of a symbolic link, only the link."""
    if files.is_link(path) or not files.is_dir(path):
        files.remove(path)
        return
    names = files.list_dir(path)
    if MANIFEST in names:
        # Synced first: without the manifest the rest is never taken for a complete export.
        files.remove(f"{path}/{MANIFEST}")
        files.sync_dir(path)
    for name in names:
        if name != MANIFEST:
            remove_tree(files, f"{path}/{name}")
    files.remove(path)


def _remove_if_there(files: Files, path: str) -> None:
    """Remove a tree or a symbolic link if it exists, also a link whose target is missing."""
    if files.exists(path) or files.is_link(path):
        remove_tree(files, path)


def make_durable_dir(files: Files, path: str) -> None:
    """Create a folder and its missing parents, and sync the parent of each."""
    missing: list[str] = []
    while not files.exists(path):
        missing.append(path)
        path = posixpath.dirname(path)
    if missing:
        files.make_dir(missing[0])
        for made in missing:
            files.sync_dir(posixpath.dirname(made))
