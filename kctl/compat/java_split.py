"""Splitting of text as Java's String.split does it."""

from __future__ import annotations


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
