"""Find the log directories that the path arguments of a command refer to.

| argument | stands for |
|---|---|
| a directory, one partition's directory, an address of an object store | itself |
| a tar archive | all log directories in it, possibly of several brokers |
| `/disks/*/kafka`, `s3://bucket/broker-?/data` | each directory and archive that matches |
| `/disk1/kafka,/disk2/kafka`, the form of `log.dirs` | each of them |

A path that exists stands for itself, even with wildcard characters or commas in its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Final

from engine.errors import StorageError
from engine.host.archive_files import split_archive_path
from engine.host.object_files import is_object_path
from engine.host.ports import Files
from engine.log.directory.log_dir import NoLogDirectory, find_log_dir

_WILDCARDS: Final = re.compile(r"[*?\[]")


class NoPathMatches(StorageError):
    """No directory or archive matches a pattern."""

    hint = "wildcards are *, ? and [a-z], each within one name between slashes"

    def __init__(self, pattern: str) -> None:
        super().__init__(f"{pattern}: no directory and no archive has such a name")
        self.pattern = pattern


def find_log_dirs_in(files: Files, given: Iterable[str]) -> list[str]:
    """Return the distinct log directories that paths, patterns and lists stand for.

    Raises NoPathMatches for a pattern without a match, and NoLogDirectory for an archive without a
    log directory.
    """
    found: dict[str, None] = {}
    for text in given:
        for path in _expand_paths(files, text):
            found.update(dict.fromkeys(find_log_dirs_of(files, path)))
    return list(found)


def _expand_paths(files: Files, text: str) -> Iterator[str]:
    """Yield the paths of a list or pattern; raises NoPathMatches for a pattern without a match."""
    path = _absolute(files, text)
    has_wildcards = _WILDCARDS.search(text) is not None
    if not (has_wildcards or "," in text) or files.exists(path):
        yield path
    elif "," in text:
        for part in filter(None, map(str.strip, text.split(","))):
            yield from _expand_paths(files, part)
    else:
        matches = list(_match_pattern(files, path))
        if not matches:
            raise NoPathMatches(text)
        yield from matches


def _match_pattern(files: Files, pattern: str) -> Iterator[str]:
    """Yield the directories and archives that match a pattern, sorted by name."""
    names = pattern.split("/")
    first = next(at for at, name in enumerate(names) if _WILDCARDS.search(name))
    folder, after = "/".join(names[:first]), names[first + 1 :]
    if not files.is_dir(folder or "/"):
        return
    for name in files.list_dir(folder or "/"):
        path = "/".join((folder, name, *after))
        if not fnmatchcase(name, names[first]) or (name[0] == "." and names[first][0] != "."):
            continue
        if _WILDCARDS.search("/".join(after)):
            yield from _match_pattern(files, path)
        elif files.is_dir(path):
            yield path


def _absolute(files: Files, path: str) -> str:
    """Return an absolute path; an address of an object store unchanged."""
    return path if is_object_path(path) else files.absolute_path(path)


def find_log_dirs_of(files: Files, path: str) -> list[str]:
    """Return the log directories in an archive; for any other path the path itself.

    Raises NoLogDirectory for an archive without one.
    """
    if is_object_path(path) or split_archive_path(path) is None:
        return [path]
    found = list(_find_log_dirs_below(files, path))
    if not found:
        raise NoLogDirectory(path)
    return found


def _find_log_dirs_below(files: Files, path: str) -> Iterator[str]:
    """Yield the log directories at or below a path; do not search inside a log directory."""
    try:
        find_log_dir(files, path)
    except NoLogDirectory:
        for name in files.list_dir(path):
            if files.is_dir(f"{path}/{name}"):
                yield from _find_log_dirs_below(files, f"{path}/{name}")
    else:
        yield path
