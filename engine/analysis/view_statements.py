"""Answer statements about the views from their column definitions, in Spark's form."""

from __future__ import annotations

import re
from collections.abc import Iterable

from engine.analysis.column_types import spark_type
from engine.analysis.columns import VIEWS
from engine.analysis.local_plan import Views
from engine.analysis.statements import QueryFailed, QueryResult, StatementRefused, unknown_view
from engine.analysis.view_column import ViewColumn

_DESCRIBE = re.compile(r"desc(?:ribe)?\s+(?:table\s+)?(?:extended\s+|formatted\s+)?`?(\w+)`?", re.I)
_COLUMNS = re.compile(r"show\s+columns\s+(?:in|from)\s+`?(\w+)`?", re.I)
_TABLES = re.compile(r"show\s+(tables|views)", re.I)
_QUERY = re.compile(
    r"desc(?:ribe)?\s+(?:query\s+(?=\S)|(?=(?:select|with|from|values)\b))(.)", re.I
)


#: The columns of the result of `describe`.
DESCRIBED = ["col_name", "data_type", "comment"]


def answer_about_views(
    statement: str, views: Views = VIEWS, saved: Iterable[str] = ()
) -> QueryResult | None:
    """Return the answer to `show` or `describe`, without reading logs.

    None for `explain`, which needs the query engine. Raises StatementRefused for an unknown
    statement, QueryFailed for an unknown view.
    """
    statement = statement.strip()
    if statement.lower().startswith("explain"):
        return None
    if (listed := list_views(statement, views, saved)) is not None:
        return listed
    if match := _COLUMNS.fullmatch(statement):
        rows = [{"col_name": column.name} for column in _columns(match[1], views, saved)]
        return QueryResult(["col_name"], rows, is_cut=False)
    if match := _DESCRIBE.fullmatch(statement):
        rows = [
            {"col_name": column.name, "data_type": spark_type(column.type), "comment": column.doc}
            for column in _columns(match[1], views, saved)
        ]
        return QueryResult(DESCRIBED, rows, is_cut=False)
    raise StatementRefused(
        f"{statement.split(None, 1)[0].upper()} of this form is answered by --engine spark alone"
    )


def list_views(
    statement: str, views: Views = VIEWS, saved: Iterable[str] = ()
) -> QueryResult | None:
    """Return the answer to `show tables` or `show views`, None for another statement.

    Saved views are listed as not temporary.
    """
    match = _TABLES.fullmatch(statement.strip())
    if match is None:
        return None
    name = "tableName" if match[1].lower() == "tables" else "viewName"
    rows = [
        {"namespace": "", name: view, "isTemporary": view in views}
        for view in sorted({*views, *saved})
    ]
    return QueryResult(["namespace", name, "isTemporary"], rows, is_cut=False)


def described_query(statement: str, saved: Iterable[str] = ()) -> tuple[str, bool] | None:
    """Return the query whose columns a statement describes, and True if only names are wanted.

    The statements are `describe query SELECT …`, and `describe` and `show columns` of a saved view.
    Returns None for any other statement.
    """
    statement = statement.strip()
    if match := _QUERY.match(statement):
        return statement[match.start(1) :], False
    named, columns = _DESCRIBE.fullmatch(statement), _COLUMNS.fullmatch(statement)
    if (match := named or columns) and match[1].lower() in saved:
        return f"select * from `{match[1]}`", match is columns
    return None


def describe_columns(
    columns: Iterable[tuple[str, str]], *, names_alone: bool = False
) -> QueryResult:
    """Return the answer to `describe`, for columns given by name and type.

    It has only names with `names_alone`.
    """
    rows = [{"col_name": name, "data_type": kind, "comment": None} for name, kind in columns]
    if names_alone:
        named = [{"col_name": row["col_name"]} for row in rows]
        return QueryResult(["col_name"], named, is_cut=False)
    return QueryResult(DESCRIBED, rows, is_cut=False)


def _columns(view: str, views: Views, saved: Iterable[str]) -> tuple[ViewColumn, ...]:
    """Return the columns of a view; raises QueryFailed with similar names if it is unknown."""
    columns = views.get(view.lower())
    if columns is None:
        raise QueryFailed(unknown_view(view, [*views, *saved]))
    return columns
