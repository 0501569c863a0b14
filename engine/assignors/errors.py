"""The error of assignors."""

from __future__ import annotations

from engine.errors import EngineError


class NoAssignment(EngineError):
    """What members say they had does not fit the topics that there are.

    Kafka's assignors end with exceptions of Java in the same cases.
    """

    def __init__(self, why: str) -> None:
        super().__init__(f"the partitions cannot be assigned: {why}")
        self.why = why
