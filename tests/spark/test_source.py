"""The data source `kafka-log`: what the view has, at rest and as a directory grows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.analysis.logs import open_logs, register
from tests.golden_cases import case_dir
from tests.unit.log.logs import batch, name_of

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]
LOGS = str(case_dir("plain") / "data")


@pytest.fixture(scope="module")
def source(spark: Any) -> Any:
    register(spark)
    return spark


def _sorted(table: Any) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


@pytest.mark.parametrize("view", ["records", "segments"])
def test_a_frame_has_the_rows_of_the_view(source: Any, view: str) -> None:
    frame = source.read.format("kafka-log").option("view", view).load(LOGS)
    assert _sorted(open_logs(LOGS).read(view).read_all()) == _sorted(frame.toArrow())


def test_a_stream_follows_a_directory(source: Any, tmp_path: Path) -> None:
    folder = tmp_path / "logs" / "t-0"
    folder.mkdir(parents=True)
    segment = folder / name_of(0)
    segment.write_bytes(batch(0, 5))
    frame = source.readStream.format("kafka-log").load(str(tmp_path / "logs"))
    query = (
        frame.select("offset").writeStream.format("memory").queryName("followed")
        .option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    )  # fmt: skip
    try:
        query.processAllAvailable()
        segment.write_bytes(batch(0, 5) + batch(5, 2) + batch(7)[:40])
        query.processAllAvailable()
    finally:
        query.stop()
    rows = source.sql("select offset from followed order by offset").collect()
    # The session is that of other tests, which list its views.
    source.catalog.dropTempView("followed")
    assert list(range(7)) == [row["offset"] for row in rows]
