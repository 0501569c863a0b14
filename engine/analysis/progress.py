"""Watching the tasks of a Spark job from outside."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from pyspark import SparkContext

_Result = TypeVar("_Result")
_EVERY_S = 0.2


def watched(
    context: SparkContext,
    run: Callable[[], _Result],
    task_count: int,
    on_progress: Callable[[int, int], None],
) -> _Result:
    """Run a job and tell how many of its tasks are done while it runs."""
    on_progress(0, task_count)
    ended = Event()
    watcher = Thread(
        target=_watch, args=(context, ended, task_count, on_progress), name="kctl-progress"
    )
    watcher.start()
    try:
        result = run()
    finally:
        ended.set()
        watcher.join()
    on_progress(task_count, task_count)
    return result


def _watch(
    context: SparkContext, ended: Event, task_count: int, on_progress: Callable[[int, int], None]
) -> None:
    tracker = context.statusTracker()
    while not ended.wait(_EVERY_S):
        done = 0
        for stage in tracker.getActiveStageIds():
            stage_info = tracker.getStageInfo(stage)
            done += stage_info.numCompletedTasks if stage_info else 0
        on_progress(min(done, task_count), task_count)
