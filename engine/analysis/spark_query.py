"""Running one SQL query over the views.

A statement asks, and never makes or changes something:

| statement | views |
|---|---|
| select, with, values, from, table | those that it uses, with the columns that it uses |
| show, describe, explain | all, with all columns |
| create, insert, set and all others that do something | refused |

The first word is looked at before Spark starts; Spark's own parser says of a statement that begins
like a question whether it is one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from engine.analysis.columns import VIEWS
from engine.analysis.spark_failures import failure_of
from engine.analysis.spark_views import columns_used, register_views
from engine.analysis.splits import Split
from engine.analysis.sql_text import without_texts
from engine.analysis.table_values import Row, plain_rows
from engine.errors import EngineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ACTIONS = frozenset({
    "add", "alter", "analyze", "cache", "call", "clear", "comment", "commit", "create",
    "declare", "delete", "drop", "execute", "export", "grant", "import", "insert", "install",
    "kill", "load", "lock", "merge", "msck", "optimize", "overwrite", "put", "reassign",
    "refresh", "remove", "repair", "replace", "reset", "restore", "revoke", "rollback", "set",
    "sync", "truncate", "uncache", "undrop", "unset", "update", "use", "vacuum",
})  # fmt: skip
_ABOUT_VIEWS = ("show", "describe", "desc", "explain")


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
    rows: list[Row]
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
    session: SparkSession, query: str, splits: list[Split], *, control: bool, max_rows: int
) -> QueryResult:
    """Return the rows of a query, at most `max_rows` unless that is 0.

    Errors: StatementRefused, QueryFailed.
    """
    is_about_views = check_statement(query) in _ABOUT_VIEWS
    query = query.strip().rstrip(";")
    try:
        if not is_about_views:
            _check_parsed(session, query)
        used = VIEWS if is_about_views else columns_used(session, query)
        register_views(session, used, splits, control=control)
        frame = session.sql(query)
        if max_rows:
            frame = frame.limit(max_rows + 1)
        # Arrow keeps times in UTC; Spark's rows would have this machine's zone.
        table = frame.toArrow()
        kept = table.slice(0, max_rows) if max_rows else table
        rows = plain_rows(kept)
    except StatementRefused:
        raise
    except Exception as error:
        raise QueryFailed(failure_of(error)) from error
    return QueryResult(list(frame.columns), rows, kept.num_rows < table.num_rows)


def _check_parsed(session: SparkSession, query: str) -> None:
    """Raise StatementRefused for a statement that writes, by Spark's parser.

    Spark runs a command as soon as it is analysed, so that has to be known before.
    """
    try:
        plan = session._jsparkSession.sessionState().sqlParser().parsePlan(query)
    except AttributeError:
        return
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        name = node.getClass().getSimpleName()
        if name.endswith("Command") or name.startswith(("InsertInto", "Create", "Delete", "Merge")):
            raise StatementRefused(f"{name} is no question: log directories are only read")
        children = node.children()
        waiting += [children.apply(number) for number in range(children.size())]
