"""A report: one query in Spark's SQL over the views, with an explanation of its rows."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple

from engine.analysis.reports.totals import RECORD_TOTALS, Totals
from engine.errors import EngineError

if TYPE_CHECKING:
    from engine.analysis.statements import QueryResult

_DIGITS = 12
#: What a report reads: batch headers; records without values; complete records.
HEADERS, KEYS, VALUES = "headers", "keys", "values"


class Report(NamedTuple):
    """A predefined query over log directories.

    `reads` is HEADERS, KEYS or VALUES. `query` runs on either engine with the same result.
    `meaning` explains what to look for in the rows. `totals` defines the table `record_totals` for
    a query that uses it; None for other queries.
    """

    name: str
    title: str
    reads: str
    meaning: str
    query: str
    totals: Totals | None = None

    @property
    def whole_query(self) -> str:
        """Return the report's query over views alone: `record_totals` is defined by a `with`."""
        if self.totals is None:
            return self.query
        return f"with {RECORD_TOTALS} as ({self.totals.query()}) {self.query}"


def rounded(result: QueryResult) -> QueryResult:
    """Return a report's rows with floats rounded to twelve significant digits.

    Engines sum in different orders, so that the last of 16 digits differ.
    """
    rows = [{name: _rounded(value) for name, value in row.items()} for row in result.rows]
    return result._replace(rows=rows)


def _rounded(value: object) -> object:
    """Return a float rounded to twelve significant digits, any other value unchanged."""
    return float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value


class NoSuchReport(EngineError):
    """The catalogue has no report of the requested name."""

    exit_code = 2

    def __init__(self, name: str, names: list[str]) -> None:
        alike = get_close_matches(name, [*names, "all", "list"], n=3)
        super().__init__(
            f"no report {name!r}"
            + (f"; most like it: {', '.join(alike)}" if alike else "; `spark-report list` has all")
        )
        self.name = name
