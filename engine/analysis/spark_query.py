"""Running one SQL query over the views.

A statement asks, and never makes or changes something:

| statement | views |
|---|---|
| select, with, values, from, explain | those that it names, with the columns it can need |
| show, describe | all, with all columns |
| create, insert, set and all others that do something | refused |
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from engine.analysis.spark_failures import failure_of
from engine.analysis.spark_views import register_views, without_texts
from engine.analysis.splits import Split
from engine.analysis.table_values import plain_rows
from engine.errors import EngineError

_ACTIONS = frozenset({
    "add", "alter", "analyze", "cache", "call", "clear", "comment", "commit", "create",
    "declare", "delete", "drop", "execute", "export", "grant", "import", "insert", "install",
    "kill", "load", "lock", "merge", "msck", "optimize", "overwrite", "put", "reassign",
    "refresh", "remove", "repair", "replace", "reset", "restore", "revoke", "rollback", "set",
    "sync", "truncate", "uncache", "undrop", "unset", "update", "use", "vacuum",
})  # fmt: skip
_ABOUT_VIEWS = ("show", "describe", "desc")


class QueryFailed(EngineError):
    """Spark refused or could not finish a query."""

    hint = (
        "`describe records` shows the columns; the views are records, batches and segments, "
        "and `show functions` lists what Spark's SQL has"
    )

    def __init__(self, reason: str) -> None:
        super().__init__(f"the query failed: {reason}")
        self.reason = reason


class StatementRefused(EngineError):
    """A statement is not a question."""

    exit_code = 2
    hint = "`kctl spark-export` writes Parquet for tables of your own; here one query is asked"

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class QueryResult(NamedTuple):
    """The rows of a query; `is_cut` says that there were more than asked for."""

    columns: list[str]
    rows: list[dict[str, Any]]
    is_cut: bool


def check_statement(query: str) -> str:
    """Return the first word of a statement; raises StatementRefused for more than a question."""
    text = without_texts(query).strip().rstrip("; \n\t")
    word = next(iter(re.findall(r"[a-z]+", text.lower())), "")
    if not word:
        raise StatementRefused("there is no query")
    if ";" in text:
        raise StatementRefused("there are several statements; one query can be asked at a time")
    if word in _ACTIONS:
        raise StatementRefused(f"{word.upper()} is no question: log directories are only read")
    return word


def run_query(
    session: Any, query: str, splits: list[Split], *, control: bool, max_rows: int
) -> QueryResult:
    """Return the rows of a query, at most `max_rows` unless that is 0.

    Errors: StatementRefused, QueryFailed.
    """
    is_about_views = check_statement(query) in _ABOUT_VIEWS
    try:
        register_views(session, None if is_about_views else query, splits, control=control)
        frame = session.sql(query.strip().rstrip(";"))
        if max_rows:
            frame = frame.limit(max_rows + 1)
        # Arrow keeps times in UTC; Spark's rows would have this machine's zone.
        table = frame.toArrow()
        kept = table.slice(0, max_rows) if max_rows else table
        rows = plain_rows(kept)
    except Exception as error:
        raise QueryFailed(failure_of(error)) from error
    return QueryResult(list(frame.columns), rows, kept.num_rows < table.num_rows)
