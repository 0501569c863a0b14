"""The session that the commands start."""

from __future__ import annotations

import os
import signal
from functools import partial
from threading import Event, Thread
from typing import Any

import pytest

from engine.analysis.interruptible import is_left_behind
from engine.analysis.spark_query import run_query
from engine.analysis.spark_session import start_session
from engine.analysis.spark_target import SparkTarget

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def test_children_of_the_process_are_not_handed_its_jvm(spark: Any) -> None:
    assert spark is not None
    assert [] == [name for name in os.environ if name.startswith("PYSPARK_GATEWAY_")]


def test_a_process_has_one_session(spark: Any) -> None:
    again = start_session(SparkTarget("local[2]"), parallelism=2)
    assert spark.sparkContext is again.sparkContext


def test_the_end_of_its_jvm_prints_no_traceback(
    spark: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """The thread that takes damage from tasks sees the end of the JVM as an error."""
    try:
        raise EOFError
    except EOFError:
        spark.sparkContext._accumulatorServer.handle_error(None, ("127.0.0.1", 1))
    assert ("", "") == capsys.readouterr()


def test_a_signal_ends_a_query_and_not_the_session(spark: Any) -> None:
    """The signal comes once a job runs; PySpark alone would wait for the end of that job."""
    tracker, ended = spark.sparkContext.statusTracker(), Event()

    def interrupt() -> None:
        while not (tracker.getActiveJobsIds() or ended.wait(0.005)):
            pass
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    thread = Thread(target=interrupt)
    thread.start()
    ask = partial(run_query, spark, splits=[], control=False, max_rows=0)
    try:
        with pytest.raises(KeyboardInterrupt):
            ask("select count(*) from range(1000000) a, range(1000000) b where a.id < b.id")
    finally:
        ended.set()
        thread.join()
        signal.signal(signal.SIGINT, before)
    assert [] == list(tracker.getActiveJobsIds())
    assert not is_left_behind()
    assert [{"n": 7}] == ask("select count(*) n from range(7)").rows
