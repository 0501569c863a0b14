"""Differences between a Spark session of this process and one of a Connect server.

| | of this process | of a Connect server |
|---|---|---|
| a task for each row | partitions of one row | rows dealt out one by one |
| cores | the scheduler's count | partitions of a range |
| tasks done | asked every 0.2 s | sent by the server |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame, SparkSession

_Result = TypeVar("_Result")
_EVERY_S = 0.2
# More than any cluster has cores: Spark makes a range of at most as many partitions as cores.
_RANGE_ROWS = 100_000


def is_remote(session: SparkSession) -> bool:
    """Return whether a session is of a Connect server."""
    return type(session).__module__.startswith("pyspark.sql.connect")


def parallelism(session: SparkSession) -> int:
    """Return how many tasks run at once, as far as Spark knows now."""
    if not is_remote(session):
        return int(session.sparkContext.defaultParallelism)
    from pyspark.sql.functions import spark_partition_id

    numbers = session.range(_RANGE_ROWS).select(spark_partition_id().alias("number")).distinct()
    return max(int(numbers.count()), 1)


def frame_of_tasks(
    session: SparkSession, rows: Sequence[tuple[Any, ...]], schema: str
) -> DataFrame:
    """Return a frame in which each row is a task of its own."""
    if not is_remote(session):
        context = session.sparkContext
        return session.createDataFrame(context.parallelize(rows, len(rows)), schema)
    # From one partition rows are dealt out in turn, so that no task has two.
    return session.createDataFrame(list(rows), schema).coalesce(1).repartition(len(rows))


def watched(
    session: SparkSession,
    run: Callable[[], _Result],
    task_count: int,
    on_progress: Callable[[int, int], None],
) -> _Result:
    """Run a job and report how many of its tasks are done while it runs."""
    on_progress(0, task_count)
    result = (_run_remote if is_remote(session) else _run_here)(
        session, run, task_count, on_progress
    )
    on_progress(task_count, task_count)
    return result


def _run_here(
    session: SparkSession,
    run: Callable[[], _Result],
    task_count: int,
    on_progress: Callable[[int, int], None],
) -> _Result:
    """Run a job while a thread reports its completed tasks from the status tracker."""
    ended = Event()
    watcher = Thread(
        target=_watch,
        args=(session.sparkContext, ended, task_count, on_progress),
        name="kctl-progress",
    )
    watcher.start()
    try:
        return run()
    finally:
        ended.set()
        watcher.join()


def _watch(
    context: SparkContext, ended: Event, task_count: int, on_progress: Callable[[int, int], None]
) -> None:
    """Report the completed tasks of the active stages at intervals, until `ended` is set."""
    tracker = context.statusTracker()
    while not ended.wait(_EVERY_S):
        done = 0
        for stage in tracker.getActiveStageIds():
            stage_info = tracker.getStageInfo(stage)
            done += stage_info.numCompletedTasks if stage_info else 0
        on_progress(min(done, task_count), task_count)


def _run_remote(
    session: SparkSession,
    run: Callable[[], _Result],
    task_count: int,
    on_progress: Callable[[int, int], None],
) -> _Result:
    """Run a job on a Connect server, which sends the progress of its stages."""

    def report(stages: Any, **_: Any) -> None:
        # The stage that deals out the rows has a task or two, and is none of the work.
        done = [s.num_completed_tasks for s in stages or () if s.num_tasks == task_count]
        on_progress(min(max(done, default=0), task_count), task_count)

    session.registerProgressHandler(report)
    try:
        return run()
    finally:
        session.removeProgressHandler(report)
