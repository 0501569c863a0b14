"""Run one SQL query over the views on Spark.

Spark runs a command as soon as it is analysed. Therefore Spark's parser first checks whether a
statement that begins like a query is one (`statements.py` has the table).
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from engine.analysis.damage import ReadDamage
from engine.analysis.plan_text import explained, writing_operator
from engine.analysis.reports.report import Report
from engine.analysis.reports.totals import RECORD_TOTALS
from engine.analysis.saved_views import NO_VIEWS, SavedViews, failed_view, views_for
from engine.analysis.spark_failures import failure_of
from engine.analysis.spark_tasks import is_remote
from engine.analysis.spark_thread import on_spark_thread
from engine.analysis.spark_totals import register_totals
from engine.analysis.spark_views import find_used_views, register_views, whole
from engine.analysis.splits import Split
from engine.analysis.statements import (
    ABOUT_VIEWS,
    QueryFailed,
    QueryResult,
    StatementRefused,
    bare_statement,
    check_statement,
)
from engine.analysis.table_values import plain_rows
from engine.analysis.value_decoding import ValueDecoding, views_of
from engine.analysis.view_statements import list_views

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def run_query(
    session: SparkSession,
    query: str,
    splits: list[Split],
    *,
    control: bool,
    max_rows: int,
    decoding: ValueDecoding | None = None,
    saved: SavedViews = NO_VIEWS,
    damage: ReadDamage | None = None,
) -> QueryResult:
    """Run a query over the logs on Spark; return at most `max_rows` rows, all for 0.

    `damage` collects the damage of the logs that are read. A signal ends the query
    (`spark_thread.py`). Raises StatementRefused, QueryFailed.
    """
    answer = partial(
        _answer,
        session,
        query,
        splits,
        control=control,
        max_rows=max_rows,
        decoding=decoding,
        saved=saved,
        damage=damage or ReadDamage(),
    )
    return on_spark_thread(session, answer)


def _answer(
    session: SparkSession,
    query: str,
    splits: list[Split],
    *,
    control: bool,
    max_rows: int,
    decoding: ValueDecoding | None,
    saved: SavedViews,
    damage: ReadDamage,
) -> QueryResult:
    """Run a query on Spark; called on the query's thread by `run_query`, with its arguments."""
    from engine.analysis.spark_damage import complete_damage

    is_about_views = check_statement(query) in ABOUT_VIEWS
    query = bare_statement(query)
    views = views_of(decoding)
    if (listed := list_views(query, views, saved)) is not None:
        return listed
    definitions = SavedOnSpark(session, query, saved)
    try:
        if not is_about_views:
            _check_parsed(session, query)
        if is_about_views:
            used = whole(views)
        else:
            used = find_used_views(session, query, views, definitions.define, definitions.queries)
        seen = register_views(
            session, used, splits, control=control, damage=damage, decoding=decoding
        )
        definitions.define()
        result = _collect_rows(session.sql(query), max_rows)
        complete_damage(session, damage, seen)
        return result
    except StatementRefused:
        raise
    except Exception as error:
        reason = failure_of(error, list(saved), definitions.columns)
        raise definitions.failure or QueryFailed(reason) from error
    finally:
        definitions.remove()


def run_report(
    session: SparkSession,
    report: Report,
    splits: list[Split],
    *,
    control: bool,
    max_rows: int,
    damage: ReadDamage | None = None,
) -> QueryResult:
    """Run a report on Spark; return at most `max_rows` rows, all for 0.

    If the report has totals, the tasks return sums by group instead of records. Raises QueryFailed.
    """
    if report.totals is None:
        return run_query(
            session, report.query, splits, control=control, max_rows=max_rows, damage=damage
        )
    answer = partial(
        _answer_totals,
        session,
        report,
        splits,
        control=control,
        max_rows=max_rows,
        damage=damage or ReadDamage(),
    )
    return on_spark_thread(session, answer)


def _answer_totals(
    session: SparkSession,
    report: Report,
    splits: list[Split],
    *,
    control: bool,
    max_rows: int,
    damage: ReadDamage,
) -> QueryResult:
    """Run a report with totals on Spark; called on the query's thread by `run_report`."""
    from engine.analysis.spark_damage import complete_damage

    try:
        seen = register_totals(session, report.name, splits, control=control, damage=damage)
        result = _collect_rows(session.sql(report.query), max_rows)
        complete_damage(session, damage, seen)
        return result
    except Exception as error:
        raise QueryFailed(failure_of(error)) from error
    finally:
        _drop_view(session, RECORD_TOTALS)


def _collect_rows(frame: DataFrame, max_rows: int) -> QueryResult:
    """Return the rows of a data frame, at most `max_rows`; 0 means all."""
    if max_rows:
        frame = frame.limit(max_rows + 1)
    # Arrow has times in UTC; Spark's rows would have this machine's time zone.
    table = frame.toArrow()
    kept = table.slice(0, max_rows) if max_rows else table
    return QueryResult(list(frame.columns), plain_rows(kept), kept.num_rows < table.num_rows)


class SavedOnSpark:
    """The saved views that a query may use, defined as temporary views of a session."""

    def __init__(self, session: SparkSession, query: str, saved: SavedViews) -> None:
        """Select the saved views that `query` may use; `define` defines them in the session."""
        self._session = session
        #: Queries of the selected views by name, each after the views that it uses itself.
        self.queries = {name: saved[name] for name in views_for(query, saved)}
        self._names = list(saved)
        #: Temporary views that exist in the session, and are dropped at the end.
        self._defined: list[str] = []
        #: Columns of the defined views, for error messages.
        self.columns: list[str] = []
        #: Error of the first view that could not be defined, None without one. Reported only if
        #: the query fails too.
        self.failure: QueryFailed | None = None

    def define(self) -> None:
        """Define the saved views in the session, over its current views of the logs.

        A view that cannot be defined sets `failure`.
        """
        self.remove()
        for name, query in self.queries.items():
            try:
                _check_parsed(self._session, query)
                frame = self._session.sql(query)
                frame.createOrReplaceTempView(name)
                self.columns += frame.columns
            except Exception as error:
                if isinstance(error, StatementRefused):
                    reason = error.reason
                else:
                    reason = failure_of(error, self._names)
                self.failure = self.failure or failed_view(name, QueryFailed(reason))
            else:
                self._defined.append(name)

    def remove(self) -> None:
        """Drop the saved views that were defined in the session."""
        while self._defined:
            _drop_view(self._session, self._defined.pop())


def _drop_view(session: SparkSession, name: str) -> None:
    """Drop a temporary view; ignore errors, which would hide the error that ended the session."""
    with suppress(Exception):
        session.catalog.dropTempView(name)


def _check_parsed(session: SparkSession, query: str) -> None:
    """Raise StatementRefused if Spark's parser finds that a statement writes.

    Spark runs a command as soon as it is analysed, so this check comes before.
    """
    if is_remote(session):
        if name := writing_operator(explained(session, query)):
            raise StatementRefused(f"{name} is no question: log directories are only read")
        return
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
