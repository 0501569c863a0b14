"""Prepare a Spark worker process once, and name the attempt of its task."""

from __future__ import annotations

import gc

_calmed: list[bool] = []


def calm_worker() -> None:
    """Exclude all imported modules from garbage collection, once in each Spark worker.

    Spark collects after every task; traversing all imported modules takes 28 to 62 ms each time.
    """
    if not _calmed:
        _calmed.append(True)
        gc.freeze()


def attempt_name() -> str:
    """Return a name that is unique among all task attempts of this Spark application.

    A retried task therefore never writes to the file of an earlier attempt.
    """
    from pyspark import TaskContext

    context = TaskContext.get()
    return "local" if context is None else f"{context.taskAttemptId():06d}"
