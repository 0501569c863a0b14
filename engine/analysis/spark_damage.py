"""Transfer the damage that tasks of a Spark query met to the driver.

| session | method |
|---|---|
| in this process | an accumulator by split, so that a task that runs twice adds nothing |
| on a Connect server | none: it has no accumulators |

Spark reports nothing of a task that it cancels, for example at a limit. So a strict query reads
the splits without a report again, only to find damage.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from pyspark.accumulators import Accumulator, AccumulatorParam

from engine.analysis.columns import CHEAPEST, VIEWS, choose_columns
from engine.analysis.damage import ReadDamage, Seen
from engine.analysis.record_batches import ViewReader
from engine.analysis.spark_tasks import count_parallel_tasks, frame_of_tasks, is_remote
from engine.analysis.splits import decode_splits, encode_splits, pack_splits
from engine.host.source_files import SourceFiles

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

#: Accumulator of the damage found by tasks; None on a Connect server.
SeenByTasks: TypeAlias = "Accumulator[Seen] | None"


class _SeenParam(AccumulatorParam[Seen]):  # type: ignore[misc]
    """Merges the damage found by tasks, for Spark's accumulator."""

    def zero(self, value: Seen) -> Seen:
        """Return the accumulator's value for no splits; Spark calls it in each task."""
        return {}

    def addInPlace(self, value1: Seen, value2: Seen) -> Seen:  # noqa: N802
        """Add the damage that another task found to `value1`; Spark calls it.

        A complete read of a split replaces a partial one.
        """
        for key, seen in value2.items():
            if seen.is_whole or key not in value1:
                value1[key] = seen
        return value1


def seen_by_tasks(session: SparkSession) -> SeenByTasks:
    """Return a new Spark accumulator of the damage that tasks find, None on a Connect server."""
    if is_remote(session):
        return None
    return session.sparkContext.accumulator({}, _SeenParam())


def complete_damage(session: SparkSession, damage: ReadDamage, seen: SeenByTasks) -> None:
    """Add what a query's tasks have found in the logs to `damage`.

    A strict query then reads the splits that no task reported: Spark may stop tasks early.
    """
    damage.seen.update({} if seen is None else seen.value)
    if damage.is_strict:
        for view, splits in damage.unread_splits():
            rows = [
                (encode_splits(group),)
                for group in pack_splits(splits, count_parallel_tasks(session))
            ]
            frame = frame_of_tasks(session, rows, "splits string")
            for row in frame.mapInArrow(partial(_read_damage, view), "seen binary").collect():
                damage.seen.update(pickle.loads(row["seen"]))


def _read_damage(view: str, groups: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Read splits in a Spark task (`mapInArrow`), and yield the damage found, pickled."""
    import pyarrow as pa

    reader = ViewReader(
        SourceFiles(), view, choose_columns(VIEWS[view], [CHEAPEST[view]]), control=False
    )
    reader.compute_checksums()
    for batch in groups:
        for row in batch.to_pylist():
            for split in decode_splits(row["splits"]):
                for _ in reader.batches_of(split):
                    pass
    yield pa.RecordBatch.from_pydict({"seen": [pickle.dumps(reader.seen)]})
