"""Tables: by rich on a terminal, aligned with spaces elsewhere, and as markup for tickets.

| format | how |
|---|---|
| table, wide | aligned columns; on a terminal by rich, with bold headings |
| markdown | a table in GitHub's syntax, by tabulate |
| html | one `<table>`, by tabulate |
| tsv | cells separated by tabs, headings first, by tabulate |

Wide characters count with the columns they take. Control characters are escaped in every cell.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TextIO

from kctl.render.aligner import align_table, width_of
from kctl.render.columns import Column
from kctl.render.visible import visible_cell

# Longer lines are hard to read, on wide terminals too.
_TEXT_COLUMNS = 100
_TEXT_INDENT = 4
_MARKUPS = {"markdown": "pipe", "html": "html", "tsv": "tsv"}
_BETWEEN = "  "
_UNIT = 1024
#: The separator that rich prints between two columns without borders.
_RICH_GAP = 2
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def cell_text(value: object) -> str:
    """Return a value as the text of a table cell, on one line."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ",".join(cell_text(item) for item in value)
    if isinstance(value, dict):
        return ",".join(f"{key}={cell_text(item)}" for key, item in value.items())
    return visible_cell(str(value))


def size_text(size_bytes: int) -> str:
    """Return a number of bytes with a unit, to three digits: `1.46 MiB`."""
    size, unit = float(size_bytes), 0
    while abs(size) >= _UNIT - 0.5 and unit < len(_UNITS) - 1:
        size /= _UNIT
        unit += 1
    if not unit:
        return f"{size_bytes} B"
    digits = 2 if abs(size) < 9.995 else 1 if abs(size) < 99.95 else 0
    return f"{size:.{digits}f} {_UNITS[unit]}"


def _cells(columns: Sequence[Column], row: Mapping[str, object]) -> list[str]:
    """Return the cells of a row: values as text, sizes with units, times as dates."""
    return [_column_cell_text(column, row.get(column.key)) for column in columns]


def _column_cell_text(column: Column, value: Any) -> str:
    """Return a value as the text of a cell in its column."""
    if value is not None and column.is_size:
        return size_text(value)
    if value is not None and column.is_time:
        from kctl.time_text import time_text

        return time_text(value)
    return cell_text(value)


def write_table(
    columns: Sequence[Column], rows: Sequence[Mapping[str, object]], stream: TextIO
) -> None:
    """Write rows as a table: with colours on a terminal, else aligned with spaces.

    NO_COLOR, a column `beneath`, and headings wider than the terminal prevent colours.
    """
    is_plain = not stream.isatty() or os.environ.get("NO_COLOR") or any(c.beneath for c in columns)
    if is_plain or not _write_rich(columns, rows, stream):
        _write_aligned(columns, rows, stream)


def write_markup(
    columns: Sequence[Column], rows: Sequence[Mapping[str, object]], output: str, stream: TextIO
) -> None:
    """Write a table as markdown, html or tsv."""
    cells = [_cells(columns, row) for row in rows]
    if output == "tsv":
        # For programs, too: sizes are plain numbers of bytes.
        cells = [[cell_text(row.get(column.key)) for column in columns] for row in rows]
    if output == "markdown":
        # `|` separates cells.
        cells = [[text.replace("|", "\\|") for text in line] for line in cells]
    text = align_table(
        cells,
        [column.heading for column in columns],
        tablefmt=_MARKUPS[output],
        colalign=None if output == "tsv" else _alignment(columns),
        stralign=None if output == "tsv" else "left",
    )
    stream.write(text + "\n")


def _alignment(columns: Sequence[Column]) -> list[str]:
    """Return `right` or `left` for each column."""
    return ["right" if column.right else "left" for column in columns]


def _write_rich(
    columns: Sequence[Column], rows: Sequence[Mapping[str, object]], stream: TextIO
) -> bool:
    """Write a table with colours and wrapped cells, and return True.

    If the headings do not fit into the terminal, nothing is written, and False returned.
    """
    from rich.console import Console
    from rich.table import Table

    console = Console(file=stream, markup=False, highlight=False)
    cells = [_cells(columns, row) for row in rows]
    headings = [column.heading for column in columns]
    widest = [max(map(width_of, column)) for column in zip(headings, *cells, strict=True)]
    widths = fitted_widths(headings, widest, console.width - _RICH_GAP * (len(columns) - 1))
    if widths is None:
        return False
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column, width in zip(columns, widths, strict=True):
        # Folded, not truncated: a path or an offset must be complete to be copied.
        justify: Literal["left", "right"] = "right" if column.right else "left"
        table.add_column(column.heading, justify=justify, overflow="fold", width=width)
    for row in cells:
        table.add_row(*row)
    console.print(table)
    return True


