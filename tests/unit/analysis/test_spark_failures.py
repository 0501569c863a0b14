"""What is reported of an error of Spark."""

from __future__ import annotations

import pytest

from engine.analysis.spark_failures import failure_of

_OF_THE_JVM = """An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.
: java.net.BindException: Cannot assign requested address: Service 'sparkDriver' failed
	at java.base/sun.nio.ch.Net.bind0(Native Method)
	at java.base/java.lang.Thread.run(Thread.java:1583)
"""


def test_an_exception_of_the_jvm_is_reported_and_not_the_call_it_ended() -> None:
    expected = (
        "java.net.BindException: Cannot assign requested address: Service 'sparkDriver' failed"
    )
    assert expected == failure_of(Exception(_OF_THE_JVM))


@pytest.mark.parametrize(
    ("name", "line"),
    [("`recrods`", "no view recrods; did you mean records?"),
     ("`a`.`xyz`", "no view a.xyz; the views are records, ")],
)  # fmt: skip
def test_a_view_that_is_not_there_is_named(name: str, line: str) -> None:
    text = (
        f"[TABLE_OR_VIEW_NOT_FOUND] The table or view {name} cannot be found. Verify the spelling"
        " and correctness of the schema and catalog.\nIf you did not. SQLSTATE: 42P01; line 1"
    )
    assert failure_of(Exception(text)).startswith(line)


@pytest.mark.parametrize(("text", "line"), [("", "Exception"), ("no answer\nin time", "in time")])
def test_an_error_without_a_class_is_reported_by_its_last_line(text: str, line: str) -> None:
    assert line == failure_of(Exception(text))


def test_saved_views_are_among_what_a_wrong_name_may_mean() -> None:
    missing = "[TABLE_OR_VIEW_NOT_FOUND] The table or view `coutns` cannot be found."
    assert "no view coutns; did you mean counts?" == failure_of(Exception(missing), ["counts"])
    column = "[UNRESOLVED_COLUMN] A column with name `tota` cannot be resolved."
    expected = "no column tota; most like it: total"
    assert expected == failure_of(Exception(column), columns=["total"])[: len(expected)]
