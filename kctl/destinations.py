"""Check the destination of a copy or an export: outside its source, and writable."""

from __future__ import annotations

import os
from collections.abc import Iterable

from engine.errors import EngineError
from kctl import exits


class TargetInsideSource(EngineError):
    """The output path is inside the directory that is read."""

    exit_code = exits.USAGE
    hint = "name another directory"

    def __init__(self, target: str, source: str) -> None:
        super().__init__(f"{target}: lies inside {source}, which is read")
        self.target = target
        self.source = source


class TargetNotWritable(EngineError):
    """Nothing can be written at the output's path."""

    hint = "name a path below a directory that can be written"

    def __init__(self, target: str, reason: str) -> None:
        super().__init__(f"{target}: cannot be written: {reason}")
        self.target = target
        self.reason = reason


def check_writable(target: str, *, is_file: bool) -> None:
    """Refuse an output path at which nothing could be made; raises TargetNotWritable.

    Called before long work.

    The folder of a file must exist; missing folders of a folder are made later.
    """
    import tempfile

    # A folder is made where a link leads to; a file replaces the link.
    path = os.path.abspath(target) if is_file else os.path.realpath(target)
    if is_file and os.path.isdir(path):
        raise TargetNotWritable(target, "it is a directory")
    parent = os.path.dirname(path)
    while not is_file and not os.path.lexists(parent):
        parent = os.path.dirname(parent)
    try:
        # A file without a name: nothing is left of it.
        with tempfile.TemporaryFile(dir=parent):
            pass
    except OSError as error:
        raise TargetNotWritable(target, f"{parent}: {error.strerror}") from error


def check_destination(target: str | None, sources: Iterable[str]) -> None:
    """Raise TargetInsideSource if an output path is a source or inside one.

    A target of None, for a command without output files, passes.
    """
    for source in sources:
        if target is not None and _is_inside(target, source):
            raise TargetInsideSource(target, source)


def _is_inside(target: str, source: str) -> bool:
    """Return True if `target` is `source` or inside it, after resolving symbolic links."""
    real_target, real_source = os.path.realpath(target), os.path.realpath(source)
    return os.path.commonpath((real_target, real_source)) == real_source
