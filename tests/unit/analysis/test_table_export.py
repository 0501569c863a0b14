"""`spark-export --format delta|iceberg`: rows, partitions, what is refused."""

from __future__ import annotations

import resource
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from engine.analysis.appending import AppendMismatch
from engine.analysis.columns import RECORDS, arrow_schema
from engine.analysis.damage import DamagedData
from engine.analysis.export_folder import ForeignFolder
from engine.analysis.export_task import ExportJob, ExportShape, TaskReport, run_export_task
from engine.analysis.iceberg_table import WrongTablePath
from engine.analysis.parquet_export import ExportPlan, ExportSummary
from engine.analysis.partitioned_files import WrongPartitioning
from engine.analysis.splits import Selection, plan_splits
from engine.analysis.table_export import TableExists, export_into_table, plan_for_table
from engine.analysis.table_format import TableColumns, TableFailed
from engine.analysis.table_library import TableLibraryMissing, open_table
from engine.host.held_file import RealHeldFiles
from engine.host.ports import File
from engine.host.real import RealFiles
from tests.golden_cases import data_dir
from tests.unit.analysis.tables import files_of, rows_of
from tests.unit.log.logs import batch, name_of

ALL = tuple(column.name for column in RECORDS)
FORMATS = pytest.mark.parametrize("table_format", ["delta", "iceberg"])


def _export(
    table_format: str,
    out: Path,
    *,
    share: int = 1,
    append: bool = True,
    files: RealHeldFiles | None = None,
    **more: Any,
) -> ExportSummary:
    """Export the first of so many shares of a log directory."""
    plain = [str(data_dir("plain"))]
    pieces = more.pop("pieces", None) or plan_splits(RealFiles(), plain, Selection(), 4000)
    shape = ExportShape(file_format=table_format, partition_by=more.pop("partition_by", ()))
    columns = more.pop("columns", ALL)
    plan = ExportPlan(pieces[: len(pieces) // share], str(out), columns, shape=shape, **more)
    table = open_table(table_format, str(out))
    plan = plan_for_table(table, plan, append=append)

    def run(job: ExportJob) -> list[TaskReport]:
        halves = (plan.splits[::2], plan.splits[1::2])
        return [
            run_export_task(job, half, f"part-{job.prefix}{n}") for n, half in enumerate(halves)
        ]

    return export_into_table(run, files or RealHeldFiles(), plan, f"job{share}", table)


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


def _overwritten(out: Path, **how: Any) -> None:
    from deltalake import DeltaTable, write_deltalake

    rows = DeltaTable(out).to_pyarrow_table()
    written = pa.table({"x": [1]}) if "partition_by" not in how else rows
    write_deltalake(out, written, mode="overwrite", schema_mode="overwrite", **how)


def _without_topic(out: Path) -> None:
    from deltalake import DeltaTable, write_deltalake

    rows = DeltaTable(out).to_pyarrow_table()
    place = rows.schema.get_field_index("topic")
    numbers = rows.set_column(place, "topic", pa.array([0] * rows.num_rows))
    write_deltalake(out, numbers, mode="overwrite", schema_mode="overwrite")


def _constrained(out: Path) -> None:
    from deltalake import DeltaTable

    DeltaTable(out).alter.add_constraint({"small": "partition < 9"})


def _with_form(form: str) -> Callable[[Path], None]:
    def change(out: Path) -> None:
        from deltalake import DeltaTable

        DeltaTable(out).alter.set_table_properties({"kctl.export": form}, raise_if_not_exists=False)

    return change


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_overwritten, "its column key is not what it was"),
        (lambda out: _overwritten(out, partition_by=["topic"]), "it is partitioned by topic now"),
        (_without_topic, "its column topic is not what it was"),
        (_constrained, "it has delta.constraints.small now"),
        (_with_form("{"), "the description of its form cannot be read"),
        (_with_form("[]"), "the description of its form cannot be read"),
    ],
)
def test_a_delta_table_that_others_changed_is_left_alone(
    change: Callable[[Path], None], reason: str, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    _export("delta", out, share=2)
    change(out)
    before = rows_of("delta", str(out))
    with pytest.raises(AppendMismatch, match=reason):
        _export("delta", out)
    assert before == rows_of("delta", str(out))
    assert ["out"] == [path.name for path in tmp_path.iterdir()]


def _set(name: str, value: str) -> Callable[[Any], None]:
    def change(table: Any) -> None:
        with table.transaction() as transaction:
            transaction.set_properties({name: value})

    return change


def _rename_topic(table: Any) -> None:
    with table.update_schema() as schema:
        schema.rename_column("topic", "subject")


def _partition(table: Any) -> None:
    with table.update_spec() as spec:
        spec.add_identity("topic")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_rename_topic, "it has no column topic any more"),
        (_partition, "it is partitioned by topic now"),
        (_set("kctl.run", "x"), "its properties do not say how far it came"),
        (_set("kctl.partitions", "{}x"), "its properties do not say how far it came"),
        (_set("kctl.export", "x"), "the description of its form cannot be read"),
    ],
)
def test_an_iceberg_table_that_others_changed_is_left_alone(
    change: Callable[[Any], None], reason: str, tmp_path: Path
) -> None:
    from pyiceberg.catalog.sql import SqlCatalog

    out = tmp_path / "out"
    _export("iceberg", out, share=2)
    catalog = SqlCatalog("kctl", uri=f"sqlite:///{out}/catalog.db")
    change(catalog.load_table("kafka.records"))
    catalog.close()
    before = rows_of("iceberg", str(out))
    with pytest.raises(AppendMismatch, match=reason):
        _export("iceberg", out)
    assert before == rows_of("iceberg", str(out))


