"""What a query or report on Spark fails with when its session is gone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from engine.analysis.reports import report_named
from engine.analysis.spark_query import run_query, run_report
from engine.analysis.statements import QueryFailed


def _end(*_: object) -> NoReturn:
    raise RuntimeError("java.lang.OutOfMemoryError: Java heap space")


def _refuse(_: str) -> NoReturn:
    raise ConnectionRefusedError(111, "Connection refused")


def _gone_session() -> Any:
    """Return a session whose JVM ends with the first task."""
    frame = SimpleNamespace(columns=["n"], createOrReplaceTempView=lambda _: None)
    frame.mapInArrow = lambda *_: frame
    return SimpleNamespace(
        sparkContext=SimpleNamespace(
            defaultParallelism=1, parallelize=lambda *_: [], accumulator=lambda *_: None
        ),
        createDataFrame=_end,
        catalog=SimpleNamespace(dropTempView=_refuse),
        range=lambda _: frame,
        sql=lambda _: frame,
    )


def test_a_report_fails_for_what_ended_the_session() -> None:
    with pytest.raises(QueryFailed, match="Java heap space"):
        run_report(_gone_session(), report_named("keys"), [], control=False, max_rows=0)


def test_a_query_of_saved_views_fails_for_what_ended_the_session() -> None:
    query, saved = "select * from records, mine", {"mine": "select 1 n"}
    with pytest.raises(QueryFailed, match="Java heap space"):
        run_query(_gone_session(), query, [], control=False, max_rows=0, saved=saved)
