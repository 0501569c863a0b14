"""The views over log directories, for SQL on Spark.

A view has all its columns, but reads only those that a query uses, by Spark's own analysis:

1. Stand-ins with all columns and no rows are registered as the views, and Spark optimizes the
query. 2. A column that no operator above a stand-in refers to is unused: any value gives the same
result. 3. The real views replace the stand-ins. An unused column is a constant of its type. 4. Of a
view that is scanned once, only splits that can meet the filter directly above it are read
   (`pruning.py`). A Connect server returns its plan only as text, which `plan_conditions.py` reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from engine.analysis.column_types import spark_type
from engine.analysis.columns import CHEAPEST, VIEWS, spark_schema
from engine.analysis.damage import ReadDamage
from engine.analysis.local_plan import Views
from engine.analysis.plan_conditions import are_readable, has_views_alone
from engine.analysis.plan_objects import plain_conditions
from engine.analysis.plan_text import (
    conditions_of_all,
    explain_unfolded,
    parse_plans,
    used_columns,
)
from engine.analysis.pruning import Bounds, RecordRange, bounds_of, within
from engine.analysis.record_batches import ViewReader
from engine.analysis.saved_views import NO_VIEWS
from engine.analysis.spark_tasks import count_parallel_tasks, frame_of_tasks, is_remote
from engine.analysis.splits import Split, decode_splits, encode_splits, pack_splits
from engine.analysis.value_decoding import ValueDecoding, views_of
from engine.analysis.view_column import ViewColumn
from engine.analysis.view_pieces import OF_THE_LOG, pieces_of
from engine.errors import EngineError
from engine.host.source_files import SourceFiles

if TYPE_CHECKING:
    import pyarrow as pa
    from py4j.java_gateway import JavaObject
    from pyspark.sql import DataFrame, SparkSession

    from engine.analysis.spark_damage import SeenByTasks


class ViewUse(NamedTuple):
    """The columns of a view that a query uses, and the SQL conditions that its rows must meet."""

    columns: tuple[ViewColumn, ...]
    conditions: tuple[str, ...] = ()


#: The used columns and conditions of each view that a query uses.
UsedViews = Mapping[str, ViewUse]

#: The constants of unused columns that are not nullable, by type.
_CONSTANTS = {
    "string": "''", "int": "0", "long": "0L", "boolean": "false",
}  # fmt: skip


class ViewNotPrepared(EngineError):
    """A stand-in for a view was read: the executed query differs from the analysed query."""


def whole(views: Views) -> UsedViews:
    """Return the views as used completely: all columns, without conditions."""
    return {view: ViewUse(columns) for view, columns in views.items()}


def find_used_views(
    session: SparkSession,
    query: str,
    views: Views = VIEWS,
    define_more: Callable[[], None] | None = None,
    saved: Mapping[str, str] = NO_VIEWS,
) -> UsedViews:
    """Return which columns and conditions of each view a query uses, by Spark's plan.

    The session's views are replaced by empty ones, which cannot be read, until `register_views`
    replaces these. `saved` are the queries of saved views by name, and `define_more` defines them;
    give both or neither. Raises Spark's errors for an invalid query.
    """
    for name, columns in views.items():
        frame = session.range(1).mapInArrow(_refuse_to_read, spark_schema(columns))
        frame.createOrReplaceTempView(name)
    if define_more is not None:
        define_more()
    if is_remote(session):
        return find_used_by_text(session, query, views, saved)
    frame = session.sql(query)
    try:
        return _used_in(frame, views)
    except (AttributeError, TypeError):
        # A Spark release with other internals: read every view completely.
        return whole(views)


def _used_in(frame: DataFrame, views: Views) -> UsedViews:
    """Return which columns and conditions of each view a query's optimized plan uses.

    Uses Spark's internals: raises AttributeError or TypeError if they differ.
    """
    plan = frame._jdf.queryExecution().optimizedPlan()
    referred = {attribute.exprId().id() for attribute in _each(plan.output())}
    sources: list[list[JavaObject]] = []
    filters: dict[int, tuple[str, ...]] = {}
    for node in _nodes(plan):
        if node.nodeName() == "MapInArrow":
            sources.append(list(_each(node.output())))
            continue
        referred |= {a.exprId().id() for a in _each(node.references().toSeq())}
        if node.nodeName() == "Filter" and node.child().nodeName() == "MapInArrow":
            source = list(_each(node.child().output()))
            filters[_number_of(source)] = tuple(plain_conditions(node.condition()))
    used: dict[str, set[str]] = {}
    conditions: dict[str, list[tuple[str, ...]]] = {}
    for source in sources:
        names = [attribute.name() for attribute in source]
        view = next(view for view, columns in views.items() if names == [c.name for c in columns])
        found = used.setdefault(view, set())
        found |= {a.name() for a in source if a.exprId().id() in referred}
        conditions.setdefault(view, []).append(filters.get(_number_of(source), ()))
    of_all = {view: found[0] for view, found in conditions.items() if len(found) == 1}
    return _choose_columns(used, views, of_all)


def _number_of(source: list[JavaObject]) -> int:
    """Return the number by which a scan is identified in a plan: that of its first column."""
    return int(source[0].exprId().id())


def find_used_by_text(
    session: SparkSession, query: str, views: Views, saved: Mapping[str, str] = NO_VIEWS
) -> UsedViews:
    """Return which columns and conditions of each view a query uses, by the plan's text.

    For a Connect server, which has no plan objects. Raises Spark's errors for an invalid query.
    """
    plan = parse_plans(explain_unfolded(session, query))
    if plan is None:
        # An invalid query has no optimized plan: this raises Spark's error.
        session.sql(query).schema  # noqa: B018
        return whole(views)
    used = used_columns(plan, views)
    if used is None:
        return whole(views)
    is_readable = are_readable((query, *saved.values()))
    if not is_readable or not has_views_alone(plan.analyzed, (*views, *saved)):
        return _choose_columns(used, views, {})
    return _choose_columns(used, views, conditions_of_all(plan, views))


def _choose_columns(
    used: Mapping[str, set[str]], views: Views, conditions: Mapping[str, tuple[str, ...]]
) -> UsedViews:
    """Return the columns to read of each view, with its conditions.

    The cheapest column is read if none is used, for the number of rows.
    """
    return {
        view: ViewUse(
            tuple(c for c in views[view] if c.name in (names or {CHEAPEST[view]})),
            conditions.get(view, ()),
        )
        for view, names in used.items()
    }


def _nodes(plan: JavaObject) -> Iterator[JavaObject]:
    """Yield the operators of a plan, including those of subqueries."""
    yield plan
    for inner in (plan.children(), plan.subqueries(), plan.innerChildren()):
        for node in _each(inner):
            yield from _nodes(node)


def _each(sequence: JavaObject) -> Iterator[JavaObject]:
    """Yield the elements of a Scala sequence."""
    for number in range(sequence.size()):
        yield sequence.apply(number)


def _refuse_to_read(groups: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Raise ViewNotPrepared if Spark reads a stand-in, which serves only to analyse a query."""
    for _ in groups:
        raise ViewNotPrepared("a view was read that the query does not use")
    return iter(())


