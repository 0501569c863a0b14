"""`spark-export`: what is read back in Spark and in pyarrow is what the client read."""

from __future__ import annotations

import json
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from engine.analysis.anonymise import parse_anonymised_columns
from engine.analysis.columns import RECORDS
from engine.analysis.damage import DamagedData
from engine.analysis.export_folder import ForeignFolder
from engine.analysis.export_task import ExportShape
from engine.analysis.isolation import hide_uncommitted_on_spark
from engine.analysis.parquet_export import (
    ExportPlan,
    ExportSummary,
    export,
    run_tasks,
)
from engine.analysis.row_condition import translate_condition
from engine.analysis.spark_session import SparkFailed
from engine.analysis.splits import Selection, plan_splits
from engine.analysis.table_export import export_into_table, plan_for_table
from engine.analysis.table_library import open_table
from engine.host.held_file import RealHeldFiles
from engine.host.real import RealFiles
from tests.golden_cases import case_dir
from tests.truth_tables import TruthSet, exported_records, truth_records, truth_sets
from tests.unit.analysis.tables import rows_of
from tests.unit.analysis.test_truth import UNREADABLE

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]
COLUMNS = tuple(column.name for column in RECORDS)


def _run(
    spark: Any, log_dir: Path, out: Path, *, isolation: str = "read_uncommitted", **more: Any
) -> ExportSummary:
    splits = plan_splits(RealFiles(), [str(log_dir)], Selection(), 4000)
    if isolation == "read_committed":
        splits = hide_uncommitted_on_spark(spark, splits).splits
    plan = ExportPlan(splits, str(out), more.pop("columns", COLUMNS), **more)
    return export(spark, RealHeldFiles(), plan, "test", lambda _done, _all: None)


@pytest.mark.parametrize(
    "truth",
    [*truth_sets("read_uncommitted"), TruthSet("txn", "data", "read_committed")],
    ids=lambda t: f"{t.case}-{t.folder}-{t.isolation}",
)
def test_exports_read_back_as_the_client_read(truth: TruthSet, spark: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    summary = _run(spark, truth.log_dir, out, isolation=truth.isolation)
    table = pq.read_table(out)
    assert summary.record_count == table.num_rows
    by_pyarrow = exported_records(table.to_pylist())
    by_spark = exported_records(spark.read.parquet(str(out)).toArrow().to_pylist())
    for topic, path in truth.files().items():
        if topic not in UNREADABLE:
            expected = truth_records(path)
            assert expected == by_pyarrow.get(topic, [])
            assert expected == by_spark.get(topic, [])


@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_a_table_gets_each_record_once(table_format: str, spark: Any, tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    table = open_table(table_format, out)
    splits = plan_splits(RealFiles(), [str(case_dir("plain") / "data")], Selection(), 4000)
    for part in (splits[: len(splits) // 2], splits):
        shape = ExportShape(file_format=table_format, partition_by=("topic",))
        plan = ExportPlan(part, out, COLUMNS, shape=shape)
        plan = plan_for_table(table, plan, append=True)
        run = partial(run_tasks, spark, splits=plan.splits, on_progress=lambda _done, _all: None)
        export_into_table(run, RealHeldFiles(), plan, "test", table)
    places = [(row["topic"], row["partition"], row["offset"]) for row in rows_of(table_format, out)]
    assert (1186, 1186) == (len(places), len(set(places)))


def test_damaged_batches_are_listed_beside_the_data(spark: Any, tmp_path: Path) -> None:
    log_dir = _damaged(tmp_path)
    summary = _run(spark, log_dir, tmp_path / "out")
    problems = pq.read_table(tmp_path / "out" / "_problems").to_pylist()
    assert 1 == summary.bad_batch_count
    assert [("clicks", "bad_crc"), ("clicks", "lost")] == [
        (p["topic"], p["code"]) for p in problems
    ]
    assert 0 < pq.read_table(tmp_path / "out").num_rows < 1186


def test_strict_publishes_nothing(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(DamagedData):
        _run(spark, _damaged(tmp_path), tmp_path / "out", strict=True)
    assert ["logs"] == sorted(p.name for p in tmp_path.iterdir())


def _damaged(tmp_path: Path) -> Path:
    log_dir = tmp_path / "logs"
    shutil.copytree(case_dir("plain") / "data", log_dir)
    segment = log_dir / "clicks-0" / "00000000000000000000.log"
    raw = bytearray(segment.read_bytes())
    raw[200] ^= 0xFF
    segment.write_bytes(raw)
    return log_dir


def test_a_second_run_replaces_the_first(spark: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    _run(spark, case_dir("codecs") / "data", out)
    summary = _run(spark, case_dir("plain") / "data", out, columns=("offset", "key"))
    assert 1186 == summary.record_count
    assert ["key", "offset"] == sorted(pq.read_table(out).column_names)
    assert ["out"] == [p.name for p in tmp_path.iterdir()]
    manifest = json.loads((out / "_kctl_manifest.json").read_text())
    listed = {f["name"] for f in manifest["files"]}
    assert listed == {p.name for p in out.glob("*.parquet")}


def test_a_failed_run_leaves_the_earlier_export(spark: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    _run(spark, case_dir("plain") / "data", out)
    log_dir = tmp_path / "logs"
    shutil.copytree(case_dir("codecs") / "data", log_dir)
    splits = plan_splits(RealFiles(), [str(log_dir)], Selection())
    shutil.rmtree(log_dir)
    with pytest.raises(SparkFailed):
        export(
            spark,
            RealHeldFiles(),
            ExportPlan(splits, str(out), COLUMNS),
            "two",
            lambda _a, _b: None,
        )
    assert 1186 == pq.read_table(out).num_rows
    assert ["out"] == [p.name for p in tmp_path.iterdir()]


def test_a_folder_with_other_files_is_refused(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "precious.txt").write_text("mine")
    with pytest.raises(ForeignFolder):
        _run(spark, case_dir("plain") / "data", tmp_path / "out")
    assert "mine" == (tmp_path / "out" / "precious.txt").read_text()


def test_nothing_but_markers_is_an_empty_table(spark: Any, tmp_path: Path) -> None:
    log_dir = tmp_path / "logs"
    (log_dir / "none-0").mkdir(parents=True)
    (log_dir / "none-0" / "00000000000000000000.log").write_bytes(b"")
    _run(spark, log_dir, tmp_path / "out")
    assert 0 == pq.read_table(tmp_path / "out").num_rows
    assert list(COLUMNS) == spark.read.parquet(str(tmp_path / "out")).columns


def test_tasks_filter_and_anonymise(spark: Any, tmp_path: Path) -> None:
    shape = ExportShape(
        translate_condition("offset >= 390"), parse_anonymised_columns(["key=hash"]), "orc"
    )
    summary = _run(spark, case_dir("plain") / "data", tmp_path / "out", shape=shape)
    frame = spark.read.orc(str(tmp_path / "out"))
    assert summary.record_count == frame.count() > 0
    rows = frame.selectExpr("min(offset) first", "min(length(key)) shortest").collect()
    assert (390, 64) == (rows[0]["first"], rows[0]["shortest"])
