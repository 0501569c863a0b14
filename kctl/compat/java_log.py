"""Log lines on stderr in the format of the tools' log4j settings."""

from __future__ import annotations

import time
from typing import TextIO

from engine.host.real import RealClock
from kctl.compat.java_failures import ToolFailure


def log_line(err: TextIO, level: str, text: str, logger: str) -> None:
    """Write a text to `err` in the format of Kafka's log4j, with the current local time."""
    now_ms = RealClock().wall_ms()
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(now_ms / 1000))
    err.write(f"[{at},{now_ms % 1000:03d}] {level} {text} ({logger})\n")


def log_failure(err: TextIO, failure: ToolFailure, logger: str) -> None:
    """Write the stack trace of a failure to `err` as log4j does, with level ERROR."""
    log_line(err, "ERROR", failure.trace(), logger)
