"""Integers as Java's parsers accept them: with decimal digits of any script."""

from __future__ import annotations

import re

from kctl.compat.java_failures import ToolFailure

_NUMBER = re.compile(r"[+-]?\d+")
NUMBER_FORMAT = "java.lang.NumberFormatException"
INT_BITS = 32
LONG_BITS = 64
#: Longest accepted text: Python parses no number of more than 4,300 digits.
_CHARS_MAX = 4000


def java_number(text: str, bits: int = INT_BITS) -> int:
    """Parse a signed integer of this number of bits as Java does; raises ToolFailure."""
    if not is_java_number(text, bits):
        raise ToolFailure(NUMBER_FORMAT, f'For input string: "{text}"')
    return int(text)


def is_java_number(text: str, bits: int = INT_BITS) -> bool:
    """Return True if Java parses the text as an integer of this number of bits."""
    limit = 1 << (bits - 1)
    # Java accepts no digits above 16 bits, which are two chars in its strings.
    if not _NUMBER.fullmatch(text) or max(text) > "\uffff" or len(text) > _CHARS_MAX:
        return False
    return -limit <= int(text) < limit
