"""A run that adds to a table and ends at any step: each offset is in the table once, later on."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from engine.analysis.batch_order import OffsetSpan
from engine.analysis.export_folder import make_durable_dir
from engine.analysis.export_task import ExportJob, ExportShape, TaskReport, run_export_task
from engine.analysis.parquet_export import ExportPlan
from engine.analysis.partitioned_files import FileEntry
from engine.analysis.splits import Selection, plan_splits
from engine.analysis.table_export import export_into_table, plan_for_table
from engine.analysis.table_format import Ends, Table, TableColumns, TableFile, TableState
from engine.analysis.table_library import open_table
from engine.host.held_file import HeldFile, RealHeldFiles
from engine.host.memory import MachineStopped
from engine.host.memory_held_file import MemoryHeldFiles
from engine.host.ports import File
from engine.host.real import RealFiles
from tests.golden_cases import case_dir
from tests.unit.analysis.tables import files_of, rows_of

OUT = "/exports/out"
PLACE = ("t", 0)


class JsonTable:
    """A table whose commit replaces one durable file."""

    mark = "table"
    data_folder = "data/"

    def __init__(self, files: MemoryHeldFiles) -> None:
        self._files = files
        self._path = f"{OUT}/{self.mark}/state.json"

    def _content(self) -> dict[str, Any] | None:
        if not self._files.exists(self._path):
            return None
        content: dict[str, Any] = json.loads(self._files.read_bytes(self._path))
        return content

    def state(self, partitions: Iterable[tuple[str, int]]) -> TableState | None:
        content = self._content()
        if content is None:
            return None
        return TableState(content["form"], content["run"], {PLACE: content["end"]})

    def check(self, columns: TableColumns) -> None:
        pass

    def create(self, columns: TableColumns, form: str) -> list[str]:
        make_durable_dir(self._files, f"{OUT}/{self.mark}")
        self._replace({"form": json.loads(form), "run": 0, "end": 0, "files": []})
        return []

    def commit(
        self, files: list[TableFile], run: int, ends: Ends, columns: TableColumns
    ) -> list[str]:
        content = self._content()
        assert content is not None
        listed = [*content["files"], *(file.path for file in files)]
        self._replace({**content, "run": run, "end": ends[PLACE], "files": listed})
        return [self._path]

    def _replace(self, content: dict[str, Any]) -> None:
        self._files.replace_file(self._path, json.dumps(content).encode())

    def offsets(self) -> list[int]:
        """Return all offsets; the folder has the table's files and no others."""
        content = self._content()
        listed = content["files"] if content else []
        for name in self._files.list_dir(f"{OUT}/data") if listed else ():
            assert f"data/{name}" in listed
        return [n for name in listed for n in json.loads(self._files.read_bytes(f"{OUT}/{name}"))]


def _run(files: MemoryHeldFiles, end: int, job: str) -> None:
    """Add the offsets up to an end, two of them a file."""
    table = JsonTable(files)
    plan = plan_for_table(table, ExportPlan([], OUT, ("offset",)), append=True)
    first = plan.earlier.ends.get(PLACE, 0) if plan.earlier else 0

    def run(job: ExportJob) -> list[TaskReport]:
        reports = []
        for start in range(first, end, 2):
            name, content = f"{job.prefix}{start}", [*range(start, min(start + 2, end))]
            files.replace_file(f"{job.staging_dir}/{name}", json.dumps(content).encode())
            span = OffsetSpan(*PLACE, "x", 0, start, start, end, False, False, None, None)
            entry = FileEntry(name, len(content), 1)
            reports.append(TaskReport([entry], 1, 0, [], [span]))
        return reports

    export_into_table(run, files, plan, job, table)


def _disk(earlier: int) -> MemoryHeldFiles:
    files = MemoryHeldFiles()
    files.make_dir("/exports")
    if earlier:
        _run(files, earlier, "a")
    files.sync_all()
    return files


