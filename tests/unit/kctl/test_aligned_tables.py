"""Aligned tables: each of them is what tabulate makes of the same cells."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import wcwidth
from hypothesis import given
from hypothesis import strategies as st

from kctl.render.columns import Column
from kctl.render.table import cell_text, write_table

#: Its types leave out what kctl sets.
_TABULATE: Any = import_module("tabulate")
_CELLS = st.text(st.sampled_from("ab7 -é漢字한\u0301\u200d😀"), max_size=6)


def _by_tabulate(columns: Sequence[Column], rows: Sequence[Mapping[str, object]]) -> str:
    """Return a table by tabulate, that takes wide characters as they are shown."""
    alignment = ["right" if column.right else "left" for column in columns]
    assert _TABULATE.wcwidth is wcwidth
    text = _TABULATE.tabulate(
        [[cell_text(row[column.key]) for column in columns] for row in rows],
        [column.heading for column in columns],
        tablefmt="plain",
        disable_numparse=True,
        preserve_whitespace=True,
        colalign=alignment if rows else None,
    )
    return "".join(f"{line.rstrip()}\n" for line in text.split("\n"))


@given(st.data())
def test_a_table_is_aligned_as_by_tabulate(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 4))
    columns = [
        Column(f"c{number}", data.draw(st.sampled_from(["A", "NAME", "UNDER-REPLICATED", "字"])))
        for number in range(count)
    ]
    columns = [column._replace(right=data.draw(st.booleans())) for column in columns]
    row = st.fixed_dictionaries({column.key: _CELLS for column in columns})
    rows = data.draw(st.lists(row, max_size=4))
    stream = io.StringIO()
    padding, _TABULATE.MIN_PADDING = _TABULATE.MIN_PADDING, 0
    known, _TABULATE.wcwidth = _TABULATE.wcwidth, wcwidth
    wide, _TABULATE.WIDE_CHARS_MODE = _TABULATE.WIDE_CHARS_MODE, True
    try:
        expected = _by_tabulate(columns, rows)
    finally:
        _TABULATE.MIN_PADDING, _TABULATE.wcwidth = padding, known
        _TABULATE.WIDE_CHARS_MODE = wide
    write_table(columns, rows, stream)
    assert expected == stream.getvalue()
