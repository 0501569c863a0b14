"""stdin, stdout and stderr in any state: closed, full, a terminal that has disappeared.

| closed by the caller | becomes | so that |
|---|---|---|
| stdin | an empty input | a question is not answered, and a producer has nothing to read |
| stdout | a descriptor that refuses writes | lost output is an error, as of any tool |
| stderr | nowhere | the work is done all the same |

A closed descriptor would otherwise be the number of the next file that is opened, and output
printed would go into that file. Text that stderr does not accept is dropped: it cannot be reported.
"""

from __future__ import annotations

import io
import os
import sys

_MODES = (os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)


class _Dropping(io.TextIOWrapper):
    """A text stream that drops text that its file does not accept."""

    def write(self, text: str) -> int:
        """Write a text, or drop it."""
        try:
            return super().write(text)
        except OSError:
            return len(text)

    def flush(self) -> None:
        """Flush the buffered text, or drop it."""
        try:
            super().flush()
        except OSError:
            return


def prepare_streams() -> None:
    """Open all three standard streams if they are closed; for the start of a process."""
    for number, mode in enumerate(_MODES):
        try:
            os.fstat(number)
        except OSError:
            _occupy(number, mode)
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 (for good)
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = _dropping_stderr()


def _occupy(number: int, mode: int) -> None:
    """Open /dev/null at a closed descriptor, so that no other file gets its number."""
    opened = os.open(os.devnull, mode)
    if opened != number:
        os.dup2(opened, number)
        os.close(opened)
    os.set_inheritable(number, True)


def _dropping_stderr() -> io.TextIOWrapper:
    """Return stderr as a stream that drops what cannot be written."""
    raw = io.FileIO(2, "w", closefd=False)
    encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
    return _Dropping(
        io.BufferedWriter(raw), encoding=encoding, errors="backslashreplace", line_buffering=True
    )
