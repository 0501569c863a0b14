"""Hide the differences between a Spark session in this process and one on a Connect server.

| | in this process | on a Connect server |
|---|---|---|
| one task for each row | partitions of one row | rows distributed round-robin |
| cores | the scheduler's count | partitions of a range |
| finished tasks | polled every 0.2 s | sent by the server |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from threading import Event, Thread
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame, SparkSession

_Result = TypeVar("_Result")


class _StageProgress(Protocol):
    """The progress of a stage, as a Connect server sends it."""

    num_tasks: int
    num_completed_tasks: int


_EVERY_S = 0.2
# More than any cluster has cores: Spark divides a range into at most one partition a core.
_RANGE_ROWS = 100_000


def is_remote(session: SparkSession) -> bool:
    """Return True if a session is on a Spark Connect server."""
    return type(session).__module__.startswith("pyspark.sql.connect")


def count_parallel_tasks(session: SparkSession) -> int:
    """Return the number of tasks that a session can run at once, as Spark currently knows it."""
    if not is_remote(session):
        return int(session.sparkContext.defaultParallelism)
    from pyspark.sql.functions import spark_partition_id

    numbers = session.range(_RANGE_ROWS).select(spark_partition_id().alias("number")).distinct()
    return max(int(numbers.count()), 1)


def frame_of_tasks(
    session: SparkSession, rows: Sequence[tuple[object, ...]], schema: str
) -> DataFrame:
    """Return a data frame in which each row is processed by a separate task."""
    if not is_remote(session):
        context = session.sparkContext
        return session.createDataFrame(context.parallelize(rows, len(rows)), schema)
    # Rows of a single partition are distributed round-robin, so that no task gets two.
    return session.createDataFrame(list(rows), schema).coalesce(1).repartition(len(rows))


def run_with_progress(
    session: SparkSession,
    run: Callable[[], _Result],
    task_count: int,
    on_progress: Callable[[int, int], None],
) -> _Result:
    """Run a Spark job and return its result.

    `on_progress(done, all)` is called with counts of tasks meanwhile.
    """
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
    """Run a job while a thread polls the status tracker for its finished tasks."""
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
    """Report the number of finished tasks every _EVERY_S, until `ended` is set."""
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
    """Run a job on a Connect server, which sends its progress."""

    def report(stages: Iterable[_StageProgress] | None, **_: object) -> None:
        """Report the finished tasks of the job's stage; the server calls it."""
        # The stage that distributes the rows has one or two tasks, and is not counted.
        done = [s.num_completed_tasks for s in stages or () if s.num_tasks == task_count]
        on_progress(min(max(done, default=0), task_count), task_count)

    session.registerProgressHandler(report)
    try:
        return run()
    finally:
        session.removeProgressHandler(report)