def fitted_widths(
    headings: Sequence[str], widest: Sequence[int], available: int
) -> list[int] | None:
    """Return column widths that fit into `available`, None if not even the headings fit.

    `widest` has the width of each column's widest cell. A column is never narrower than the longest
    word of its heading; the widest columns shrink first.
    """
    least = [max(map(width_of, heading.split()), default=0) for heading in headings]
    if sum(least) > available:
        return None
    low, high = 0, max(widest, default=0)
    while low < high:
        level = (low + high + 1) // 2
        if sum(_levelled(least, widest, level)) <= available:
            low = level
        else:
            high = level - 1
    return _levelled(least, widest, low)


def _levelled(least: Sequence[int], widest: Sequence[int], level: int) -> list[int]:
    """Return the columns' widths if no column may be wider than `level`.

    A width is at least that in `least`, and never above that in `widest`.
    """
    return [max(low, min(high, level)) for low, high in zip(least, widest, strict=True)]


def _write_aligned(
    columns: Sequence[Column], rows: Sequence[Mapping[str, object]], stream: TextIO
) -> None:
    """Write a table aligned with spaces; texts of `beneath` columns are below their rows."""
    beneath = [column for column in columns if column.beneath]
    columns = [column for column in columns if not column.beneath]
    cells = [_cells(columns, row) for row in rows]
    for number, line in enumerate(_align_lines(columns, cells)):
        stream.write(line.rstrip() + "\n")
        if number and beneath:
            _write_beneath(beneath, rows[number - 1], stream)


def _align_lines(columns: Sequence[Column], cells: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table: the headings, then each row, in aligned columns."""
    lines = [[column.heading for column in columns], *cells]
    aligned = []
    for place, column in enumerate(columns):
        texts = [line[place] for line in lines]
        widths = [width_of(text) for text in texts]
        width = max(widths)
        rooms = [" " * (width - each) for each in widths]
        # Without rows, headings are aligned to the left.
        if column.right and cells:
            aligned.append([room + text for room, text in zip(rooms, texts, strict=True)])
        else:
            aligned.append([text + room for room, text in zip(rooms, texts, strict=True)])
    return [_BETWEEN.join(parts) for parts in zip(*aligned, strict=True)]


def _write_beneath(columns: Sequence[Column], row: Mapping[str, object], stream: TextIO) -> None:
    """Write the texts below a row, wrapped to the terminal's width."""
    import shutil
    import textwrap

    width = min(shutil.get_terminal_size((_TEXT_COLUMNS, 0)).columns, _TEXT_COLUMNS)
    for column in columns:
        text = row.get(column.key)
        if text:
            indent = " " * _TEXT_INDENT
            lines = textwrap.wrap(
                cell_text(text),
                max(width, 4 * _TEXT_INDENT),
                initial_indent=indent,
                subsequent_indent=indent,
                break_long_words=False,
                break_on_hyphens=False,
            )
            stream.write("\n".join(lines) + "\n")


class StreamedTable:
    """A table that is written row by row; the first rows decide the widths of its columns.

    A longer cell in a later row shifts the rest of its line to the right.
    """

    def __init__(
        self, columns: Sequence[Column], rows: Sequence[Mapping[str, object]], stream: TextIO
    ) -> None:
        """Fix the columns' widths by the first rows, and write the headings.

        The first rows are not written.
        """
        self._columns = columns
        self._stream = stream
        self._widths = [len(column.heading) for column in columns]
        for row in rows:
            for place, text in enumerate(_cells(columns, row)):
                self._widths[place] = max(self._widths[place], width_of(text))
        self._write_line([column.heading for column in columns])

    def write(self, rows: Sequence[Mapping[str, object]]) -> None:
        """Write rows in the fixed widths; the first ones must be passed again."""
        for row in rows:
            self._write_line(_cells(self._columns, row))

    def _write_line(self, cells: Sequence[str]) -> None:
        """Write a line of cells in the widths of the columns."""
        parts = []
        for text, width, column in zip(cells, self._widths, self._columns, strict=True):
            room = " " * (width - width_of(text))
            parts.append(room + text if column.right else text + room)
        self._stream.write(_BETWEEN.join(parts).rstrip() + "\n")
