"""Rows as text cells that fit a terminal's width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from kctl.render.aligner import width_of
from kctl.render.columns import Column
from kctl.render.rows import OutputRow
from kctl.render.table import cell_text, fitted_widths, size_text

#: Spaces between two columns.
GAP = 2
_CUT = "…"


class Cells(NamedTuple):
    """Columns with their widths, and each row's texts, shortened to these widths."""

    columns: list[Column]
    widths: list[int]
    rows: list[list[str]]


def fit_cells(columns: Sequence[Column], rows: Sequence[OutputRow], width: int) -> Cells:
    """Return the columns that fit into a screen of `width`, their widths and the cells' texts.

    Columns marked `wide` are dropped from the right first, then the texts are shortened, then other
    columns are dropped.
    """
    shown = list(columns)
    while True:
        texts = [[_cell_text(column, row[column.key]) for column in shown] for row in rows]
        headings = [column.heading for column in shown]
        widest = [max(map(width_of, column)) for column in zip(headings, *texts, strict=True)]
        room = width - GAP * (len(shown) - 1)
        widths = widest if sum(widest) <= room else None
        wide = [column for column in shown if column.wide]
        if widths is None and wide:
            shown.remove(wide[-1])
            continue
        widths = widths or fitted_widths(headings, widest, room)
        if widths is None and len(shown) > 1:
            shown.pop()
            continue
        widths = widths or [max(width, 1)]
        cut = [
            [_shorten(text, most) for text, most in zip(line, widths, strict=True)]
            for line in texts
        ]
        return Cells(shown, widths, cut)


def _cell_text(column: Column, value: Any) -> str:
    """Return a value as text: "-" for None, sizes with units."""
    if value is None:
        return "-"
    if column.is_size:
        return size_text(round(value))
    if isinstance(value, float):
        return f"{value:,.1f}"
    return cell_text(value)


def _shorten(text: str, width: int) -> str:
    """Shorten a text to a width; its middle is left out, as names differ at both ends."""
    kept = len(text)
    shown = text
    while width_of(shown) > width:
        kept -= 1
        end = kept // 3
        shown = f"{text[: kept - end]}{_CUT}{text[len(text) - end :]}" if kept > 0 else ""
        if not kept:
            break
    return shown
