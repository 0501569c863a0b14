"""Columns and conditions of the views in a query, from DuckDB's plan of the query.

1. Empty tables with all columns get the views' names, and DuckDB plans the query.
2. Each scan of the plan names the columns it reads and the conditions it applies to each row.
3. Of a view that is scanned once, only splits that can meet the conditions are read
   (`pruning.py`); a view that is scanned several times is read completely.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from engine.analysis.column_types import duckdb_type
from engine.analysis.columns import VIEWS
from engine.analysis.view_column import ViewColumn

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from engine.json_text import JsonObject

#: The columns of all views.
Views: TypeAlias = Mapping[str, tuple[ViewColumn, ...]]


class ViewScan(NamedTuple):
    """The columns of a view that a query reads, and the conditions that every row it uses meets."""

    columns: frozenset[str]
    conditions: tuple[str, ...]


def make_stand_ins(connection: DuckDBPyConnection, views: Views = VIEWS) -> None:
    """Create an empty table for each view, so that DuckDB can plan a query without data."""
    # With these optimizers DuckDB would see that the tables are empty, and drop the scans.
    connection.execute("set disabled_optimizers = 'statistics_propagation,empty_result_pullup'")
    for view, columns in views.items():
        fields = ", ".join(_field(column) for column in columns)
        connection.execute(f'create table "{view}" ({fields})')


def _field(column: ViewColumn) -> str:
    """Return a column's definition for DuckDB's `create table`."""
    return f'"{column.name}" {duckdb_type(column.type)}{"" if column.nullable else " NOT NULL"}'


def remove_stand_ins(connection: DuckDBPyConnection) -> None:
    """Drop the empty tables, and restore DuckDB's default optimizers."""
    for view in VIEWS:
        connection.execute(f'drop table "{view}"')
    connection.execute("reset disabled_optimizers")


def view_scans(
    connection: DuckDBPyConnection, sql: str, views: Views = VIEWS
) -> Mapping[str, ViewScan]:
    """Return which columns and conditions of each view a query needs, by DuckDB's plan.

    Needs the tables of `make_stand_ins`. Raises DuckDB's errors for an invalid query.
    """
    scans: dict[str, list[ViewScan]] = {}
    for _, text in connection.execute(f"explain (format json) {sql}").fetchall():
        for node in json.loads(text):
            for view, scan in _scans_below(node, views, sql):
                scans.setdefault(view, []).append(scan)
    return {view: _merge_scans(found) for view, found in scans.items()}


def _merge_scans(scans: list[ViewScan]) -> ViewScan:
    """Merge the scans of one view in a query, since the view is read once.

    Several scans become one of all their columns without conditions.
    """
    if len(scans) == 1:
        return scans[0]
    return ViewScan(frozenset[str]().union(*(scan.columns for scan in scans)), ())


def _scans_below(node: JsonObject, views: Views, sql: str) -> Iterator[tuple[str, ViewScan]]:
    """Yield (view, scan) for a node of a plan and for all nodes below it.

    The plan lists no columns for a scan of struct fields: then all columns whose names occur in the
    query are read.
    """
    details = node["extra_info"]
    # A name that is a keyword of DuckDB is quoted.
    view = (
        details.get("Table", "").rpartition(".")[2].strip('"') if isinstance(details, dict) else ""
    )
    if view in views:
        conditions = tuple(_texts(details.get("Filters", "")))
        # The columns of conditions may be missing in the projections.
        columns = {*_names(details.get("Projections", "")), *_named_in(views[view], *conditions)}
        if not details.get("Projections", "") and _has_fields(views[view], sql):
            columns |= set(_named_in(views[view], sql))
        yield view, ViewScan(frozenset(columns), conditions)
    for child in node["children"]:
        yield from _scans_below(child, views, sql)


def _named_in(columns: tuple[ViewColumn, ...], *texts: str) -> Iterator[str]:
    """Yield the names of the columns that occur as words in the texts, in any case of letters."""
    words = set(re.findall(r"\w+", " ".join(texts).lower()))
    yield from (column.name for column in columns if column.name.lower() in words)


def _has_fields(columns: tuple[ViewColumn, ...], sql: str) -> bool:
    """Return True if a query may use a field of one of the columns, as in `column.field`."""
    followed = set(re.findall(r'(\w+)"?\.', sql))
    return any(column.name in followed for column in columns)


def _names(value: str | list[str]) -> Iterator[str]:
    """Yield the column names in an entry of DuckDB's plan, without quotes.

    For a field of a struct it is the name of its column.
    """
    yield from (text.strip('"').partition(".")[0].strip('"') for text in _texts(value))


def _texts(value: str | list[str]) -> list[str]:
    """Return an entry of DuckDB's plan, which is one text or a list of texts, as a list."""
    return value if isinstance(value, list) else [value] if value else []
