"""Set up a Spark worker process once, and name the attempt of its task."""

from __future__ import annotations

import gc

_calmed: list[bool] = []


def calm_worker() -> None:
    """Freeze the garbage collector's view of all imported modules, once per Spark worker.

    Spark collects after every task; walking all imported modules costs 28 to 62 ms each time.
    """
    if not _calmed:
        _calmed.append(True)
        gc.freeze()


def attempt_name() -> str:
    """Return a name that is unique among all task attempts of this application.

    So a retried task does not write the file of an earlier attempt.
    """
    from pyspark import TaskContext

    context = TaskContext.get()
    return "local" if context is None else f"{context.taskAttemptId():06d}"
