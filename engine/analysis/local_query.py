"""Run one SQL query over the views in this process, with DuckDB.

1. The statement is translated (`local_sql.py`); statements about the views, such as `describe`, are
   answered from their column definitions.
2. DuckDB plans the query over empty tables; the plan names what has to be read (`local_plan.py`).
3. Views with these columns replace the tables, and DuckDB reads them as Arrow streams
   (`local_views.py`) while it runs the query.

DuckDB works on a separate thread (`query_thread.py`), so that signals can end a query.

DuckDB has access to the given views only: no files, no network, no extensions, no settings. Data
beyond its memory limit is written to a folder of temporary files, which no other user may read and
which is removed after the query.

Source: D30.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from engine.analysis.column_types import spark_type_of
from engine.analysis.damage import ReadDamage
from engine.analysis.interruptible import Result
from engine.analysis.local_plan import Views, ViewScan, make_stand_ins, remove_stand_ins, view_scans
from engine.analysis.local_sql import LocalQuery, translate
from engine.analysis.local_views import LocalView, ViewReading, add_functions, add_view
from engine.analysis.query_thread import QueryFiles, on_query_thread
from engine.analysis.saved_views import NO_VIEWS, SavedViews
from engine.analysis.splits import Split
from engine.analysis.statements import (
    ABOUT_VIEWS,
    QueryFailed,
    QueryResult,
    bare_statement,
    check_statement,
)
from engine.analysis.table_values import plain_rows
from engine.analysis.value_decoding import ValueDecoding, views_of
from engine.analysis.view_statements import answer_about_views, describe_columns, described_query
from engine.errors import EngineError
from engine.host.temporary import NoTemporaryFolder, remove_abandoned, temporary_folder
from engine.limits import LOCAL_ENGINE_MEMORY_BYTES

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection

_EXPLAIN = re.compile(
    r"explain\s+(?:(?:extended|formatted|logical|codegen|cost)\s+)?", re.IGNORECASE
)
_SETTINGS = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "enable_external_access": "false",
    "python_enable_replacements": "false",
    "memory_limit": f"{LOCAL_ENGINE_MEMORY_BYTES >> 20}MiB",
}


_SPILL_PREFIX = "kctl-sql-"


class LocalEngineMissing(EngineError):
    """The packages of the embedded engine are not installed."""

    hint = "pip install 'kctl-kafka[sql]', or run it on Spark with --engine spark"

    def __init__(self, package: str) -> None:
        super().__init__(f"{package} is not installed, and --engine local needs it")
        self.package = package


def missing_package() -> str | None:
    """Return the first package that queries by DuckDB need and that is missing, else None."""
    from importlib.util import find_spec

    return next((p for p in ("duckdb", "sqlglot", "pyarrow") if find_spec(p) is None), None)


def require_local_engine() -> None:
    """Raise LocalEngineMissing unless the packages of the extra `sql` can be imported."""
    package = missing_package()
    if package is not None:
        raise LocalEngineMissing(package)


def run_local_query(
    query: str,
    splits: list[Split],
    *,
    control: bool,
    max_rows: int,
    decoding: ValueDecoding | None = None,
    saved: SavedViews = NO_VIEWS,
    damage: ReadDamage | None = None,
) -> QueryResult:
    """Run a query over the logs in DuckDB; return at most `max_rows` rows, all for 0.

    `control` includes control records. `damage` collects the damage of the logs that are read.
    Raises LocalEngineMissing, StatementRefused, QueryFailed.
    """
    require_local_engine()
    views = views_of(decoding)
    keyword = check_statement(query)
    query = bare_statement(query)
    if keyword in ABOUT_VIEWS and (wanted := described_query(query, saved)) is not None:
        return _describe(translate(wanted[0], 0, views, saved), views, names_alone=wanted[1])
    if keyword in ABOUT_VIEWS and (answer := answer_about_views(query, views, saved)) is not None:
        return answer
    explained = keyword == "explain"
    if explained:
        query = _EXPLAIN.sub("", query)
    translated = translate(query, max_rows, views, saved)
    if explained:
        return _explain(translated, views)
    table = _run(translated, splits, _How(control, decoding, damage or ReadDamage()))
    kept = table.slice(0, max_rows) if max_rows else table
    return QueryResult(translated.columns, plain_rows(kept), kept.num_rows < table.num_rows)


def query_table(query: str, splits: list[Split], *, control: bool, damage: ReadDamage) -> pa.Table:
    """Return all rows of a query as an Arrow table; raises the errors of `run_local_query`.

    `damage` collects the damage of the logs that are read.
    """
    require_local_engine()
    check_statement(query)
    translated = translate(bare_statement(query))
    return _run(translated, splits, _How(control, None, damage))


def _rename_columns(table: pa.Table, query: LocalQuery) -> pa.Table:
    """Return DuckDB's result with the column names that Spark would give.

    Raises QueryFailed if DuckDB merged two columns.
    """
    if table.num_columns != len(query.columns):
        raise QueryFailed("a subquery has two columns of one name; * needs a name for each")
    return table.rename_columns(query.columns)


@contextmanager
def open_spill_folder() -> Iterator[str]:
    """Yield a folder for DuckDB's temporary files; an empty path if no folder can be created.

    Folders that killed processes left are removed first: they may contain gigabytes.
    """
    remove_abandoned(_SPILL_PREFIX)
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(temporary_folder(_SPILL_PREFIX))
        except NoTemporaryFolder:
            folder = ""
        yield folder


def connect(temporary_folder: str = "") -> DuckDBPyConnection:
    """Return a new DuckDB connection with Spark's functions that DuckDB lacks.

    A query that exceeds the memory limit writes to `temporary_folder`, and fails if that is empty.
    DuckDB's own default is the working directory.
    """
    import duckdb

    settings = {**_SETTINGS, "temp_directory": temporary_folder}
    connection = duckdb.connect(":memory:", config=settings)
    # Times without a zone are UTC, as in Spark's session.
    connection.execute("set TimeZone = 'UTC'")
    add_functions(connection)
    return connection


class _How(NamedTuple):
    """How a query reads the logs: the fields of ViewReading without `files`."""

    control: bool
    decoding: ValueDecoding | None
    damage: ReadDamage


def _run(query: LocalQuery, splits: list[Split], how: _How) -> pa.Table:
    """Run a translated query over the logs; return its result as a table with times in UTC.

    Raises QueryFailed.
    """

    def run_query(connection: DuckDBPyConnection, files: QueryFiles) -> pa.Table:
        """Register the views that the query reads, run it, and convert errors to QueryFailed."""
        import duckdb

        views: list[LocalView] = []
        try:
            for view, scan in _plan_scans(connection, query.sql, views_of(how.decoding)):
                views.append(add_view(connection, view, scan, splits, ViewReading(files, *how)))
            connection.execute("set lock_configuration = true")
            return _cast_to_spark_types(connection.sql(query.sql).to_arrow_table())
        except duckdb.Error as error:
            for failure in (view.failure for view in views if view.failure is not None):
                if isinstance(failure, Exception):
                    raise QueryFailed(str(failure)) from failure
                raise failure from None
            raise QueryFailed(failure_of(error)) from error

    with open_spill_folder() as folder:
        return _rename_columns(on_query_thread(partial(connect, folder), run_query), query)


def _plan_scans(
    connection: DuckDBPyConnection, sql: str, views: Views
) -> Iterable[tuple[str, ViewScan]]:
    """Return each view that a query names, with the columns and conditions to read.

    DuckDB's plan omits a view whose rows are not needed, as with `where false`. The query still
    refers to such a view, so it gets all columns.
    """
    make_stand_ins(connection, views)
    scans = dict(view_scans(connection, sql, views))
    remove_stand_ins(connection)
    for view in views:
        if view not in scans and f'"{view}"' in sql:
            scans[view] = ViewScan(frozenset(column.name for column in views[view]), ())
    return scans.items()


def _cast_to_spark_types(table: pa.Table) -> pa.Table:
    """Return the table with Spark's types: times in UTC, sums of integers as int64."""
    import pyarrow as pa

    def of(kind: pa.DataType) -> pa.DataType:
        """Return Spark's type: UTC times in µs, int64 for DuckDB's 128-bit integers."""
        if pa.types.is_timestamp(kind):
            return pa.timestamp("us", tz="UTC")
        # DuckDB computes sums of integers in 128 bits.
        return pa.int64() if pa.types.is_decimal(kind) and kind.scale == 0 else kind

    try:
        return table.cast(pa.schema([field.with_type(of(field.type)) for field in table.schema]))
    except pa.ArrowInvalid as error:
        raise QueryFailed(f"a number of the result does not fit into a bigint: {error}") from error


