r"""Escapes control characters, so that the content of records cannot control a terminal.

| in | becomes |
|---|---|
| a control character of ASCII, Latin-1 | `\xNN`, `\n`, `\r`, `\t` |
| a byte that is not UTF-8 | `\xNN` |
| anything else | itself |

Tables are always escaped. A text that is written byte for byte is escaped only on a terminal, where
newlines and tabs are kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.host.ports import Buffer


_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def visible_cell(text: str) -> str:
    """Return a text on one line for a terminal: control characters are escaped.

    Names of topics and groups come from any client, and must not control the terminal.
    """
    return _controls("").sub(_escape, text)


def visible_lines(raw: bytes) -> bytes:
    """Return bytes for a terminal: control characters other than newline and tab are escaped."""
    text = raw.decode("utf-8", "backslashreplace")
    return _controls("\n\t").sub(_escape, text).encode()


class VisibleStream:
    """Passes bytes on, escaped by `visible_lines`, however they are split into blocks."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        """Create a stream that escapes control characters, and passes bytes on to `write`."""
        self._write = write
        self._partial_line = b""

    def write(self, block: Buffer) -> None:
        """Pass on the complete lines, escaped; an incomplete one waits for its newline."""
        lines, end, partial_line = (self._partial_line + bytes(block)).rpartition(b"\n")
        self._write(visible_lines(lines + end))
        self._partial_line = partial_line

    def close(self) -> None:
        """Pass on the last line, which has no newline."""
        self._write(visible_lines(self._partial_line))
        self._partial_line = b""


@cache
def _controls(kept: str) -> re.Pattern[str]:
    """Return a pattern for the control characters of ASCII and Latin-1, without those in `kept`."""
    signs = (chr(code) for code in (*range(0x20), *range(0x7F, 0xA0)))
    return re.compile("[" + "".join(re.escape(sign) for sign in signs if sign not in kept) + "]")


def _escape(match: re.Match[str]) -> str:
    """Return the escape of a control character: its letter, else its code in hex."""
    sign = match[0]
    return _NAMED.get(sign) or f"\\x{ord(sign):02x}"
