"""Numbers as Java's parsers read them: of the decimal digits of any script."""

from __future__ import annotations

import re

from kctl.compat.java_failures import ToolFailure

_NUMBER = re.compile(r"[+-]?\d+")
NUMBER_FORMAT = "java.lang.NumberFormatException"
INT_BITS = 32
LONG_BITS = 64


def java_number(text: str, bits: int = INT_BITS) -> int:
    """Return a whole number of so many bits; raises ToolFailure for other text."""
    if not is_java_number(text, bits):
        raise ToolFailure(NUMBER_FORMAT, f'For input string: "{text}"')
    return int(text)


def is_java_number(text: str, bits: int = INT_BITS) -> bool:
    """Return whether a text is a whole number of so many bits."""
    limit = 1 << (bits - 1)
    return bool(_NUMBER.fullmatch(text)) and -limit <= int(text) < limit
