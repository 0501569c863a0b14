"""Splitting of text as Java's String.split does it."""

from __future__ import annotations

import re


def java_split(text: str, separator: str) -> list[str]:
    """Return the parts between separators, without the empty ones at the end.

    A text without the separator is one part, also if it is empty.
    """
    if separator not in text:
        return [text]
    parts = text.split(separator)
    while parts and not parts[-1]:
        parts.pop()
    return parts


def java_split_pattern(text: str, pattern: str) -> list[str]:
    """Return the parts between matches of a pattern, without the empty ones at the end.

    A text without a match is one part, also if it is empty.
    """
    parts = re.split(pattern, text)
    if len(parts) == 1:
        return parts
    while parts and not parts[-1]:
        parts.pop()
    return parts