def register_views(
    session: SparkSession,
    used: UsedViews,
    splits: list[Split],
    *,
    control: bool,
    damage: ReadDamage,
    decoding: ValueDecoding | None = None,
) -> SeenByTasks:
    """Create the used views in the Spark session, with all their columns.

    Only the used columns are read; others are constants. Returns the accumulator of the damage that
    their tasks find.
    """
    from engine.analysis.spark_damage import seen_by_tasks

    cores, views = count_parallel_tasks(session), views_of(decoding)
    seen = seen_by_tasks(session)
    for name, (columns, conditions) in used.items():
        bounds = bounds_of(conditions, "spark") if name in OF_THE_LOG else Bounds()
        pieces = within(pieces_of(name, splits), bounds)
        damage.expect(name, pieces, bounds.records)
        rows = [(encode_splits(group),) for group in pack_splits(pieces, cores)]
        frame = frame_of_tasks(session, rows, "splits string")
        task = ViewTask(name, columns, control, decoding, bounds.records, damage.is_strict, seen)
        read = partial(_read_view, task)
        view = frame.mapInArrow(read, spark_schema(columns))
        if columns != views[name]:
            view = view.selectExpr(*(_select_text(column, columns) for column in views[name]))
        view.createOrReplaceTempView(name)
    return seen


def _select_text(column: ViewColumn, used: tuple[ViewColumn, ...]) -> str:
    """Return the SQL that selects a column of a view; for an unused column a constant."""
    if column in used:
        return f"`{column.name}`"
    if not column.nullable:
        return f"{_CONSTANTS[str(column.type)]} as `{column.name}`"
    return f"cast(null as {spark_type(column.type)}) as `{column.name}`"


class ViewTask(NamedTuple):
    """The input of a view's tasks, and the accumulator of their damage.

    It is pickled for the tasks.
    """

    view: str
    columns: tuple[ViewColumn, ...]
    control: bool
    decoding: ValueDecoding | None
    wanted: RecordRange
    is_strict: bool
    seen: SeenByTasks


def _read_view(task: ViewTask, groups: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Read the rows of a view from splits in a Spark task (`mapInArrow`), and yield them."""
    from engine.analysis.worker import calm_worker

    calm_worker()
    reader = ViewReader(
        SourceFiles(),
        task.view,
        task.columns,
        control=task.control,
        decoding=task.decoding,
        wanted=task.wanted,
    )
    if task.is_strict:
        reader.compute_checksums()
    for batch in groups:
        for row in batch.to_pylist():
            for split in decode_splits(row["splits"]):
                yield from reader.batches_of(split)
    if task.seen is not None:
        task.seen.add(reader.seen)
