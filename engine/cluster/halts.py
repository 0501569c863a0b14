"""The cause of a broker's halt: the FATAL line of its last process, and the remedy.

The log of a process begins with the line about descriptors (`LIFE_BEGINS`). A broker halts if all
its log directories are offline (a full disk, no free descriptor, a failed device), or if an
invariant is broken. The ERROR line before the FATAL line has the reason of the last directory's
failure. If the log itself is on the full disk, these lines may be missing: then the disk's free
space is checked.
"""

from __future__ import annotations

import errno
import os
import re
from typing import Final, NamedTuple

from engine.errors import StorageError
from engine.host.ports import Files
from engine.limits import DISK_FULL_BYTES, HALT_TAIL_BYTES

#: Part of the first log line of each process, which is formatted with two counts.
LIFE_BEGINS: Final = "descriptors, of which connections have those below"
_FATAL: Final = re.compile(r"^(\[[^]]*\] )?FATAL ")
_DIRECTORY: Final = re.compile(r"ERROR Stopping serving replicas in dir .*? of them: (?P<why>.*)$")
_LOGGER: Final = re.compile(r" \([\w.]+\)$")
_FULL: Final = (os.strerror(errno.ENOSPC), os.strerror(errno.EDQUOT), "disk is full")
_NO_DESCRIPTORS: Final = (os.strerror(errno.EMFILE), os.strerror(errno.ENFILE))


class Halt(NamedTuple):
    """The halt of a broker's last process: its FATAL line, the cause, and the remedy.

    The line is None if the log lacks it, the cause if it adds nothing to the line.
    """

    line: str | None
    cause: str | None
    hint: str


def read_last_halt(files: Files, log_path: str, folder: str, again: str) -> Halt | None:
    """Return how the last process in a log halted, None if it ended otherwise.

    `folder` has the cluster's files; `again` is the command that starts it again.
    """
    lines = _read_last_life(files, log_path)
    fatal = [number for number, line in enumerate(lines) if _FATAL.match(line)]
    if fatal:
        causes = [found["why"] for line in lines if (found := _DIRECTORY.search(line))]
        cause = _LOGGER.sub("", causes[-1]) if causes else None
        # A broken invariant is followed by its details: the first line is the reason.
        line = lines[fatal[0]]
        return Halt(line, cause, _remedy(f"{line} {cause}", again))
    usable_bytes = _usable_bytes(files, folder)
    if usable_bytes is None or usable_bytes >= DISK_FULL_BYTES or not _ended_badly(lines):
        return None
    cause = f"{folder}: {os.strerror(errno.ENOSPC)}, {usable_bytes} bytes are free"
    return Halt(None, cause, _remedy(cause, again))


def _read_last_life(files: Files, path: str) -> list[str]:
    """Return the log lines since the last start, as far as the log's tail has them."""
    try:
        file = files.open(path)
    except StorageError:
        return []
    try:
        size_bytes = file.size_bytes()
        start = max(size_bytes - HALT_TAIL_BYTES, 0)
        lines = file.read_at(start, size_bytes - start).decode(errors="replace").splitlines()
    except StorageError:
        return []
    finally:
        file.close()
    begins = [number for number, line in enumerate(lines) if LIFE_BEGINS in line]
    return lines[begins[-1] :] if begins else lines


def _ended_badly(lines: list[str]) -> bool:
    """Return True if the lines of a process's log show no clean stop."""
    return bool(lines) and not any(" INFO stopping" in line for line in lines)


def _usable_bytes(files: Files, folder: str) -> int | None:
    """Return the free bytes of the folder's disk, None if they are unknown."""
    try:
        return files.disk_space(folder).usable_bytes
    except StorageError:
        return None


def _remedy(text: str, again: str) -> str:
    """Return the remedy for the cause of a halt; `again` is the command that restarts."""
    if any(word in text for word in _FULL):
        return (
            f"make room on that disk (`kctl retention plan --dir DIR` shows what may go), then"
            f" {again}"
        )
    if any(word in text for word in _NO_DESCRIPTORS):
        return f"allow more open files (`ulimit -n NUMBER` in the same shell), then {again}"
    return f"see the log before that line, mend its cause, then {again}"
