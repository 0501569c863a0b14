"""Errors for declared resources that are impossible, found before any step is executed."""

from __future__ import annotations

from engine.declared.resources import ResourceKind
from engine.errors import EngineError


class StateFault(EngineError):
    """A declared resource is impossible."""

    def __init__(self, kind: ResourceKind, name: str, reason: str, hint: str | None = None) -> None:
        super().__init__(f"{kind.value}: {name}: {reason}")
        self.kind = kind
        self.name = name
        self.reason = reason
        self.hint = hint
