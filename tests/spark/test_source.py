"""The data source `kafka-log`: what the view has, at rest and as a directory grows."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.datasource import (
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    StringStartsWith,
)
from pyspark.sql.types import LongType, StructField, StructType

from engine.analysis.logs import open_logs, register
from engine.analysis.pruning import ValueRange
from engine.analysis.spark_source import PushingLogReader, PushingLogSource, range_of_filter
from engine.analysis.splits import decode_splits
from tests.golden_cases import case_dir
from tests.unit.log.logs import batch, name_of

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]
LOGS = str(case_dir("plain") / "data")
OFFSETS = StructType([StructField("offset", LongType(), nullable=False)])


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


def test_a_schema_of_some_columns_reads_those_alone(source: Any) -> None:
    """A schema of a text has columns that may be null, which Spark compares with the view's."""
    wanted = ["key", "topic", "offset", "value_size"]
    schema = "key binary, topic string, offset bigint, value_size int"
    frame = source.read.format("kafka-log").schema(schema).load(LOGS)
    assert wanted == frame.columns
    expected = open_logs(LOGS).read("records", wanted).read_all()
    assert _sorted(expected) == _sorted(frame.toArrow())


WANTED = """topic = 'clicks' and offset between 260 and 280 and partition in (0, 7)
            and timestamp >= '2026-01-01T01:00:00+01:00'"""


def test_a_filter_leaves_the_rows_that_meet_it(source: Any) -> None:
    frame = source.read.format("kafka-log").load(LOGS).where(WANTED)
    assert list(range(260, 281)) == sorted(row["offset"] for row in frame.collect())


def test_a_filter_narrows_what_tasks_read() -> None:
    reader = PushingLogSource({"path": LOGS}).reader(OFFSETS)
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    filters = [
        EqualTo(("topic",), "clicks"), GreaterThanOrEqual(("offset",), 260),
        LessThan(("offset",), 281), In(("partition",), (0, 7)), GreaterThan(("timestamp",), noon),
        EqualTo(("headers", "key"), "x"), StringStartsWith(("topic",), "c"),
    ]  # fmt: skip
    assert filters == list(reader.pushFilters(filters))
    splits = [split for part in reader.partitions() for split in decode_splits(part.value)]
    assert [("clicks", 250)] == [(split.topic, split.base_offset) for split in splits]
    time_ms = 1767268800001
    assert ("timestamp", ValueRange(least=time_ms * 1000 - 999)) == range_of_filter(filters[4])
    # What is damaged elsewhere would be passed over.
    failing = PushingLogSource({"path": LOGS, "mode": "FAILFAST"})
    assert not isinstance(failing.reader(OFFSETS), PushingLogReader)


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
