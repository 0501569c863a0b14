"""The error of assignors."""

from __future__ import annotations

from engine.errors import EngineError


class NoAssignment(EngineError):
    """Partitions that members claim to own do not fit the existing topics.

    Kafka's assignors end with exceptions of Java in the same cases.
    """

    def __init__(self, why: str) -> None:
        super().__init__(f"the partitions cannot be assigned: {why}")
        self.why = why
