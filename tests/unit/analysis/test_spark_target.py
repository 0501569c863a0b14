"""Where Spark is to run, by options."""

from __future__ import annotations

import pytest

from engine.analysis.spark_target import SparkTarget, WrongSparkTarget, parse_spark_target


def test_without_options_spark_runs_here() -> None:
    assert SparkTarget("local[*]") == parse_spark_target(None, None, ())
    assert SparkTarget().is_local


@pytest.mark.parametrize(
    ("master", "remote", "is_local"),
    [
        ("local[2]", None, True),
        ("spark://host:7077", None, False),
        ("yarn", None, False),
        (None, "sc://host:15002", False),
    ],
)
def test_another_master_and_a_server_run_tasks_elsewhere(
    master: str | None, remote: str | None, is_local: bool
) -> None:
    assert is_local is parse_spark_target(master, remote, ()).is_local


def test_the_last_of_two_values_counts() -> None:
    target = parse_spark_target(None, None, ["spark.a=1", "spark.b = x=y", "spark.a=2"])
    assert {"spark.a": "2", "spark.b": "x=y"} == dict(target.settings)


@pytest.mark.parametrize(
    ("master", "remote", "setting", "reason"),
    [
        ("yarn", "sc://host:1", None, "--remote: a Connect server has its own master"),
        (None, "host:1", None, "--remote: host:1: expected sc://HOST:PORT"),
        (None, None, "spark.a", "--conf: spark.a: expected spark.NAME=VALUE"),
        (None, None, "a=b", "--conf: a=b: expected spark.NAME=VALUE"),
        (None, None, "spark.master=yarn", "--conf: spark.master: --master sets it"),
        (None, None, "spark.sql.session.timeZone=CET", "times are shown in UTC"),
    ],
)
def test_what_contradicts_itself_is_refused(
    master: str | None, remote: str | None, setting: str | None, reason: str
) -> None:
    with pytest.raises(WrongSparkTarget, match=reason):
        parse_spark_target(master, remote, [setting] if setting else [])
