"""The end of a command on several items: a row for each success, and the exit code.

| rows | failures, printed before | table | json, yaml, csv, … | exit code |
|---|---|---|---|---|
| some | none | heading and rows | the rows | 0 |
| some | some | heading and rows | the rows | 1 |
| none | none | only the heading: there is nothing | no rows | 0 |
| none | some | nothing: a heading after errors would look like an empty result | no rows | 1 |
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
    """Failures of single items of a command, each printed when it occurs."""

    def __init__(self) -> None:
        """Create a count of failed items, such as groups, of a command with several."""
        self.count = 0
        #: Number of failures because no broker could be reached.
        self._unreachable_count = 0

    def report(self, error: EngineError, item: str) -> None:
        """Print the error of an item, and count it."""
        report_error(error, item)
        self.count += 1
        if getattr(error, "exit_code", exits.FAILED) == exits.UNREACHABLE:
            self._unreachable_count += 1

    def end_with(self, columns: Sequence[Column], rows: Sequence[Row], output: str) -> int:
        """Print the rows of the items that succeeded; return the exit code.

        It is UNREACHABLE if no broker was reached for any item, so that scripts can distinguish a
        cluster that is down from an item that does not exist.
        """
        code = end_with(columns, rows, output, failures=self.count)
        is_down = not rows and 0 < self._unreachable_count == self.count
        return exits.UNREACHABLE if is_down else code


def end_with(
    columns: Sequence[Column], rows: Iterable[Row], output: str, *, failures: int = 0
) -> int:
    """Print the rows; return FAILED if there are failures, else OK."""
    write_rows(columns, rows, output, failures=failures)
    return exits.FAILED if failures else exits.OK
