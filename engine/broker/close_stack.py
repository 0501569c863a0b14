"""The undo functions of opened parts, run in reverse: at the end, or where opening more fails.

Source: P4.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from engine.errors import EngineError

_log = logging.getLogger("kafka.server.KafkaServer")

#: Closes one part; its result, if it is awaitable, is awaited.
Undo: TypeAlias = Callable[[], Awaitable[None] | None]


class CloseStack:
    """Close functions by name, run in reverse order."""

    def __init__(self) -> None:
        self._steps: list[tuple[str, Undo]] = []

    def add(self, name: str, undo: Undo) -> None:
        """Note the function that closes a part which is opened now."""
        self._steps.append((name, undo))

    async def run(self) -> None:
        """Close everything once, in reverse order; a failed step is logged, and the next ones run.

        An error that is no EngineError is raised again after the last step.
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
