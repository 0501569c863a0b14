"""The exception of assignors."""

from __future__ import annotations

from engine.errors import EngineError


class NoAssignment(EngineError):
    """The claims of members do not fit the existing partitions, so that no assignment results.

    Kafka's assignors throw Java exceptions in the same cases.
    """

    def __init__(self, why: str) -> None:
        super().__init__(f"the partitions cannot be assigned: {why}")
        self.why = why
