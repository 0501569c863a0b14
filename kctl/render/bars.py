"""Bars of text, for tables."""

from __future__ import annotations


def bar(part: int, whole: int, largest: int, cells: int) -> str:
    """Return a bar as long as `whole` is by `largest`, its first `part` filled.

    `cells` is the longest one; every value above 0 has a cell.
    """
    from rich.bar import FULL_BLOCK

    if not largest or not whole:
        return ""
    length = max(1, round(cells * whole / largest))
    filled = min(length, round(length * part / whole))
    return FULL_BLOCK * filled + "░" * (length - filled)