def test_a_table_takes_records_beside_a_column_that_others_added(tmp_path: Path) -> None:
    from deltalake import DeltaTable, Field
    from deltalake.schema import PrimitiveType

    out = tmp_path / "out"
    _export("delta", out, share=2)
    DeltaTable(out).alter.add_columns([Field("note", PrimitiveType("string"), nullable=True)])
    _export("delta", out)
    assert [None] * 1186 == [row["note"] for row in rows_of("delta", str(out))]


def test_a_copy_of_an_iceberg_table_does_not_write_into_the_table(tmp_path: Path) -> None:
    out, copy = tmp_path / "out", tmp_path / "copy"
    _export("iceberg", out, share=2)
    shutil.copytree(out, copy)
    before = sorted(out.rglob("*"))
    with pytest.raises(AppendMismatch, match=f"it is a copy of the table in {out}"):
        _export("iceberg", copy)
    assert before == sorted(out.rglob("*"))
    out.rename(tmp_path / "moved")
    with pytest.raises(TableFailed) as failed:
        _export("iceberg", tmp_path / "moved")
    assert "its files have absolute paths: if it was moved, move it back" == failed.value.hint


def test_a_percent_sign_in_a_path_is_one(tmp_path: Path) -> None:
    (tmp_path / "a b").mkdir()
    for name in ("a b", "a%20b"):
        _export("iceberg", tmp_path / name, share=2)
        assert (tmp_path / name / "catalog.db").exists()
    for name in ("a?b", "a#b"):
        with pytest.raises(WrongTablePath):
            _export("iceberg", tmp_path / name)


def test_a_disk_that_takes_no_commit_is_named_as_the_cause(tmp_path: Path) -> None:
    out = tmp_path / "out"
    _export("delta", out, share=2)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))
    try:
        with pytest.raises(TableFailed, match="LocalFileSystem error: File too large"):
            open_table("delta", str(out)).commit([], 2, {}, TableColumns(arrow_schema(RECORDS), ()))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert 561 == _export("delta", out).record_count


class SyncedFiles(RealHeldFiles):
    """The files of this machine, with a list of what was made durable."""

    def __init__(self) -> None:
        self.synced: set[str] = set()
        self.synced_names: set[str] = set()

    def open(self, path: str, *, write: bool = False, create: bool = False) -> File:
        if write:
            # What is opened to be written here is synced, as `_sync` does.
            self.synced.add(path)
        return super().open(path, write=write, create=create)

    def sync_dir(self, path: str) -> None:
        self.synced_names |= {f"{path}/{name}" for name in self.list_dir(path)}
        super().sync_dir(path)


@FORMATS
@pytest.mark.parametrize("share", [2, 10**6])
def test_all_that_a_table_needs_is_durable(table_format: str, share: int, tmp_path: Path) -> None:
    files, out = SyncedFiles(), tmp_path / "out"
    _export(table_format, out, share=share, files=files)
    folders = {str(path) for path in out.rglob("*") if path.is_dir()}
    log = {str(path) for path in out.rglob("*.json")}
    assert folders | log <= files.synced_names
    assert log <= files.synced


@FORMATS
def test_a_run_without_anything_new_lists_no_damage_again(
    table_format: str, tmp_path: Path
) -> None:
    logs, out = tmp_path / "logs", tmp_path / "out"
    damaged = bytearray(batch(5, 2))
    damaged[-1] ^= 0xFF
    (logs / "t-0").mkdir(parents=True)
    (logs / "t-0" / name_of(0)).write_bytes(batch(0, 5) + bytes(damaged) + batch(7, 3))
    pieces = plan_splits(RealFiles(), [str(logs)], Selection())
    assert 2 == _export(table_format, out, pieces=pieces).problem_count
    before = sorted(out.rglob("*"))
    assert 0 == _export(table_format, out, pieces=pieces).problem_count
    assert before == sorted(out.rglob("*"))


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
        open_table(table_format, "/nowhere")
    assert f"{library} is not installed, and --format {table_format} needs it" == str(missing.value)
    assert f"pip install 'kctl-kafka[{table_format}]'" == missing.value.hint
