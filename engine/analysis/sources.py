"""The log directories behind what a command was given.

An address of an object store, a directory and one partition's directory stand for themselves. A
tar archive stands for all log directories in it, which may be those of several brokers.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.host.archive_files import archive_in
from engine.host.object_files import is_object_path
from engine.host.ports import Files
from engine.log.directory.log_dir import NoLogDirectory, find_log_dir


def absolute_source(files: Files, path: str) -> str:
    """Return a path from the root; an address of an object store as it is."""
    return path if is_object_path(path) else files.absolute_path(path)


def log_dirs_of(files: Files, path: str) -> list[str]:
    """Return the log directories that a path stands for; raises NoLogDirectory without any."""
    if is_object_path(path) or archive_in(path) is None:
        return [path]
    found = list(_log_dirs_in(files, path))
    if not found:
        raise NoLogDirectory(path)
    return found


def _log_dirs_in(files: Files, path: str) -> Iterator[str]:
    try:
        find_log_dir(files, path)
    except NoLogDirectory:
        for name in files.list_dir(path):
            if files.is_dir(f"{path}/{name}"):
                yield from _log_dirs_in(files, f"{path}/{name}")
    else:
        yield path
