"""Output of rows as table, JSON, YAML, CSV or NDJSON. Commands never format rows themselves.

| format | shape | content |
|---|---|---|
| table | aligned columns with headings | the columns that are not `wide` |
| wide | the same | every column |
| json | one array of objects | every column, snake_case keys, null is null |
| ndjson | one object per line, written as soon as it is known | the same |
| yaml | one list, written as soon as rows are known | the same |
| csv | heading line, RFC 4180 quoting | the same; null is an empty cell |
| name | the name of each row, one per line; null is no line | for scripts |
| markdown, html, tsv | a table for tickets and reports | those of table |

A table without rows is only its heading line; after errors that is left out, too. A single object
(`write_object`) is one object in json and yaml, never a list.
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
