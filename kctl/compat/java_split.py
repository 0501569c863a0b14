"""Split text like Java's String.split."""

from __future__ import annotations

import re


def java_split(text: str, separator: str) -> list[str]:
    """Split a text as Java's String.split does: without trailing empty parts.

    A text without the separator is one part, even if it is empty.
    """
    if separator not in text:
        return [text]
    parts = text.split(separator)
    while parts and not parts[-1]:
        parts.pop()
    return parts


def java_split_pattern(text: str, pattern: str) -> list[str]:
    """Split a text at matches of a pattern as Java's String.split does.

    Trailing empty parts are dropped. A text without a match is one part, even if it is empty.
    """
    parts = re.split(pattern, text)
    if len(parts) == 1:
        return parts
    while parts and not parts[-1]:
        parts.pop()
    return parts