def _explain(query: LocalQuery, views: Views) -> QueryResult:
    """Return DuckDB's plan of a query as rows; raises QueryFailed."""

    def explain_query(connection: DuckDBPyConnection) -> QueryResult:
        """Return the texts of the plan."""
        rows = connection.execute(f"explain {query.sql}").fetchall()
        return QueryResult(["plan"], [{"plan": text} for _, text in rows], is_cut=False)

    return _run_over_stand_ins(views, explain_query)


def _describe(query: LocalQuery, views: Views, *, names_alone: bool) -> QueryResult:
    """Return the names and types of a query's columns, from its result over empty views."""

    def run_query(connection: DuckDBPyConnection) -> pa.Table:
        """Return the query's empty result."""
        return _cast_to_spark_types(connection.sql(query.sql).to_arrow_table())

    table = _run_over_stand_ins(views, run_query)
    types = (spark_type_of(field.type) for field in _rename_columns(table, query).schema)
    return describe_columns(zip(query.columns, types, strict=True), names_alone=names_alone)


def _run_over_stand_ins(views: Views, work: Callable[[DuckDBPyConnection], Result]) -> Result:
    """Run `work` on a connection with an empty table for each view.

    For `explain` and `describe`, which need no rows. Raises QueryFailed.
    """

    def run_prepared(connection: DuckDBPyConnection, _files: QueryFiles) -> Result:
        """Create the empty tables, then run `work`; convert DuckDB's errors."""
        import duckdb

        make_stand_ins(connection, views)
        try:
            return work(connection)
        except duckdb.Error as error:
            raise QueryFailed(failure_of(error)) from error

    return on_query_thread(connect, run_prepared)


def failure_of(error: Exception) -> str:
    """Return DuckDB's error message as one line, without class name and query text."""
    import duckdb

    is_full = isinstance(error, duckdb.IOException) and "No space left" in str(error)
    if is_full or isinstance(error, duckdb.OutOfMemoryException):
        return (
            f"it needs more memory than its {LOCAL_ENGINE_MEMORY_BYTES >> 20} MiB, and more room "
            "for temporary files: read fewer rows or columns, set TMPDIR to a folder with more "
            "room, or run it on Spark (--engine spark)"
        )
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    messages = [line for line in lines if not line.startswith(("LINE ", "^"))]
    first = (
        messages[0].partition(" Error: ")[2] or messages[0] if messages else type(error).__name__
    )
    alike = next((line for line in messages[1:] if line.startswith("Did you mean")), "")
    return f"{first} {alike}".strip()
