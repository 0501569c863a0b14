"""Report: one query in Spark's SQL over the views, and the meaning of its rows."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NamedTuple

from engine.analysis.reports.totals import RECORD_TOTALS, Totals
from engine.errors import EngineError

if TYPE_CHECKING:
    from engine.analysis.statements import QueryResult

_DIGITS = 12
#: What a report reads of the logs: headers of batches; records without their values; all.
HEADERS, KEYS, VALUES = "headers", "keys", "values"


class Report(NamedTuple):
    """A query that is run on log directories again and again.

    `reads` is HEADERS, KEYS or VALUES. `query` runs on either engine with the same result; the
    engine finds out which columns it uses. `meaning` says what to look for in the rows. A query
    over `record_totals` says in `totals` what those are.
    """

    name: str
    title: str
    reads: str
    meaning: str
    query: str
    totals: Totals | None = None

    @property
    def whole_query(self) -> str:
        """Return the query over views alone."""
        if self.totals is None:
            return self.query
        return f"with {RECORD_TOTALS} as ({self.totals.query()}) {self.query}"


def rounded(result: QueryResult) -> QueryResult:
    """Return a report's rows with floats of twelve digits.

    Engines add up in different orders, so that the last of 16 digits differ.
    """
    rows = [{name: _rounded(value) for name, value in row.items()} for row in result.rows]
    return result._replace(rows=rows)


def _rounded(value: Any) -> Any:
    """Return a float with twelve digits, any other value as it is."""
    return float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value


class NoSuchReport(EngineError):
    """A report was requested that is not in the catalogue."""

    exit_code = 2

    def __init__(self, name: str, names: list[str]) -> None:
        alike = get_close_matches(name, [*names, "all", "list"], n=3)
        super().__init__(
            f"no report {name!r}"
            + (f"; most like it: {', '.join(alike)}" if alike else "; `spark-report list` has all")
        )
        self.name = name
