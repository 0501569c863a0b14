"""`spark-export --format delta|iceberg`: rows, partitions, what is refused."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from engine.analysis.appending import AppendMismatch
from engine.analysis.columns import RECORDS
from engine.analysis.export_folder import ForeignFolder
from engine.analysis.export_task import ExportJob, ExportShape, TaskReport, run_export_task
from engine.analysis.parquet_export import DamagedData, ExportPlan, ExportSummary
from engine.analysis.partitioned_files import WrongPartitioning
from engine.analysis.splits import Selection, plan_splits
from engine.analysis.table_export import TableExists, export_into_table, table_plan
from engine.analysis.table_library import TableLibraryMissing, table_in
from engine.host.held_file import RealHeldFiles
from engine.host.real import RealFiles
from tests.golden_cases import data_dir
from tests.unit.analysis.tables import files_of, rows_of

ALL = tuple(column.name for column in RECORDS)
FORMATS = pytest.mark.parametrize("table_format", ["delta", "iceberg"])


def _export(
    table_format: str, out: Path, *, share: int = 1, append: bool = True, **more: Any
) -> ExportSummary:
    """Export the first of so many shares of a log directory."""
    pieces = plan_splits(RealFiles(), [str(data_dir("plain"))], Selection(), 4000)
    shape = ExportShape(file_format=table_format, partition_by=more.pop("partition_by", ()))
    columns = more.pop("columns", ALL)
    plan = ExportPlan(pieces[: len(pieces) // share], str(out), columns, shape=shape, **more)
    table = table_in(table_format, str(out))
    plan = table_plan(table, plan, append=append)

    def run(job: ExportJob) -> list[TaskReport]:
        halves = (plan.splits[::2], plan.splits[1::2])
        return [
            run_export_task(job, half, f"part-{job.prefix}{n}") for n, half in enumerate(halves)
        ]

    return export_into_table(run, RealHeldFiles(), plan, f"job{share}", table)


def _sorted(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return sorted((row["topic"], row["partition"], row["offset"], row["value"]) for row in rows)


@FORMATS
def test_runs_add_up_to_all_records(table_format: str, tmp_path: Path) -> None:
    out = tmp_path / "tables" / "records"
    first = _export(table_format, out, share=2)
    second = _export(table_format, out)
    assert 1186 == first.record_count + second.record_count
    rows = rows_of(table_format, str(out))
    assert 1186 == len({(row["topic"], row["partition"], row["offset"]) for row in rows})
    assert list(ALL) == list(rows[0])
    assert {"UTC"} == {str(row["timestamp"].tzinfo) for row in rows}
    before = files_of(table_format, str(out))
    assert 0 == _export(table_format, out).record_count
    assert before == files_of(table_format, str(out))


@FORMATS
def test_partitions_are_those_of_the_table(table_format: str, tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    _export(table_format, whole)
    _export(table_format, parts, share=2, partition_by=("topic", "partition", "date"))
    _export(table_format, parts, partition_by=("topic", "partition", "date"))
    rows = rows_of(table_format, str(parts))
    assert _sorted(rows_of(table_format, str(whole))) == _sorted(rows)
    if table_format == "delta":
        assert all(row["date"] == row["timestamp"].date() for row in rows)
    assert len(list(parts.rglob("date=2026-01-01/part-*.parquet"))) > 6


@FORMATS
def test_an_export_of_nothing_is_a_table_with_columns(table_format: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    _export(table_format, out, share=10**6)
    assert [] == rows_of(table_format, str(out))
    assert 1186 == _export(table_format, out).record_count


@FORMATS
def test_another_form_is_refused(table_format: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    _export(table_format, out, share=2)
    with pytest.raises(TableExists, match="has a table with records already"):
        _export(table_format, out, append=False)
    with pytest.raises(AppendMismatch, match="its columns is"):
        _export(table_format, out, columns=("offset",))


@FORMATS
def test_a_strict_export_commits_nothing(table_format: str, tmp_path: Path) -> None:
    pieces = plan_splits(RealFiles(), [str(data_dir("plain"))], Selection(topics=None), 4000)
    assert pieces
    with pytest.raises(DamagedData):
        _export(table_format, tmp_path / "out", share=2, strict=True)
    assert [] == rows_of(table_format, str(tmp_path / "out"))
    assert [] == list(tmp_path.iterdir())


def test_a_table_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    import pyarrow as pa
    from deltalake import write_deltalake

    out = tmp_path / "out"
    write_deltalake(out, pa.table({"offset": [1]}))
    with pytest.raises(AppendMismatch, match="no export made this table"):
        _export("delta", out)
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "mine.txt").write_text("x")
    for table_format in ("delta", "iceberg"):
        with pytest.raises(ForeignFolder):
            _export(table_format, tmp_path / "files")


def test_an_iceberg_table_has_the_columns_that_its_partitions_are_of(tmp_path: Path) -> None:
    with pytest.raises(WrongPartitioning, match="the column timestamp is not exported"):
        _export("iceberg", tmp_path / "out", columns=("topic", "offset"), partition_by=("date",))


@pytest.mark.parametrize(
    ("table_format", "library"), [("delta", "deltalake"), ("iceberg", "pyiceberg")]
)
def test_a_library_that_is_not_there_is_named(
    table_format: str, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(TableLibraryMissing) as missing:
        table_in(table_format, "/nowhere")
    assert f"{library} is not installed, and --format {table_format} needs it" == str(missing.value)
    assert f"pip install 'kctl-kafka[{table_format}]'" == missing.value.hint
