"""Bars of text, for tables and charts of one line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, TypeGuard

#: From that of 0 on.
HEIGHTS: Final = "▁▂▃▄▅▆▇█"
#: For terminals that have no blocks.
ASCII_HEIGHTS: Final = "_.:-=+*#"


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


def sparkline(values: Sequence[float | None], heights: str = HEIGHTS) -> str:
    """Return a chart of one line, a character a value, from 0 to the largest.

    0 and less are the lowest height, more is higher; what is not known or not finite is a gap.
    """
    known = [value for value in values if is_known(value)]
    most = max(known, default=0)
    return "".join(
        " " if not is_known(value) else heights[_height(value, most, len(heights) - 1)]
        for value in values
    )


def is_known(value: float | None) -> TypeGuard[float]:
    """Return whether a value is a finite number."""
    return value is not None and math.isfinite(value)


def _height(value: float, most: float, highest: int) -> int:
    """Return a bar's height from 0 to `highest`, at least 1 for a value above 0."""
    return max(1, round(highest * (value / most))) if value > 0 else 0
