"""Declared resources that cannot be reached: found before any step is done."""

from __future__ import annotations

from engine.declared.resources import ResourceKind
from engine.errors import EngineError


class StateFault(EngineError):
    """A declared resource that no step can bring about."""

    def __init__(self, kind: ResourceKind, name: str, reason: str, hint: str | None = None) -> None:
        super().__init__(f"{kind.value}: {name}: {reason}")
        self.kind = kind
        self.name = name
        self.reason = reason
        self.hint = hint
