"""One Spark session for all Spark tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from engine.analysis.spark_session import end_jvms, start_session
from engine.analysis.spark_target import SparkTarget


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    session = start_session(SparkTarget("local[2]"), parallelism=2)
    yield session
    session.stop()
    end_jvms()
