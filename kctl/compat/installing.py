"""Write scripts named like Kafka's tools that run kctl instead."""

from __future__ import annotations

import os
import shlex
import sys

from engine.errors import EngineError
from kctl.compat.releases import Release
from kctl.compat.tools import TOOLS


class ForeignScript(EngineError):
    """A file that kctl did not write exists at the path of a script."""

    hint = "choose an empty directory, or add --force to replace it"

    def __init__(self, path: str) -> None:
        super().__init__(f"{path}: there is a file already that is not of kctl; nothing is written")
        self.path = path


class CannotInstall(EngineError):
    """A script cannot be written; `reason` is the operating system's message."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: cannot be written: {reason}")
        self.path = path


_MARK = "# Written by kctl compat install."


def script_of(tool: str, release: Release) -> str:
    """Return a shell script that runs kctl in place of a tool of Kafka.

    It uses the current Python interpreter, and imitates the tool of `release`.
    """
    python = shlex.quote(sys.executable)
    command = tool if release is Release.V3_9 else f"{tool} --kafka-version {release.value}"
    return f'#!/bin/sh\n{_MARK}\nexec {python} -m kctl compat {command} "$@"\n'


def install_scripts(directory: str, release: Release, *, is_forced: bool) -> list[str]:
    """Write a script for each tool of Kafka into a directory; return their paths.

    The directory is created if missing. Errors: ForeignScript unless `is_forced`, CannotInstall.
    """
    paths = {tool: os.path.join(directory, f"{tool}.sh") for tool in TOOLS}
    try:
        for path in paths.values():
            if not is_forced and os.path.exists(path) and not _is_ours(path):
                raise ForeignScript(path)
        made = _first_missing(directory)
        os.makedirs(directory, exist_ok=True)
        if made is not None:
            sys.stderr.write(f"made {made}, which was not there\n")
        for tool, path in paths.items():
            with open(path, "w", encoding="utf-8") as file:
                file.write(script_of(tool, release))
            os.chmod(path, 0o755)
    except OSError as error:
        raise CannotInstall(error.filename or directory, error.strerror or str(error)) from error
    return list(paths.values())


def _first_missing(directory: str) -> str | None:
    """Return the topmost directory of a path that must be created, None if the path exists."""
    missing, path = None, os.path.abspath(directory)
    while not os.path.isdir(path) and path != os.path.dirname(path):
        missing, path = path, os.path.dirname(path)
    return missing


def _is_ours(path: str) -> bool:
    """Return True if kctl wrote the script, so that it may be overwritten."""
    with open(path, encoding="utf-8", errors="replace") as file:
        return _MARK in file.read(1000)
