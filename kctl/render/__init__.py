"""Rows in; table, JSON, YAML, CSV or NDJSON out. Commands never print rows themselves.

| format | shape | content |
|---|---|---|
| table | aligned columns, headings | the columns that a person reads first |
| wide | the same | every column |
| json | one array of objects | every column, snake_case keys, null is null |
| ndjson | one object a line, written as it comes | the same |
| yaml | one list, written as it comes | the same |
| csv | heading line, RFC 4180 quoting | the same; null is an empty cell |
| name | the name of each row, a line each; null is no line | for scripts |
| markdown, html, tsv | a table for tickets and reports | those of table |

A table without rows is a heading: there is nothing. Where errors are all there is, it is left out.
A single object (`write_object`) is one object in json and yaml, never a list.
"""

from __future__ import annotations

from kctl.render.columns import Column
from kctl.render.rows import (
    FORMATS,
    MARKUPS,
    TABLES,
    Row,
    RowWriter,
    check_format,
    write_object,
    write_rows,
)

__all__ = [
    "FORMATS",
    "MARKUPS",
    "TABLES",
    "Column",
    "Row",
    "RowWriter",
    "check_format",
    "write_object",
    "write_rows",
]
