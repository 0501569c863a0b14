"""Running one SQL query over the views."""

from __future__ import annotations

from typing import Any, NamedTuple

from engine.analysis.spark_session import failure_of
from engine.analysis.spark_views import register_views
from engine.analysis.splits import Split
from engine.errors import EngineError


class QueryFailed(EngineError):
    """Spark refused or could not finish a query."""

    hint = "the views are records, batches and segments; their columns are in the reference"

    def __init__(self, reason: str) -> None:
        super().__init__(f"the query failed: {reason}")
        self.reason = reason


class QueryResult(NamedTuple):
    """The rows of a query; `is_cut` says that there were more than asked for."""

    columns: list[str]
    rows: list[dict[str, Any]]
    is_cut: bool


def run_query(
    session: Any, query: str, splits: list[Split], *, control: bool, max_rows: int
) -> QueryResult:
    """Return the rows of a query, at most `max_rows` unless that is 0; raises QueryFailed."""
    try:
        register_views(session, query, splits, control=control)
        frame = session.sql(query.strip().rstrip(";"))
        if max_rows:
            frame = frame.limit(max_rows + 1)
        # Arrow keeps times in UTC; Spark's rows would have this machine's zone.
        table = frame.toArrow()
    except Exception as error:
        raise QueryFailed(failure_of(error)) from error
    kept = table.slice(0, max_rows) if max_rows else table
    return QueryResult(list(frame.columns), kept.to_pylist(), kept.num_rows < table.num_rows)
