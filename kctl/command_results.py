"""The end of a command about several things: a row for each that went well, and the exit code.

| rows | failures, reported before | table | json, yaml, csv, … | exit code |
|---|---|---|---|---|
| some | none | heading and rows | the rows | 0 |
| some | some | heading and rows | the rows | 1 |
| none | none | the heading alone: there is nothing | no rows | 0 |
| none | some | nothing: a heading below errors reads as if there were nothing | no rows | 1 |
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kctl import exits
from kctl.render import Column, Row, write_rows


def end_with(
    columns: Sequence[Column], rows: Iterable[Row], output: str, *, failures: int = 0
) -> int:
    """Print the rows; return exit code 1 if there are failures, else 0."""
    write_rows(columns, rows, output, failures=failures)
    return exits.FAILED if failures else exits.OK
