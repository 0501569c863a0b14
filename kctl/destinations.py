"""Check that the destination of a copy or an export is outside its source."""

from __future__ import annotations

import os
from collections.abc import Iterable

from engine.errors import EngineError
from kctl import exits


class TargetInsideSource(EngineError):
    """The output path is inside the directory that is read."""

    exit_code = exits.USAGE
    hint = "name a directory beside it"

    def __init__(self, target: str, source: str) -> None:
        super().__init__(f"{target}: lies inside {source}, which is read")
        self.target = target
        self.source = source


def check_destination(target: str | None, sources: Iterable[str]) -> None:
    """Raise TargetInsideSource if the target is a source or inside one."""
    for source in sources:
        if target is not None and _is_inside(target, source):
            raise TargetInsideSource(target, source)


def _is_inside(target: str, source: str) -> bool:
    """Return True if a path is the source or inside it, after resolving symbolic links."""
    real_target, real_source = os.path.realpath(target), os.path.realpath(source)
    return os.path.commonpath((real_target, real_source)) == real_source
