"""Numbers as Java's parsers read them: of the decimal digits of any script."""

from __future__ import annotations

import re

from kctl.compat.java_failures import ToolFailure

_NUMBER = re.compile(r"[+-]?\d+")
NUMBER_FORMAT = "java.lang.NumberFormatException"
INT_BITS = 32
LONG_BITS = 64
#: Nobody writes more zeros in front; Python reads no number of more than 4,300 digits.
_CHARS_MAX = 4000


def java_number(text: str, bits: int = INT_BITS) -> int:
    """Return a whole number of so many bits; raises ToolFailure for other text."""
    if not is_java_number(text, bits):
        raise ToolFailure(NUMBER_FORMAT, f'For input string: "{text}"')
    return int(text)


def is_java_number(text: str, bits: int = INT_BITS) -> bool:
    """Return whether a text is a whole number of so many bits."""
    limit = 1 << (bits - 1)
    # Java takes no digits beyond 16 bits, which are two characters for it.
    if not _NUMBER.fullmatch(text) or max(text) > "\uffff" or len(text) > _CHARS_MAX:
        return False
    return -limit <= int(text) < limit
