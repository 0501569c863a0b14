"""The trace of a run: lines with the virtual time, the broker or client, and the event."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from engine.sim.loop import VirtualLoop

_ENGINE_LOGGERS = "kafka"


class Trace:
    """The lines of one run; without `is_kept` there are none."""

    def __init__(self, loop: VirtualLoop, *, is_kept: bool) -> None:
        self.lines: list[str] = []
        self.is_kept = is_kept
        self._loop = loop

    def add(self, subject: str, text: str) -> None:
        """Add a line about an event of a machine, a client or a fault."""
        if self.is_kept:
            self.lines.append(f"{self._loop.now_ms / 1000:9.3f}  {subject:<10} {text}")


class _Lines(logging.Handler):
    """Writes the log lines of the engine into a trace."""

    def __init__(self, trace: Trace) -> None:
        super().__init__(logging.INFO)
        self._trace = trace

    def emit(self, record: logging.LogRecord) -> None:
        """Add one log record to the trace."""
        name = record.name.rpartition(".")[2]
        self._trace.add("", f"    {record.levelname.lower()} {name}: {record.getMessage()}")


@contextmanager
def log_into(trace: Trace) -> Iterator[None]:
    """Send the engine's log lines only to a trace while the context is open."""
    logger = logging.getLogger(_ENGINE_LOGGERS)
    before = logger.level, logger.propagate, logging.root.manager.disable
    handler = _Lines(trace)
    logger.addHandler(handler)
    logger.propagate = False
    if trace.is_kept:
        logger.setLevel(logging.INFO)
        logging.disable(logging.NOTSET)
    else:
        logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.level, logger.propagate = before[0], before[1]
        logging.disable(before[2])
