"""stdin, stdout and stderr in any state: closed, full, or a terminal that has disappeared.

| closed by the caller | becomes | so that |
|---|---|---|
| stdin | an empty input | a question is not answered, and a producer has nothing to read |
| stdout | a descriptor that refuses writes | lost output is an error, as in other tools |
| stderr | /dev/null | the command runs without its messages |

The next file that is opened would otherwise get the number of a closed descriptor, and output would
be written into that file. Text that stderr does not accept is dropped: it cannot be reported.
"""

from __future__ import annotations

import io
import os
import sys

_MODES = (os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)


class _Dropping(io.TextIOWrapper):
    """A text stream that drops what its file does not accept."""

    def write(self, text: str) -> int:
        """Write a text to stderr, or drop it if the file refuses it; returns its length."""
        try:
            return super().write(text)
        except OSError:
            return len(text)

    def flush(self) -> None:
        """Write the buffered text to stderr, or drop it if the file refuses it."""
        try:
            super().flush()
        except OSError:
            return


def prepare_streams() -> None:
    """Open those of the three standard streams that are closed, as described in this module.

    stderr is replaced by a stream that drops what cannot be written. Call it at the start of a
    process.
    """
    for number, mode in enumerate(_MODES):
        try:
            os.fstat(number)
        except OSError:
            _open_null(number, mode)
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 (for good)
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = _dropping_stderr()


def _open_null(number: int, mode: int) -> None:
    """Open /dev/null at a closed standard descriptor, so that no other file gets its number.

    `mode` is the flag for reading or writing.
    """
    opened = os.open(os.devnull, mode)
    if opened != number:
        os.dup2(opened, number)
        os.close(opened)
    os.set_inheritable(number, True)


def _dropping_stderr() -> io.TextIOWrapper:
    """Return a stream to stderr that drops text that cannot be written."""
    raw = io.FileIO(2, "w", closefd=False)
    encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
    return _Dropping(
        io.BufferedWriter(raw), encoding=encoding, errors="backslashreplace", line_buffering=True
    )
