"""Columns and conditions of the views in a query, from DuckDB's plan of the query.

1. Tables with all columns and no rows take the views' names, and DuckDB plans the query.
2. Each scan of the plan says which columns it reads and which conditions it puts to each row.
3. A view that is scanned once is read where its conditions can hold (`pruning.py`); one that is
   scanned several times is read whole.
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
    """The columns of a view that a query reads, and conditions that all its rows have to meet."""

    columns: frozenset[str]
    conditions: tuple[str, ...]


def make_stand_ins(connection: DuckDBPyConnection, views: Views = VIEWS) -> None:
    """Make a table without rows for each view."""
    # By these DuckDB would see that there are no rows, and read nothing.
    connection.execute("set disabled_optimizers = 'statistics_propagation,empty_result_pullup'")
    for view, columns in views.items():
        fields = ", ".join(_field(column) for column in columns)
        connection.execute(f'create table "{view}" ({fields})')


def _field(column: ViewColumn) -> str:
    """Return a column's definition for DuckDB's `create table`."""
    return f'"{column.name}" {duckdb_type(column.type)}{"" if column.nullable else " NOT NULL"}'


def remove_stand_ins(connection: DuckDBPyConnection) -> None:
    """Remove the tables again, and have DuckDB optimize as it does by default."""
    for view in VIEWS:
        connection.execute(f'drop table "{view}"')
    connection.execute("reset disabled_optimizers")


def scans_of(
    connection: DuckDBPyConnection, sql: str, views: Views = VIEWS
) -> Mapping[str, ViewScan]:
    """Return the columns and conditions that a query reads of each view, by DuckDB's plan.

    Needs the stand-in tables. Raises DuckDB's errors for an invalid query.
    """
    scans: dict[str, list[ViewScan]] = {}
    for _, text in connection.execute(f"explain (format json) {sql}").fetchall():
        for node in json.loads(text):
            for view, scan in _scans(node, views, sql):
                scans.setdefault(view, []).append(scan)
    return {view: _all_of(found) for view, found in scans.items()}


def _all_of(scans: list[ViewScan]) -> ViewScan:
    """Merge several scans of one view: all their columns, and no condition."""
    if len(scans) == 1:
        return scans[0]
    return ViewScan(frozenset[str]().union(*(scan.columns for scan in scans)), ())


def _scans(node: JsonObject, views: Views, sql: str) -> Iterator[tuple[str, ViewScan]]:
    """Yield the view scans of a plan's node and of all nodes below it.

    A scan of struct fields may have no columns in the plan: then all columns whose names are in the
    query are read.
    """
    details = node["extra_info"]
    # A name that is a keyword of DuckDB is quoted.
    view = (
        details.get("Table", "").rpartition(".")[2].strip('"') if isinstance(details, dict) else ""
    )
    if view in views:
        conditions = tuple(_texts(details.get("Filters", "")))
        # A scan may use the columns of conditions without handing them on.
        columns = {*_names(details.get("Projections", "")), *_named_in(views[view], *conditions)}
        if not details.get("Projections", "") and _has_fields(views[view], sql):
            columns |= set(_named_in(views[view], sql))
        yield view, ViewScan(frozenset(columns), conditions)
    for child in node["children"]:
        yield from _scans(child, views, sql)


def _named_in(columns: tuple[ViewColumn, ...], *texts: str) -> Iterator[str]:
    """Yield the columns that texts name, in letters of any case."""
    words = set(re.findall(r"\w+", " ".join(texts).lower()))
    yield from (column.name for column in columns if column.name.lower() in words)


def _has_fields(columns: tuple[ViewColumn, ...], sql: str) -> bool:
    """Return whether a query names fields of columns."""
    followed = set(re.findall(r'(\w+)"?\.', sql))
    return any(column.name in followed for column in columns)


def _names(value: str | list[str]) -> Iterator[str]:
    """Yield the names of columns that a plan gives, without quotes; of a field, its column's."""
    yield from (text.strip('"').partition(".")[0].strip('"') for text in _texts(value))


def _texts(value: str | list[str]) -> list[str]:
    """Return what a plan gives as one text or as a list of them."""
    return value if isinstance(value, list) else [value] if value else []
