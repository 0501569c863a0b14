"""Bars and sparklines of block characters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, TypeGuard

#: Heights from 0 on.
HEIGHTS: Final = "▁▂▃▄▅▆▇█"
#: For terminals without block characters.
ASCII_HEIGHTS: Final = "_.:-=+*#"


def bar(part: int, whole: int, largest: int, cells: int) -> str:
    """Return a bar whose length is `whole` in proportion to `largest`; `part` of it is filled.

    The longest bar has `cells` characters; every value above 0 has at least one.
    """
    from rich.bar import FULL_BLOCK

    if not largest or not whole:
        return ""
    length = max(1, round(cells * whole / largest))
    filled = min(length, round(length * part / whole))
    return FULL_BLOCK * filled + "░" * (length - filled)


def sparkline(values: Sequence[float | None], heights: str = HEIGHTS) -> str:
    """Return a chart of one line: a character for each value, scaled from 0 to the largest.

    0 and negative values have the lowest height; unknown and non-finite values are blank.
    """
    known = [value for value in values if is_known(value)]
    most = max(known, default=0)
    return "".join(
        " " if not is_known(value) else heights[_height(value, most, len(heights) - 1)]
        for value in values
    )


def is_known(value: float | None) -> TypeGuard[float]:
    """Return True if a value is a finite number, neither None nor NaN."""
    return value is not None and math.isfinite(value)


def _height(value: float, most: float, highest: int) -> int:
    """Return the height of a value from 0 to `highest`; at least 1 if it is above 0."""
    return max(1, round(highest * (value / most))) if value > 0 else 0
