"""Conditions of `spark-export --where`: Spark's SQL over one record, evaluated by DuckDB in tasks.

The condition is translated as a query is (`local_sql.py`). It may use one record only: no subquery,
no aggregate, no window. Tasks read the columns that it uses even if they are not exported. A record
for which it is null is left out, as in SQL.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

from engine.analysis.columns import VIEWS, arrow_schema, choose_columns
from engine.analysis.local_plan import Views, make_stand_ins, view_scans
from engine.analysis.local_query import connect, failure_of, require_local_engine
from engine.analysis.local_sql import translate
from engine.analysis.pruning import ALL_RECORDS, bounds_of, within
from engine.analysis.splits import Split
from engine.analysis.statements import QueryFailed, StatementRefused, check_statement
from engine.analysis.view_column import ViewColumn

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection


class RowCondition(NamedTuple):
    """A condition as DuckDB's SQL over a table `records`, and the columns that it uses."""

    text: str
    sql: str
    columns: tuple[str, ...]


def translate_condition(text: str, views: Views = VIEWS) -> RowCondition:
    """Translate the condition of --where on one record to DuckDB's SQL.

    Raises LocalEngineMissing, StatementRefused, QueryFailed.
    """
    require_local_engine()
    query = f"select cast(({text}) as boolean) as kept from records"
    check_statement(query)
    _check_form(text)
    sql = translate(query, views=views).sql
    with closing(connect()) as connection:
        scan = _used_columns(connection, sql, views)
    return RowCondition(text, sql, tuple(sorted(scan)))


def _check_form(text: str) -> None:
    """Raise QueryFailed for a syntax error, StatementRefused for more than one record's columns.

    A record is tested alone: subqueries, aggregates and windows are refused.
    """
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        tree = sqlglot.parse_one(text, read="spark")
    except SqlglotError as error:
        raise QueryFailed(f"the condition {text}: {str(error).splitlines()[0]}") from error
    if any(tree.find(kind) for kind in (exp.Query, exp.AggFunc, exp.Window)):
        raise StatementRefused("--where sees one record: no subquery, aggregate or window")


def _used_columns(connection: DuckDBPyConnection, sql: str, views: Views) -> frozenset[str]:
    """Return the columns of `records` that a condition uses. Raises QueryFailed."""
    import duckdb

    make_stand_ins(connection, views)
    try:
        found = view_scans(connection, sql, views).get("records")
    except duckdb.Error as error:
        raise QueryFailed(failure_of(error)) from error
    return found.columns if found else frozenset()


def splits_to_read(
    splits: list[Split], condition: RowCondition, views: Views = VIEWS
) -> list[Split]:
    """Return the splits of partitions that a condition does not exclude by topic or partition.

    All segments of such a partition are returned, so that gaps between them are reported. Raises
    QueryFailed.
    """
    import duckdb

    with closing(connect()) as connection:
        make_stand_ins(connection, views)
        query = translate(f"select topic from records where ({condition.text})", views=views).sql
        try:
            scan = view_scans(connection, query, views).get("records")
        except duckdb.Error as error:
            raise QueryFailed(failure_of(error)) from error
    if scan is None:
        return splits
    bounds = bounds_of(scan.conditions)
    return within(splits, bounds._replace(records=ALL_RECORDS))


class RowFilter:
    """Applies a condition to Arrow batches, with one DuckDB connection."""

    def __init__(self, condition: RowCondition, columns: tuple[ViewColumn, ...]) -> None:
        self._condition = condition
        self._columns = columns
        self._connection = connect()

    def kept(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of a batch that meet the condition; raises QueryFailed."""
        import duckdb
        import pyarrow as pa

        names = self._condition.columns or (batch.schema.names[0],)
        selected = batch.select(list(names))
        zoneless = arrow_schema(choose_columns(self._columns, list(names)), zone=None)
        table = pa.Table.from_batches([selected]).select(zoneless.names).cast(zoneless)
        try:
            self._connection.register("records", table)
            kept = self._connection.sql(self._condition.sql).to_arrow_table().column(0)
            self._connection.unregister("records")
        except duckdb.Error as error:
            raise QueryFailed(failure_of(error)) from error
        return batch.filter(kept.combine_chunks())

    def close(self) -> None:
        """Close the DuckDB connection."""
        self._connection.close()