def _crashed(earlier: int, operation: int) -> list[MemoryHeldFiles]:
    """Return the disks that a power cut before an operation of the second run may leave."""
    files = _disk(earlier)
    files.stop_at(operation)
    with pytest.raises(MachineStopped):
        _run(files, 7, "b")
    return [files.after_crash(kept_changes=kept) for kept in range(files.unsynced_changes() + 1)]


@pytest.mark.parametrize("earlier", [0, 3])
def test_after_a_power_cut_at_any_step_no_offset_is_lost_or_twice(earlier: int) -> None:
    whole = _disk(earlier)
    before = whole.operations
    _run(whole, 7, "b")
    assert [*range(7)] == JsonTable(whole).offsets()
    disks = [d for n in range(before, whole.operations) for d in _crashed(earlier, n)]
    assert len(disks) > 40
    for disk in disks:
        _run(disk, 10, "c")
        assert [*range(10)] == sorted(JsonTable(disk).offsets())
        assert ["out"] == disk.list_dir("/exports")


class StoppingFiles(RealHeldFiles):
    """The files of this machine, for a process that ends before one of its changes."""

    def __init__(self, stop_at: int) -> None:
        self.changes = 0
        self._stop_at = stop_at
        self._held: list[HeldFile] = []

    def _count(self) -> None:
        self.changes += 1
        if self.changes > self._stop_at:
            # The kernel releases what an ended process held.
            for held in self._held:
                held.close()
            raise MachineStopped("change")

    def hold(self, path: str, *, create: bool = False) -> HeldFile:
        self._held.append(super().hold(path, create=create))
        return self._held[-1]

    def open(self, path: str, *, write: bool = False, create: bool = False) -> File:
        self._count()
        return super().open(path, write=write, create=create)

    def rename(self, source: str, target: str) -> None:
        self._count()
        super().rename(source, target)

    def remove(self, path: str) -> None:
        self._count()
        super().remove(path)

    def replace_file(self, path: str, content: bytes) -> None:
        self._count()
        super().replace_file(path, content)

    def sync_dir(self, path: str) -> None:
        self._count()
        super().sync_dir(path)


class Uncommitting:
    """A table before whose commit the process ends."""

    def __init__(self, table: Table) -> None:
        self.mark, self.data_folder = table.mark, table.data_folder
        self.state, self.check, self.create = table.state, table.check, table.create

    def commit(
        self, files: list[TableFile], run: int, ends: Ends, columns: TableColumns
    ) -> list[str]:
        raise MachineStopped("commit")


def _add(table_format: str, out: Path, count: int, files: RealHeldFiles, commits: bool) -> None:
    """Add the first pieces of a log, as many as that."""
    pieces = plan_splits(
        RealFiles(), [str(case_dir("plain") / "data" / "clicks-0")], Selection(), 1
    )
    shape = ExportShape(file_format=table_format)
    plan = ExportPlan(pieces[:count], str(out), ("topic", "partition", "offset"), shape=shape)
    table = open_table(table_format, str(out))
    plan = plan_for_table(table, plan, append=True)

    def run(job: ExportJob) -> list[TaskReport]:
        return [run_export_task(job, plan.splits, f"part-{job.prefix}0")]

    used: Table = table if commits else Uncommitting(table)
    export_into_table(run, files, plan, f"job{count}", used)


@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_after_a_crash_at_any_step_a_table_has_each_record_once(
    table_format: str, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    step, is_whole, commits, count = 0, False, False, 0
    while not is_whole:
        files = StoppingFiles(10**6 if not commits else step)
        try:
            _add(table_format, out, step + 2, files, commits)
            is_whole = True
        except MachineStopped:
            found = [row["offset"] for row in rows_of(table_format, str(out))]
            # Readers see the run whole or not at all.
            assert sorted(found) == [*range(len(found))]
            assert len(found) >= count
            count = len(found)
        step, commits = step + 1, True
    assert step > 8
    _add(table_format, out, 10**6, RealHeldFiles(), True)
    assert [*range(400)] == sorted(row["offset"] for row in rows_of(table_format, str(out)))
    assert files_of(table_format, str(out)) == {path.name for path in out.rglob("part-*.parquet")}
    assert ["out"] == [path.name for path in tmp_path.iterdir()]
