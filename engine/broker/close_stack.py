"""A stack of close functions: run in reverse order at a stop, or if a later part fails to open.

Source: P4.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from engine.errors import EngineError

_log = logging.getLogger("kafka.server.KafkaServer")

#: Closes one part; an awaitable result is awaited.
Undo: TypeAlias = Callable[[], Awaitable[None] | None]


class CloseStack:
    """Close functions with names, run in reverse order."""

    def __init__(self) -> None:
        self._steps: list[tuple[str, Undo]] = []

    def add(self, name: str, undo: Undo) -> None:
        """Add the function that closes a part which is being opened; `name` is for the log."""
        self._steps.append((name, undo))

    async def run(self) -> None:
        """Run and remove all close functions in reverse order; log an EngineError and continue.

        Any other exception is raised again after the last function.
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
