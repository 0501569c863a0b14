"""Check a SQL statement before an engine starts: queries and `show` may run, changes are refused.

| statement | views registered for it |
|---|---|
| select, with, values, from, table | those that it uses, with the columns that it uses |
| show, describe, explain | all, with all columns |
| create, insert, set and all others that change something | refused |

This module checks the first word; the engine's parser decides whether a statement that begins like
a query is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import NamedTuple

from engine.analysis.columns import VIEWS
from engine.analysis.sql_text import one_statement, without_comments, without_texts
from engine.analysis.table_values import Row
from engine.analysis.view_column import ViewColumn
from engine.errors import EngineError

_ACTIONS = frozenset({
    "add", "alter", "analyze", "cache", "call", "clear", "comment", "commit", "create",
    "declare", "delete", "drop", "execute", "export", "grant", "import", "insert", "install",
    "kill", "load", "lock", "merge", "msck", "optimize", "overwrite", "put", "reassign",
    "refresh", "remove", "repair", "replace", "reset", "restore", "revoke", "rollback", "set",
    "sync", "truncate", "uncache", "undrop", "unset", "update", "use", "vacuum",
})  # fmt: skip
#: First words of statements about the views, which read no records.
ABOUT_VIEWS = ("show", "describe", "desc", "explain")


class QueryFailed(EngineError):
    """An engine refused or could not finish a query."""

    hint = (
        f"`describe records` shows the columns; the views are {', '.join(VIEWS)}; "
        "`show functions` lists what the engine's SQL has"
    )

    def __init__(self, reason: str) -> None:
        super().__init__(f"the query failed: {reason}")
        self.reason = reason


class StatementRefused(EngineError):
    """A statement is not a single query that only reads."""

    exit_code = 2
    hint = "`kctl spark-export` writes Parquet for tables of your own; here one query is asked"

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class QueryResult(NamedTuple):
    """The rows of a query; `is_cut` if there were more than requested."""

    columns: list[str]
    rows: list[Row]
    is_cut: bool


def check_statement(query: str) -> str:
    """Return the first word of a statement in lower case, if it may be run on logs.

    Raises StatementRefused for no statement, several statements or one that changes something.
    """
    text = without_texts(query).strip().rstrip("; \n\t")
    keyword = next(iter(re.findall(r"[a-z]+", text.lower())), "")
    if not keyword:
        raise StatementRefused("there is no query")
    if ";" in text:
        raise StatementRefused("there are several statements; one query can be asked at a time")
    if keyword in _ACTIONS:
        raise StatementRefused(f"{keyword.upper()} is no question: log directories are only read")
    return keyword


def bare_statement(query: str) -> str:
    """Return a statement without its semicolon, as engines expect it.

    Comments are removed, too, from one about views (`show`, `describe`, `explain`).
    """
    text = one_statement(query)
    return without_comments(text).strip() if check_statement(query) in ABOUT_VIEWS else text


def unknown_column(
    name: str, views: Mapping[str, tuple[ViewColumn, ...]] = VIEWS, more: Iterable[str] = ()
) -> str:
    """Return the error message for an unknown column, with the most similar names.

    `more` are column names in addition to those of the views.
    """
    of_views = {column.name for columns in views.values() for column in columns}
    names = sorted({*of_views, *more})
    alike = get_close_matches(name.rpartition(".")[2], names, n=3)
    return f"no column {name}" + (f"; most like it: {', '.join(alike)}" if alike else "")


def unknown_view(name: str, views: Iterable[str] = VIEWS) -> str:
    """Return the error message for an unknown view, with the most similar name or all names."""
    alike = get_close_matches(name.rpartition(".")[2].lower(), list(views), n=1)
    return f"no view {name}; " + (
        f"did you mean {alike[0]}?" if alike else f"the views are {', '.join(views)}"
    )
