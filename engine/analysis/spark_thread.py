"""Run Spark work on a thread of its own, so that Ctrl-C and SIGTERM can interrupt it.

PySpark waits for the end of a job even after a signal, so the jobs are cancelled: repeatedly,
because a query may start another one. The JVM may not answer the request to cancel, so that is
sent from another thread.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import Event, Thread
from typing import TYPE_CHECKING, Final

from engine.analysis.interruptible import Result, run_interruptible
from engine.analysis.spark_tasks import is_remote
from engine.host.deferred_signals import block_signals

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CANCEL_EVERY_S: Final = 0.1


def on_spark_thread(session: SparkSession, work: Callable[[], Result]) -> Result:
    """Run `work`, which runs jobs of a session, on another thread and return its result.

    Raises the errors of `work`, and the exception of a signal handler in this thread, after the
    jobs were cancelled.
    """
    return run_interruptible(work, partial(_stop, session))


def start_on_thread(start: Callable[[], Result]) -> Result:
    """Run `start`, which starts a Spark session, on another thread; return the session.

    After a signal the thread is abandoned.
    """
    return run_interruptible(start, lambda _ended, _end_s: None)


def _stop(session: SparkSession, ended: Event, end_s: float) -> None:
    """Cancel the jobs of a session until its work has ended, for `end_s` at most."""
    given_up = Event()

    def cancel() -> None:
        """Cancel the session's jobs repeatedly: a query may start another one."""
        while not (ended.is_set() or given_up.is_set()):
            # The session or its server may have ended.
            with suppress(Exception):
                if is_remote(session):
                    session.interruptAll()
                else:
                    session.sparkContext.cancelAllJobs()
            ended.wait(_CANCEL_EVERY_S)

    with block_signals():
        Thread(target=cancel, name="kctl-cancel", daemon=True).start()
    try:
        ended.wait(end_s)
    finally:
        given_up.set()
