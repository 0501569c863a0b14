"""Statements about the views, answered from their table of columns as Spark answers them."""

from __future__ import annotations

import re

from engine.analysis.column_types import spark_type
from engine.analysis.columns import VIEWS
from engine.analysis.local_plan import Views
from engine.analysis.statements import QueryFailed, QueryResult, StatementRefused, unknown_view
from engine.analysis.view_column import ViewColumn

_DESCRIBE = re.compile(r"desc(?:ribe)?\s+(?:table\s+)?(?:extended\s+|formatted\s+)?`?(\w+)`?", re.I)
_COLUMNS = re.compile(r"show\s+columns\s+(?:in|from)\s+`?(\w+)`?", re.I)
_TABLES = re.compile(r"show\s+(tables|views)", re.I)
_QUERY = re.compile(r"desc(?:ribe)?\s+(?:query\s+)?(?:select|with|from|values)\b", re.I)


def about_views(statement: str, views: Views = VIEWS) -> QueryResult | None:
    """Return the answer to a `show` or `describe`; None for an `explain`, which the engine answers.

    Raises StatementRefused for one that is not known here, QueryFailed for an unknown view.
    """
    statement = statement.strip()
    if statement.lower().startswith("explain"):
        return None
    if _TABLES.fullmatch(statement):
        name = "tableName" if statement.lower().endswith("tables") else "viewName"
        rows = [{"namespace": "", name: view, "isTemporary": True} for view in sorted(views)]
        return QueryResult(["namespace", name, "isTemporary"], rows, is_cut=False)
    if match := _COLUMNS.fullmatch(statement):
        rows = [{"col_name": column.name} for column in _columns(match[1], views)]
        return QueryResult(["col_name"], rows, is_cut=False)
    if not _QUERY.match(statement) and (match := _DESCRIBE.fullmatch(statement)):
        described = [
            {"col_name": column.name, "data_type": spark_type(column.type), "comment": column.doc}
            for column in _columns(match[1], views)
        ]
        return QueryResult(["col_name", "data_type", "comment"], described, is_cut=False)
    raise StatementRefused(
        f"{statement.split(None, 1)[0].upper()} of this form is answered by --engine spark alone"
    )


def _columns(view: str, views: Views) -> tuple[ViewColumn, ...]:
    columns = views.get(view.lower())
    if columns is None:
        raise QueryFailed(unknown_view(view, views))
    return columns
