"""The log file of a process: size, last lines, last error."""

from __future__ import annotations

from engine.host.ports import FileMissing, Files
from engine.limits import BROKER_LOG_LINES_SHOWN, LOG_TAIL_BYTES


def log_size(files: Files, path: str) -> int:
    """Return the size of a process's log in bytes, 0 without one."""
    try:
        return files.size_bytes(path)
    except FileMissing:
        return 0


def read_last_error(files: Files, path: str, start: int) -> tuple[str, str | None]:
    """Return the last error after position `start` of a log, and the last hint or None."""
    lines = _read_tail(files, path, start)
    hints = [line.removeprefix("hint: ") for line in lines if line.startswith("hint: ")]
    messages = [line.removeprefix("error: ") for line in lines if not line.startswith("hint: ")]
    return messages[-1] if messages else "it logged nothing", hints[-1] if hints else None


def log_end(files: Files, path: str) -> tuple[str, ...]:
    """Return the last lines of a process's log, empty without one."""
    return tuple(_read_tail(files, path, 0)[-BROKER_LOG_LINES_SHOWN:])


def _read_tail(files: Files, path: str, start: int) -> list[str]:
    """Return the last lines of a log from byte `start` on, at most LOG_TAIL_BYTES."""
    try:
        file = files.open(path)
    except FileMissing:
        return []
    try:
        end = file.size_bytes()
        begin = max(start, end - LOG_TAIL_BYTES)
        return file.read_at(begin, end - begin).decode(errors="replace").splitlines()
    finally:
        file.close()
