"""What was opened, to be closed the other way round: at the end, or where opening more fails.

Source: P4.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from engine.errors import EngineError

_log = logging.getLogger("kafka.server.KafkaServer")

#: Closes one thing; what it returns, if anything, is awaited.
Undo: TypeAlias = Callable[[], Awaitable[None] | None]


class Closing:
    """Steps by name, the last one first."""

    def __init__(self) -> None:
        self._steps: list[tuple[str, Undo]] = []

    def add(self, name: str, undo: Undo) -> None:
        """Note what closes something that is opened now."""
        self._steps.append((name, undo))

    async def run(self) -> None:
        """Close everything, once; a step that fails is told, and the others follow.

        What is no EngineError is raised again behind the last step.
        """
        fault: Exception | None = None
        while self._steps:
            name, undo = self._steps.pop()
            try:
                waits = undo()
                if waits is not None:
                    await waits
            except EngineError as error:
                _log.warning("%s could not be closed in order: %s", name, error)
            except Exception as error:
                fault = fault or error
        if fault is not None:
            raise fault
