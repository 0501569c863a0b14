"""An export that is cut off at any step leaves the earlier export or the new one, whole."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import pytest

from engine.analysis.export_folder import ExportRunning, ForeignFolder
from engine.analysis.export_task import ExportJob, TaskReport
from engine.analysis.parquet_export import ExportPlan, export_with
from engine.analysis.partitioned_files import FileEntry
from engine.errors import EngineError
from engine.host.held_file import RealHeldFiles
from engine.host.memory import MachineStopped
from engine.host.memory_held_file import MemoryHeldFiles
from engine.host.ports import Files

OUT = "/exports/out"


class TaskFailed(EngineError):
    """The work of an export fails."""


def _export(
    files: MemoryHeldFiles | RealHeldFiles, label: str, *, out: str = OUT, fails: bool = False
) -> None:
    """Export one file whose content is the label."""

    def run(job: ExportJob) -> list[TaskReport]:
        name = f"part-00000-{label}.parquet"
        files.replace_file(f"{job.staging_dir}/{name}", label.encode())
        if fails:
            raise TaskFailed("the work failed")
        return [TaskReport([FileEntry(name, 1, len(label))], 1, 0, [], [])]

    export_with(run, files, ExportPlan([], out, ("offset",)), f"job-{label}")


def _exported(files: Files, out: str = OUT) -> str | None:
    """Return the label of the export there is, None without a folder; it must be whole."""
    if not files.exists(out):
        return None
    manifest = json.loads(files.read_bytes(f"{out}/_kctl_manifest.json"))
    (listed,) = manifest["files"]
    label = listed["name"].removeprefix("part-00000-").removesuffix(".parquet")
    assert label.encode() == files.read_bytes(f"{out}/{listed['name']}")
    assert {"_SUCCESS", "_kctl_manifest.json", "_problems", listed["name"]} == set(
        files.list_dir(out)
    )
    return str(label)


def _disk(earlier: str | None) -> MemoryHeldFiles:
    files = MemoryHeldFiles()
    files.make_dir("/exports")
    if earlier:
        _export(files, earlier)
    files.sync_all()
    return files


def _operations(earlier: str | None) -> range:
    files = _disk(earlier)
    before = files.operations
    _export(files, "new")
    assert "new" == _exported(files)
    return range(before, files.operations)


def _crashed(earlier: str | None, operation: int) -> list[MemoryHeldFiles]:
    """Return the disks that a power cut before an operation may leave."""
    files = _disk(earlier)
    files.stop_at(operation)
    with pytest.raises(MachineStopped):
        _export(files, "new")
    return [files.after_crash(kept_changes=kept) for kept in range(files.unsynced_changes() + 1)]


@pytest.mark.parametrize("earlier", ["old", None])
def test_after_a_crash_at_any_step_a_failing_run_leaves_a_whole_export(
    earlier: str | None,
) -> None:
    disks = [disk for n in _operations(earlier) for disk in _crashed(earlier, n)]
    assert len(disks) > 20
    for disk in disks:
        with pytest.raises(TaskFailed):
            _export(disk, "failing", fails=True)
        assert _exported(disk) in (earlier, "new")


@pytest.mark.parametrize("earlier", ["old", None])
def test_after_a_crash_at_any_step_the_next_run_publishes_and_cleans_up(
    earlier: str | None,
) -> None:
    for operation in _operations(earlier):
        for disk in _crashed(earlier, operation):
            _export(disk, "next")
            assert "next" == _exported(disk)
            assert ["out"] == disk.list_dir("/exports")


def test_crashes_of_two_runs_in_a_row_leave_a_whole_export() -> None:
    for first in _operations("old"):
        found = _crashed("old", first)
        for disk in (found[0], found[-1]):
            disk.sync_all()
            start = disk.operations
            for step in range(60):
                again = disk.after_crash()
                again.stop_at(again.operations + step)
                try:
                    _export(again, "newer")
                except MachineStopped:
                    for kept in (0, again.unsynced_changes()):
                        last = again.after_crash(kept_changes=kept)
                        with pytest.raises(TaskFailed):
                            _export(last, "failing", fails=True)
                        assert _exported(last) in ("old", "new", "newer")
                else:
                    break
            assert start == disk.operations


@pytest.mark.parametrize("operation", ["rename", "sync", "create", "remove", "write"])
def test_an_operation_that_fails_never_costs_the_earlier_export(operation: str) -> None:
    for skip in range(40):
        disk = _disk("old")
        disk.fail(operation, errno.EIO, skip=skip)
        try:
            _export(disk, "new")
        except EngineError:
            assert _exported(disk) in ("old", "new")
        disk.cancel_failures()
        with pytest.raises(TaskFailed):
            _export(disk, "failing", fails=True)
        assert _exported(disk) in ("old", "new")


def test_a_second_export_into_the_folder_is_refused_while_one_runs() -> None:
    files = _disk("old")

    def run(job: ExportJob) -> list[TaskReport]:
        files.replace_file(f"{job.staging_dir}/part-00000-first.parquet", b"first")
        with pytest.raises(ExportRunning):
            _export(files, "second")
        assert "old" == _exported(files)
        return [TaskReport([FileEntry("part-00000-first.parquet", 1, 5)], 1, 0, [], [])]

    export_with(run, files, ExportPlan([], OUT, ("offset",)), "job-first")
    assert "first" == _exported(files)
    _export(files, "third")
    assert "third" == _exported(files)


def test_two_names_of_a_folder_have_one_lock(tmp_path: Path) -> None:
    files = RealHeldFiles()
    out, link = tmp_path / "real" / "out", tmp_path / "link"
    _export(files, "old", out=str(out))
    link.symlink_to(out)

    def run(job: ExportJob) -> list[TaskReport]:
        with pytest.raises(ExportRunning):
            _export(files, "second", out=str(link))
        raise TaskFailed("the work failed")

    with pytest.raises(TaskFailed):
        export_with(run, files, ExportPlan([], str(out), ("offset",)), "job-first")
    assert "old" == _exported(files, str(out))
    _export(files, "new", out=str(link))
    assert "new" == _exported(files, str(out))
    assert link.is_symlink()
    assert ["out"] == [p.name for p in out.parent.iterdir()]


def test_what_a_link_in_an_earlier_export_leads_to_is_left_alone(tmp_path: Path) -> None:
    files = RealHeldFiles()
    out = tmp_path / "out"
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "precious.txt").write_text("mine")
    _export(files, "old", out=str(out))
    (out / "linked").symlink_to(tmp_path / "mine")
    _export(files, "new", out=str(out))
    assert "new" == _exported(files, str(out))
    assert "mine" == (tmp_path / "mine" / "precious.txt").read_text()


def _crashed_between_renames() -> MemoryHeldFiles:
    """Return a disk on which a crash took the earlier export from its name."""
    files = _disk("old")
    files.rename(OUT, "/exports/.out.kctl-replaced")
    files.sync_all()
    return files


def test_an_empty_folder_made_after_a_crash_does_not_cost_the_earlier_export() -> None:
    files = _crashed_between_renames()
    files.make_dir(OUT)
    with pytest.raises(TaskFailed):
        _export(files, "failing", fails=True)
    assert "old" == _exported(files)
    _export(files, "new")
    assert "new" == _exported(files)
    assert ["out"] == files.list_dir("/exports")


def test_a_refused_folder_does_not_cost_the_earlier_export() -> None:
    files = _crashed_between_renames()
    files.make_dir(OUT)
    files.replace_file(f"{OUT}/mine", b"mine")
    with pytest.raises(ForeignFolder):
        _export(files, "new")
    files.remove(f"{OUT}/mine")
    with pytest.raises(TaskFailed):
        _export(files, "failing", fails=True)
    assert "old" == _exported(files)


def test_an_export_leaves_the_names_of_another_folder_alone() -> None:
    files = _crashed_between_renames()
    other = "/exports/.out.kctl-2.kctl-replaced"
    files.rename("/exports/.out.kctl-replaced", other)
    _export(files, "new")
    assert "old" == _exported(files, other)
