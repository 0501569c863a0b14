"""`spark-export --append`: a second run adds what the first one had not, and nothing twice."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from engine.analysis.anonymise import parse_anonymised_columns
from engine.analysis.appending import AppendMismatch, ExportChanged
from engine.analysis.damage import DamagedData
from engine.analysis.export_task import ExportJob, ExportShape, TaskReport, run_export_task
from engine.analysis.isolation import hide_uncommitted_here
from engine.analysis.parquet_export import (
    ExportPlan,
    ExportSummary,
    export_with,
    plan_to_append,
)
from engine.analysis.splits import Selection, plan_splits
from engine.host.held_file import RealHeldFiles
from engine.host.real import RealFiles
from engine.records.batch_header import HEADER_BYTES
from engine.records.view import batch_at
from tests.golden_cases import case_dir
from tests.unit.log.logs import batch, name_of

COLUMNS = ("topic", "partition", "offset", "value")


def _export(
    log_dir: Path, out: Path, *, append: bool = True, committed: bool = False, **more: Any
) -> ExportSummary:
    splits = plan_splits(RealFiles(), [str(log_dir)], Selection())
    if committed:
        splits = hide_uncommitted_here(RealFiles(), splits).splits
        more["isolation"] = "read_committed"
    plan = ExportPlan(splits, str(out), COLUMNS, **more)
    if append:
        plan = plan_to_append(RealFiles(), plan)

    def run(job: ExportJob) -> list[TaskReport]:
        halves = (plan.splits[::2], plan.splits[1::2])
        return [
            run_export_task(job, half, f"part-{job.prefix}{n}") for n, half in enumerate(halves)
        ]

    return export_with(run, RealHeldFiles(), plan, "job")


def _rows(out: Path) -> list[tuple[Any, ...]]:
    rows = pq.read_table(out).to_pylist()
    return sorted((tuple(row.values()) for row in rows), key=repr)


def _half(source: Path, target: Path) -> None:
    """Copy logs without the second half of each partition's batches."""
    shutil.copytree(source, target)
    for partition in sorted(path for path in target.iterdir() if path.is_dir()):
        logs = sorted(partition.glob("*.log"))
        for log in logs[len(logs) // 2 + 1 :]:
            for file in partition.glob(f"{log.stem}.*"):
                file.unlink()
        last = logs[len(logs) // 2]
        content = last.read_bytes()
        last.write_bytes(content[: _middle(content)])
        for side in partition.glob(f"{last.stem}.*index"):
            side.unlink()
    for checkpoint in target.glob("*-checkpoint"):
        checkpoint.unlink()


def _middle(content: bytes) -> int:
    position = 0
    while position + HEADER_BYTES < len(content) // 2:
        position += batch_at(memoryview(content), position).size_bytes
    return position


@pytest.mark.parametrize("committed", [False, True])
@pytest.mark.parametrize("case", ["plain", "txn", "codecs"])
def test_two_runs_have_what_one_run_has(case: str, committed: bool, tmp_path: Path) -> None:
    whole = case_dir(case) / "data"
    _half(whole, tmp_path / "half")
    first = _export(tmp_path / "half", tmp_path / "out", committed=committed)
    second = _export(whole, tmp_path / "out", committed=committed)
    at_once = _export(whole, tmp_path / "once", committed=committed)
    assert 0 < first.record_count
    assert at_once.record_count == first.record_count + second.record_count
    assert _rows(tmp_path / "once") == _rows(tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / "_kctl_manifest.json").read_text())
    assert (2, at_once.record_count) == (manifest["runs"], manifest["record_count"])
    listed = {entry["name"] for entry in manifest["files"]}
    assert listed == {path.name for path in (tmp_path / "out").glob("*.parquet")}


def test_a_run_without_anything_new_changes_no_row(tmp_path: Path) -> None:
    whole = case_dir("plain") / "data"
    _export(whole, tmp_path / "out")
    before = _rows(tmp_path / "out")
    assert 0 == _export(whole, tmp_path / "out").record_count
    assert before == _rows(tmp_path / "out")


def test_problems_of_all_runs_are_listed(tmp_path: Path) -> None:
    whole = case_dir("plain") / "data"
    shutil.copytree(whole, tmp_path / "logs")
    log = tmp_path / "logs" / "clicks-0" / "00000000000000000000.log"
    content = bytearray(log.read_bytes())
    content[200] ^= 0xFF
    log.write_bytes(content)
    first = _export(tmp_path / "logs", tmp_path / "out")
    assert first.problem_count
    assert first.problem_count == _export(whole, tmp_path / "out").problem_count


@pytest.mark.parametrize(
    "more",
    [
        {"include_control": True},
        {"shape": ExportShape(anonymised=parse_anonymised_columns(["value=hash"]))},
        {"shape": ExportShape(file_format="json")},
        {"isolation": "read_committed"},
    ],
)
def test_an_export_of_another_form_is_refused(more: dict[str, Any], tmp_path: Path) -> None:
    whole = case_dir("plain") / "data"
    _export(whole, tmp_path / "out")
    with pytest.raises(AppendMismatch):
        _export(whole, tmp_path / "out", **more)


def test_a_manifest_that_does_not_say_how_far_it_came_is_refused(tmp_path: Path) -> None:
    whole = case_dir("plain") / "data"
    _export(whole, tmp_path / "out")
    manifest = tmp_path / "out" / "_kctl_manifest.json"
    content = json.loads(manifest.read_text())
    del content["partitions"]
    for text in (json.dumps(content), "[]", "{", ""):
        manifest.write_text(text)
        with pytest.raises(AppendMismatch):
            _export(whole, tmp_path / "out")


def test_an_export_that_was_replaced_meanwhile_is_not_appended_to(tmp_path: Path) -> None:
    whole, out = case_dir("plain") / "data", tmp_path / "out"
    _export(whole, out)
    splits = plan_splits(RealFiles(), [str(whole)], Selection())
    plan = plan_to_append(RealFiles(), ExportPlan(splits, str(out), COLUMNS))
    _export(case_dir("codecs") / "data", out, append=False)
    before = _rows(out)
    with pytest.raises(ExportChanged):
        export_with(lambda _plan_job: [], RealHeldFiles(), plan, "job")
    assert before == _rows(out)


def _log(log_dir: Path, base_offset: int, content: bytes) -> None:
    shutil.rmtree(log_dir, ignore_errors=True)
    (log_dir / "t-0").mkdir(parents=True)
    (log_dir / "t-0" / name_of(base_offset)).write_bytes(content)


def _problems(out: Path) -> list[tuple[str, str]]:
    rows = pq.read_table(out / "_problems").to_pylist()
    return [(row["code"], row["message"]) for row in rows]


def test_offsets_that_were_deleted_between_two_runs_are_listed(tmp_path: Path) -> None:
    logs, out = tmp_path / "logs", tmp_path / "out"
    _log(logs, 0, batch(0, 5))
    _export(logs, out)
    _log(logs, 5, batch(5, 5))
    assert 0 == _export(logs, out).problem_count
    _log(logs, 20, batch(20, 5))
    (logs / "log-start-offset-checkpoint").write_text("0\n1\nt 0 22\n")
    assert 3 == _export(logs, out, strict=True).record_count
    expected = [("deleted", "offsets 10 to 21 were deleted before a run exported them")]
    assert expected == _problems(out)


def test_a_log_that_ends_before_an_earlier_run_did_is_short(tmp_path: Path) -> None:
    logs, out = tmp_path / "logs", tmp_path / "out"
    _log(logs, 0, batch(0, 5))
    _export(logs, out)
    _log(logs, 0, batch(0, 3))
    with pytest.raises(DamagedData):
        _export(logs, out, strict=True)
    assert 0 == _export(logs, out).record_count
    ((code, message),) = _problems(out)
    assert ("short", "the log ends at offset 3, and an earlier run came to 5") == (
        code,
        message.partition(":")[0],
    )


def test_damage_is_listed_once(tmp_path: Path) -> None:
    logs, out = tmp_path / "logs", tmp_path / "out"
    damaged = bytearray(batch(5, 2))
    damaged[-1] ^= 0xFF
    _log(logs, 0, batch(0, 5) + bytes(damaged) + batch(7, 3))
    first = _export(logs, out)
    assert ["bad_crc", "lost"] == [code for code, _ in _problems(out)]
    _log(logs, 0, batch(0, 5) + bytes(damaged) + batch(7, 3) + batch(10))
    second = _export(logs, out)
    assert (1, first.problem_count) == (second.record_count, second.problem_count)
