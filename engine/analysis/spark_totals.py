"""The totals of a report on Spark: each task sums up its records, and only sums reach the JVM."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from engine.analysis.column_types import spark_type
from engine.analysis.columns import VIEWS, choose_columns
from engine.analysis.damage import ReadDamage
from engine.analysis.record_batches import ViewReader
from engine.analysis.reports import report_named
from engine.analysis.reports.totals import RECORD_TOTALS, Totals, sum_by_group
from engine.analysis.spark_tasks import count_parallel_tasks, frame_of_tasks
from engine.analysis.splits import Split, decode_splits, encode_splits, pack_splits
from engine.analysis.view_pieces import pieces_of
from engine.host.source_files import SourceFiles

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from engine.analysis.spark_damage import SeenByTasks


def register_totals(
    session: SparkSession,
    report: str,
    splits: list[Split],
    *,
    control: bool,
    damage: ReadDamage,
) -> SeenByTasks:
    """Create the view `record_totals` on Spark, with the sums that a report needs.

    Returns the accumulator of the damage that its tasks find, None on a Connect server.
    """
    from engine.analysis.spark_damage import seen_by_tasks

    totals = report_named(report).totals
    assert totals is not None
    seen, pieces = seen_by_tasks(session), pieces_of("records", splits)
    damage.expect("records", pieces)
    groups = pack_splits(pieces, count_parallel_tasks(session))
    frame = frame_of_tasks(session, [(encode_splits(group),) for group in groups], "splits string")
    # Send the report's name, because its functions cannot be pickled.
    totalled = frame.mapInArrow(partial(_read_totals, report, control, seen), _schema(totals))
    totalled.createOrReplaceTempView(RECORD_TOTALS)
    return seen


def _schema(totals: Totals) -> str:
    """Return the columns of a report's sums as Spark's schema text."""
    terms = (*totals.groups, *totals.sums)
    return ", ".join(f"`{term.name}` {spark_type(term.type)}" for term in terms)


def _read_totals(
    report: str, control: bool, seen: SeenByTasks, groups: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Sum up the records of splits by group in a Spark task (`mapInArrow`), and yield the sums."""
    from engine.analysis.worker import calm_worker

    calm_worker()
    totals = report_named(report).totals
    assert totals is not None
    columns = choose_columns(VIEWS["records"], list(totals.columns))
    reader = ViewReader(SourceFiles(), "records", columns, control=control)
    splits = (
        split
        for batch in groups
        for row in batch.to_pylist()
        for split in decode_splits(row["splits"])
    )
    yield from sum_by_group(
        totals, (batch for split in splits for batch in reader.batches_of(split))
    )
    if seen is not None:
        seen.add(reader.seen)
