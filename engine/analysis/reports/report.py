"""Report: one query in Spark's SQL over the views, and the meaning of its rows."""

from __future__ import annotations

from difflib import get_close_matches
from typing import NamedTuple

from engine.analysis.reports.totals import RECORD_TOTALS, Totals
from engine.errors import EngineError

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


class NoSuchReport(EngineError):
    """A report was requested that is not in the catalogue."""

    exit_code = 2

    def __init__(self, name: str, names: list[str]) -> None:
        alike = get_close_matches(name, names, n=3)
        super().__init__(
            f"no report {name!r}"
            + (f"; most like it: {', '.join(alike)}" if alike else "; `spark-report list` has all")
        )
        self.name = name
