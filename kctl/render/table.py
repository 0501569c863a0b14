"""Tables for people: rich on a terminal, plain aligned text elsewhere."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TextIO

from kctl.render.columns import Column

# Longer lines are hard to read, however wide the terminal is.
_TEXT_COLUMNS = 100
_TEXT_INDENT = 4


def cell_text(value: Any) -> str:
    """Return how a value reads in a table cell."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ",".join(cell_text(item) for item in value)
    if isinstance(value, dict):
        return ",".join(f"{key}={cell_text(item)}" for key, item in value.items())
    return str(value)


def write_table(
    columns: Sequence[Column], rows: Sequence[Mapping[str, Any]], stream: TextIO
) -> None:
    """Write a table; colours and borders only on a terminal without NO_COLOR."""
    if stream.isatty() and not os.environ.get("NO_COLOR") and not any(c.beneath for c in columns):
        _write_rich(columns, rows, stream)
    else:
        _write_plain(columns, rows, stream)


def _write_rich(
    columns: Sequence[Column], rows: Sequence[Mapping[str, Any]], stream: TextIO
) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in columns:
        # Folded rather than cut: a path or an offset must be there whole to be copied.
        justify: Literal["left", "right"] = "right" if column.right else "left"
        table.add_column(column.heading, justify=justify, overflow="fold")
    for row in rows:
        table.add_row(*(cell_text(row.get(column.key)) for column in columns))
    Console(file=stream, markup=False, highlight=False).print(table)


def _write_plain(
    columns: Sequence[Column], rows: Sequence[Mapping[str, Any]], stream: TextIO
) -> None:
    beneath = [column for column in columns if column.beneath]
    columns = [column for column in columns if not column.beneath]
    cells = [[column.heading for column in columns]]
    cells += [[cell_text(row.get(column.key)) for column in columns] for row in rows]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    for number, line in enumerate(cells):
        parts = [
            text.rjust(width) if column.right else text.ljust(width)
            for text, width, column in zip(line, widths, columns, strict=True)
        ]
        stream.write("  ".join(parts).rstrip() + "\n")
        if number and beneath:
            _write_beneath(beneath, rows[number - 1], stream)


def _write_beneath(columns: Sequence[Column], row: Mapping[str, Any], stream: TextIO) -> None:
    """Write the texts below a row, in lines that the terminal can hold."""
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
