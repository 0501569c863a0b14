"""What a column of rows is."""

from __future__ import annotations

from typing import NamedTuple


class Column(NamedTuple):
    """One column: its key in rows, its heading, and where it is shown.

    `wide` columns are left out of plain tables; `right` aligns numbers; in tables a text that is
    `beneath` stands below its row. The column that `is_name`, else the first, is what rows are
    called by. A number of bytes that `is_size` stands in tables as people read sizes.
    """

    key: str
    heading: str
    right: bool = False
    wide: bool = False
    beneath: bool = False
    is_name: bool = False
    is_size: bool = False
