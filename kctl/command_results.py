"""The end of a command about several things: a row for each that went well, and the exit code.

| rows | failures, reported before | table | json, yaml, csv, … | exit code |
|---|---|---|---|---|
| some | none | heading and rows | the rows | 0 |
| some | some | heading and rows | the rows | 1 |
| none | none | the heading alone: there is nothing | no rows | 0 |
| none | some | nothing: a heading below errors reads as if there were nothing | no rows | 1 |
| none | no broker could be reached for any item | nothing | no rows | 3 |
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kctl import exits
from kctl.console import report_error
from kctl.render import Column, Row, write_rows

if TYPE_CHECKING:
    from engine.errors import EngineError


class ItemFailures:
    """Failures of single items of a command, each reported as it comes."""

    def __init__(self) -> None:
        """Begin without failures."""
        self.count = 0
        #: Of `count`, those for which no broker could be reached.
        self._unreachable_count = 0

    def report(self, error: EngineError, item: str) -> None:
        """Report the error of an item, and count it."""
        report_error(error, item)
        self.count += 1
        if getattr(error, "exit_code", exits.FAILED) == exits.UNREACHABLE:
            self._unreachable_count += 1

    def end_with(self, columns: Sequence[Column], rows: Sequence[Row], output: str) -> int:
        """Print the rows; return the exit code, 3 if all items failed for want of a broker.

        Scripts tell a cluster that is down from an item that is not there by that.
        """
        code = end_with(columns, rows, output, failures=self.count)
        is_down = not rows and 0 < self._unreachable_count == self.count
        return exits.UNREACHABLE if is_down else code


def end_with(
    columns: Sequence[Column], rows: Iterable[Row], output: str, *, failures: int = 0
) -> int:
    """Print the rows; return exit code 1 if there are failures, else 0."""
    write_rows(columns, rows, output, failures=failures)
    return exits.FAILED if failures else exits.OK
