"""The definition of columns of rows."""

from __future__ import annotations

from typing import NamedTuple


class Column(NamedTuple):
    """A column: its key in rows, its heading, and how its values are shown.

    `wide` columns are not in plain tables; `right` aligns to the right; the text of a `beneath`
    column is printed below its row in tables. The name of a row is the column with `is_name`, else
    the first. In tables a number of bytes (`is_size`) has a unit, and a time in ms (`is_time`) is a
    date. `kind` is the type of the JSON values; by default integer for columns that are `right`, a
    size or a time, else string.

    | kind | values |
    |---|---|
    | string, integer, number, boolean | one of these |
    | object | an object with `fields` |
    | any | any value |
    | K? | a K or null |
    | K[] | a list of K |
    | K{} | an object whose values are K |

    Columns that are `is_optional` are in rows only if they are requested.
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
