"""Queries over log directories, run by this process or by Spark."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, TypedDict, Unpack, cast

from kctl.spark_input import choose_engine

if TYPE_CHECKING:
    from decimal import Decimal

    from engine.analysis.damage import ReadDamage
    from engine.analysis.problem import Problem
    from engine.analysis.reports.report import Report
    from engine.analysis.saved_views import SavedViews
    from engine.analysis.spark_target import SparkTarget
    from engine.analysis.splits import ReadingPlan
    from engine.analysis.statements import QueryResult
    from engine.analysis.value_decoding import ValueDecoding
    from engine.analysis.view_column import ViewColumn
    from kctl.value_options import WantedValues

    class _QueryOptions(TypedDict, total=False):
        """What a query may be given besides its text, in both engines."""

        decoding: ValueDecoding | None
        saved: SavedViews


class LogQueries(NamedTuple):
    """Queries and reports over the logs of a command, with the problems found in those logs.

    `run` takes a query and the maximum number of rows, 0 for all of them.
    """

    run: Callable[..., QueryResult]
    #: Runs a report, with the maximum number of rows.
    run_report: Callable[[Report, int], QueryResult]
    #: Differences between replicas; for committed records also transactions of unknown outcome.
    problems: list[Problem]
    #: The columns of each view.
    views: Mapping[str, tuple[ViewColumn, ...]]
    #: Loads the views that the user saved.
    saved: Callable[[], SavedViews]
    #: Damage that queries met in what they read, each place once.
    damage: dict[Problem, None]
    is_strict: bool
    #: Whether damage is counted: a Connect server does so only if it is to end the command.
    is_counted: bool

    def take_damage(self) -> list[Problem]:
        """Return the damage that queries met since the last call, each place once.

        With `is_strict` it raises DamagedData for such damage, for differences between replicas and
        for undecided transactions.
        """
        from engine.analysis.damage import refuse_damage

        found = list(self.damage)
        self.damage.clear()
        if self.is_strict:
            refuse_damage([*self.problems, *found])
        return found

    def run_saved(self, query: str, max_rows: int) -> QueryResult:
        """Run a query that may use the views that the user saved; 0 `max_rows` is no limit."""
        return self.run_with(self.saved(), query, max_rows)

    def run_with(self, saved: SavedViews, query: str, max_rows: int) -> QueryResult:
        """Run a query that may use the views in `saved`; 0 `max_rows` is no limit."""
        return self.run(query, max_rows, saved=saved)


class Wanted(NamedTuple):
    """What a command asks for: the engine, where Spark runs, the logs, and how to read them."""

    engine: str
    target: SparkTarget | None
    plan: ReadingPlan
    is_committed: bool
    control: bool
    values: WantedValues | None = None
    saved: Callable[[], SavedViews] = dict
    #: Whether damage ends the command.
    is_strict: bool = False


@contextmanager
def log_queries(wanted: Wanted, show_step: Callable[[str], None]) -> Iterator[LogQueries]:
    """Yield the queries over a command's logs, run by the engine that it selects.

    `show_step` is called with the name of each long step, such as starting Spark.

    A Spark session that this starts is stopped at the end.
    """
    if choose_engine(wanted.engine, wanted.target, wanted.plan.splits) == "local":
        yield _local(wanted, show_step)
    else:
        with _on_spark(wanted, show_step) as queries:
            yield queries


def _local(wanted: Wanted, show_step: Callable[[str], None]) -> LogQueries:
    """Return queries that run in this process, over the logs of `wanted`.

    With its `is_committed` they read committed records only.
    """
    from engine.analysis.isolation import Committed, hide_uncommitted_here
    from engine.analysis.local_query import require_local_engine, run_local_query
    from engine.host.source_files import SourceFiles
    from kctl.arrow_alone import keep_pandas_out

    require_local_engine()
    keep_pandas_out()
    read = Committed(wanted.plan.splits, [])
    if wanted.is_committed:
        show_step("looking for transactions")
        read = hide_uncommitted_here(SourceFiles(), wanted.plan.splits)
    splits = [*read.splits, *wanted.plan.spares]

    def execute(
        query: str, max_rows: int, damage: ReadDamage, **how: Unpack[_QueryOptions]
    ) -> QueryResult:
        """Run a query over the logs; `how` are other parameters of `run_local_query`."""
        return run_local_query(
            query, splits, control=wanted.control, max_rows=max_rows, damage=damage, **how
        )

    def execute_report(report: Report, max_rows: int, damage: ReadDamage) -> QueryResult:
        """Run a report as one query over all logs."""
        return execute(report.whole_query, max_rows, damage)

    return _decoding(
        wanted, execute, execute_report, [*wanted.plan.problems, *read.problems], show_step
    )


@contextmanager
def _on_spark(wanted: Wanted, show_step: Callable[[str], None]) -> Iterator[LogQueries]:
    """Yield queries that Spark runs over the logs of `wanted`; stop its session after use.

    With its `is_committed` they read committed records only.
    """
    from engine.analysis.isolation import Committed, hide_uncommitted_on_spark
    from engine.analysis.shipping import SCHEMA_PACKAGES, ship
    from engine.analysis.spark_query import run_query, run_report
    from engine.analysis.spark_session import require_spark, start_session, stop_session_after
    from engine.analysis.spark_target import SparkTarget

    require_spark()
    show_step("starting Spark")
    target = wanted.target or SparkTarget()
    session = start_session(target)
    with stop_session_after(session, show_step):
        if not target.is_local and wanted.values is not None and wanted.values.by_schemas:
            ship(session, SCHEMA_PACKAGES)
        read = Committed(wanted.plan.splits, [])
        if wanted.is_committed:
            show_step("looking for transactions")
            read = hide_uncommitted_on_spark(session, wanted.plan.splits)
        splits = [*read.splits, *wanted.plan.spares]

        def execute(
            query: str, max_rows: int, damage: ReadDamage, **how: Unpack[_QueryOptions]
        ) -> QueryResult:
            """Run a query over the logs; `how` are other parameters of `run_query`."""
            return run_query(
                session,
                query,
                splits,
                control=wanted.control,
                max_rows=max_rows,
                damage=damage,
                **how,
            )

        def execute_report(report: Report, max_rows: int, damage: ReadDamage) -> QueryResult:
            """Run a report over the logs, in Spark tasks."""
            control = wanted.control
            return run_report(
                session, report, splits, control=control, max_rows=max_rows, damage=damage
            )

        yield _decoding(
            wanted, execute, execute_report, [*wanted.plan.problems, *read.problems], show_step
        )


def _decoding(
    wanted: Wanted,
    execute: Callable[..., QueryResult],
    execute_report: Callable[..., QueryResult],
    problems: list[Problem],
    show_step: Callable[[str], None],
) -> LogQueries:
    """Return the queries of an engine, with keys and values decoded if the command asks.

    `execute` and `execute_report` run a query and a report; `problems` are those found before.
    """
    from functools import partial

    from engine.analysis.damage import ReadDamage
    from engine.analysis.value_decoding import views_of
    from engine.host.source_files import SourceFiles
    from kctl.value_options import create_decoding

    found: dict[Problem, None] = {}

    def noted(
        run: Callable[..., QueryResult],
        what: str | Report,
        max_rows: int,
        **how: Unpack[_QueryOptions],
    ) -> QueryResult:
        """Run a query or a report by `run`, and note the damage that it met in the logs.

        `what` is the query or the report.
        """
        damage = ReadDamage(is_strict=wanted.is_strict)
        result = run(what, max_rows, damage=damage, **how)
        found.update(dict.fromkeys(damage.problems(SourceFiles())))
        return result

    if wanted.values is not None:
        show_step("looking for schemas")
    decoding = create_decoding(wanted.values, lambda query: noted(execute, query, 0))
    return LogQueries(
        partial(noted, execute, decoding=decoding),
        partial(noted, execute_report),
        problems,
        views_of(decoding),
        wanted.saved,
        found,
        wanted.is_strict,
        wanted.is_strict or wanted.target is None or wanted.target.remote is None,
    )


def warn_of(problems: list[Problem]) -> None:
    """Print a line on stderr for each problem of the logs that a query read.

    These are differences between replicas and undecided transactions.
    """
    for problem in problems:
        sys.stderr.write(
            f"warning: {problem.segment} at position {problem.position}: {problem.message}\n"
            if problem.position or problem.code == "undecided"
            else f"warning: {problem.segment}: {problem.message}\n"
        )


def write_result(result: QueryResult, output: str) -> None:
    """Write the rows of a query to stdout in the format of `-o`."""
    from kctl.render import Column, RowWriter

    writer = RowWriter([Column(name, name) for name in result.columns], output)
    for row in result.rows:
        writer.write({name: shown_value(value) for name, value in row.items()})
    writer.close()


def shown_value(value: object) -> object:
    """Return a query's value in a form that every output format can show.

    Times become ISO 8601, bytes text, decimals numbers; also in lists and structs.
    """
    if isinstance(value, bytes | bytearray):
        from engine.dump.rows import text_form

        text, _ = text_form(bytes(value))
        return text
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return [shown_value(item) for item in value]
    if isinstance(value, dict):
        return {key: shown_value(item) for key, item in value.items()}
    if type(value).__name__ == "Decimal":
        number = cast("Decimal", value)
        return int(number) if number == number.to_integral_value() else float(number)
    return value
