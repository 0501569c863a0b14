"""The columns of rows."""

from __future__ import annotations

from typing import NamedTuple


class Column(NamedTuple):
    """One column: its key in rows, its heading, and its display.

    `wide` columns are left out of plain tables; `right` aligns numbers; in tables a text that is
    `beneath` is printed below its row. The column that `is_name`, else the first, is the name of a
    row. A number of bytes that `is_size` is printed in tables with a unit, a time in ms
    that `is_time` as a date.

    `kind` is the type of the JSON values; without one they are integers where they are aligned
    right or sizes, else strings.

    | kind | values |
    |---|---|
    | string, integer, number, boolean | one of these |
    | object | an object with `fields` |
    | any | any value |
    | K? | a K or null |
    | K[] | a list of K |
    | K{} | an object whose values are K |

    `is_optional` are those that rows have on request only.
    """

    key: str
    heading: str
    right: bool = False
    wide: bool = False
    beneath: bool = False
    is_name: bool = False
    is_size: bool = False
    is_time: bool = False
    kind: str = ""
    fields: tuple[Column, ...] = ()
    is_optional: bool = False
