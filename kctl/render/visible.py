r"""Control characters made visible: the contents of a record must not steer a terminal.

| in | becomes |
|---|---|
| a control character of ASCII, Latin-1 | `\xNN`, `\n`, `\r`, `\t` |
| bytes that are no UTF-8 | `\xNN` each |
| anything else | itself |

Tables have these everywhere. A text that goes byte for byte to a file or a pipe has them only on a
terminal, where lines and tabs stay as they are.
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
    """Return the text of a table's cell, which is one line."""
    return _controls("").sub(_escape, text)


def visible_lines(raw: bytes) -> bytes:
    """Return bytes as a terminal may receive them; newlines and tabs stay."""
    text = raw.decode("utf-8", "backslashreplace")
    return _controls("\n\t").sub(_escape, text).encode()


class VisibleStream:
    """Passes bytes on to a terminal as `visible_lines` converts them, however they are split."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        """`write` gets the converted bytes."""
        self._write = write
        self._partial_line = b""

    def write(self, block: Buffer) -> None:
        """Pass on the complete lines."""
        lines, end, partial_line = (self._partial_line + bytes(block)).rpartition(b"\n")
        self._write(visible_lines(lines + end))
        self._partial_line = partial_line

    def close(self) -> None:
        """Pass on the last line, which has no end."""
        self._write(visible_lines(self._partial_line))
        self._partial_line = b""


@cache
def _controls(kept: str) -> re.Pattern[str]:
    """Return a pattern of control characters of ASCII and Latin-1 but those that are kept."""
    signs = (chr(code) for code in (*range(0x20), *range(0x7F, 0xA0)))
    return re.compile("[" + "".join(re.escape(sign) for sign in signs if sign not in kept) + "]")


def _escape(match: re.Match[str]) -> str:
    """Return a control character's visible escape: its letter, or the code in hex."""
    sign = match[0]
    return _NAMED.get(sign) or f"\\x{ord(sign):02x}"
