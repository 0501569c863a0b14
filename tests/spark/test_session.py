"""The session that the commands start."""

from __future__ import annotations

import os
from typing import Any

import pytest

from engine.analysis.spark_session import start_session
from engine.analysis.spark_target import SparkTarget

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def test_children_of_the_process_are_not_handed_its_jvm(spark: Any) -> None:
    assert spark is not None
    assert [] == [name for name in os.environ if name.startswith("PYSPARK_GATEWAY_")]


def test_a_process_has_one_session(spark: Any) -> None:
    again = start_session(SparkTarget("local[2]"), parallelism=2)
    assert spark.sparkContext is again.sparkContext
