"""One Spark session for all Spark tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from engine.analysis.spark_session import end_jvms, start_session
from engine.analysis.spark_target import SparkTarget

#: A query runs once here: what Spark compiles of its stages takes longer than it saves. Each
#: expression gives the same either way. The slow tier and the whole command, in
#: `test_packaged_java.py`, have what users have.
_QUICK = (
    ("spark.sql.codegen.wholeStage", "false"),
    ("spark.driver.extraJavaOptions", "-XX:+UseSerialGC"),
)


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    settings = () if os.environ.get("KCTL_TEST_EVERY_CASE") else _QUICK
    session = start_session(SparkTarget("local[2]", settings=settings), parallelism=2)
    yield session
    session.stop()
    end_jvms()
