r"""Decode escapes in arguments: `\n \t \r \0 \\ \xNN`."""

from __future__ import annotations

import os

from kctl.arguments import UnreadableArgument

_ESCAPES = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "\\": b"\\"}
_HEX_DIGITS = frozenset("0123456789abcdefABCDEF")


def read_escape(text: str, position: int, what: str) -> tuple[bytes, int]:
    """Return the bytes of the escape sequence at a backslash, and the position after it.

    `what` names the text in an error, such as "a record format". Errors: UnreadableArgument.
    """
    letter = text[position + 1 : position + 2]
    if letter == "x":
        digits = text[position + 2 : position + 4]
        if len(digits) != 2 or not set(digits) <= _HEX_DIGITS:
            raise UnreadableArgument(what, text, "two hex digits after \\x")
        return bytes.fromhex(digits), position + 4
    if letter not in _ESCAPES:
        raise UnreadableArgument(what, text, "n, t, r, 0, \\ or xNN after \\")
    return _ESCAPES[letter], position + 2


def decode_escapes(text: str, what: str) -> bytes:
    """Return a text as bytes, with the escape sequences after backslashes decoded.

    `what` names the text in an error. Arguments that are not UTF-8 keep their original bytes.

    Errors: UnreadableArgument.
    """
    parts: list[bytes] = []
    position = 0
    while (backslash := text.find("\\", position)) >= 0:
        parts.append(os.fsencode(text[position:backslash]))
        escaped, position = read_escape(text, backslash, what)
        parts.append(escaped)
    parts.append(os.fsencode(text[position:]))
    return b"".join(parts)
