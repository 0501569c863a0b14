"""Copies a whole log directory, so that changes can be tried on the copy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from posixpath import dirname

from engine.errors import EngineError
from engine.host.deferred_signals import block_signals
from engine.host.ports import Files
from engine.log.directory.file_copy import copy_file
from engine.log.directory.log_dir import LOCK_FILE, LogDir, is_side_file, read_log_dir


class DirectoryBusy(EngineError):
    """A broker uses the directory, so its files would change during the copy."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.hint = "stop the broker first"
        super().__init__(f"{path}: a broker uses this log directory")


class TargetNotEmpty(EngineError):
    """The target directory of a copy is not empty."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.hint = "name a directory that is empty or not there"
        super().__init__(f"{path}: there is something already")


@contextmanager
def copied_directory(
    files: Files, source: str, target: str, is_held: Callable[[str], bool]
) -> Iterator[str]:
    """Copy the broker's files of a log directory for a `with` block, and yield the target.

    If the copy or the block fails or is interrupted, the target is removed.
    Raises DirectoryBusy, TargetNotEmpty, NoLogDirectory.
    """
    log_dir = read_log_dir(files, source)
    if is_held(f"{source}/{LOCK_FILE}"):
        raise DirectoryBusy(source)
    is_there = files.exists(target)
    if is_there and (not files.is_dir(target) or files.list_dir(target)):
        raise TargetNotEmpty(target)
    try:
        _copy_files(files, log_dir, source, target)
        yield target
    except BaseException:
        with block_signals():
            _remove_below(files, target)
            if not is_there and files.exists(target):
                files.remove(target)
        raise


def _copy_files(files: Files, log_dir: LogDir, source: str, target: str) -> None:
    """Copy partitions and checkpoints, but not the lock file, and sync them."""
    files.make_dir(target)
    for name in files.list_dir(source):
        if is_side_file(name) and name != LOCK_FILE and not files.is_dir(f"{source}/{name}"):
            copy_file(files, f"{source}/{name}", f"{target}/{name}")
    for folder in log_dir.partitions:
        copy = f"{target}/{folder.name}"
        files.make_dir(copy)
        for name in files.list_dir(folder.files.path):
            if not files.is_dir(f"{folder.files.path}/{name}"):
                copy_file(files, f"{folder.files.path}/{name}", f"{copy}/{name}")
        files.sync_dir(copy)
    files.sync_dir(target)
    files.sync_dir(dirname(files.absolute_path(target)))


def _remove_below(files: Files, path: str) -> None:
    """Remove the content of a folder, if the folder exists."""
    if not files.is_dir(path):
        return
    for name in files.list_dir(path):
        inside = f"{path}/{name}"
        if files.is_dir(inside) and not files.is_link(inside):
            _remove_below(files, inside)
        files.remove(inside)
