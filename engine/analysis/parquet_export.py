"""Exporting records to a folder of Parquet files: all of it appears at once, or nothing.

1. The folder must be absent, empty, or an earlier export (it has a manifest).
2. Tasks write into a hidden staging folder beside it.
3. The driver removes what no finished task reported, and adds the table of problems, the
   manifest and `_SUCCESS`; the manifest is made durable last.
4. An earlier export is renamed away, the staging folder takes its name, the old one is removed.

A crash before step 4 leaves the earlier export and a staging folder, which the next run removes;
between the two renames of step 4 it leaves the old and the new one complete under other names.
"""

from __future__ import annotations

import json
import os
import posixpath
from collections.abc import Callable
from typing import Any, NamedTuple

from engine import __version__
from engine.analysis.columns import PROBLEMS, RECORDS, arrow_schema, chosen
from engine.analysis.export_task import ExportJob, TaskReport, map_export
from engine.analysis.spark_failures import failure_of
from engine.analysis.spark_session import SparkFailed
from engine.analysis.splits import Split, encode_splits, pack_splits
from engine.errors import EngineError
from engine.host.ports import Files

MANIFEST = "_kctl_manifest.json"
PROBLEMS_FILE = "_problems/part-00000.parquet"
_SUCCESS = "_SUCCESS"


class ForeignFolder(EngineError):
    """The folder to export to holds something that no export made."""

    hint = "choose an empty or new folder for --out"

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} is not empty and not an earlier export")
        self.path = path


class DamagedData(EngineError):
    """A strict export met damaged batches; nothing was published."""

    exit_code = 4
    hint = "`kctl logs verify` shows each place; without --strict they are passed over and listed"

    def __init__(self, bad_batch_count: int, first: str) -> None:
        super().__init__(f"{bad_batch_count} damaged batches, the first: {first}")
        self.bad_batch_count = bad_batch_count


class ExportSummary(NamedTuple):
    """What an export published."""

    out: str
    file_count: int
    record_count: int
    file_bytes: int
    read_bytes: int
    bad_batch_count: int
    problem_count: int


class ExportPlan(NamedTuple):
    """What to export, and how."""

    splits: list[Split]
    out: str
    columns: tuple[str, ...]
    include_control: bool = False
    strict: bool = False


def export(
    session: Any, files: Files, plan: ExportPlan, job_id: str, on_progress: Callable[..., None]
) -> ExportSummary:
    """Run an export on Spark; `on_progress(done, all)` is told of finished tasks.

    Raises ForeignFolder, DamagedData (strict), SparkFailed. `job_id` names the staging folder.
    """
    out = os.path.abspath(plan.out)
    _check_target(files, out)
    folder, name = posixpath.split(out)
    prefix = f".{name}.kctl-"
    files.make_dir(folder)
    for left in files.list_dir(folder):
        if left.startswith(prefix):
            remove_tree(files, f"{folder}/{left}")
    staging = f"{folder}/{prefix}{job_id}"
    files.make_dir(staging)
    try:
        job = ExportJob(staging, plan.columns, plan.include_control)
        reports = _run(session, job, plan.splits, on_progress)
        summary = _complete(files, plan, staging, reports)
        _publish(files, staging, out)
    except BaseException:
        remove_tree(files, staging)
        raise
    return summary._replace(out=out)


def _check_target(files: Files, out: str) -> None:
    if not files.exists(out):
        return
    if not files.is_dir(out):
        raise ForeignFolder(out)
    names = files.list_dir(out)
    if names and MANIFEST not in names:
        raise ForeignFolder(out)


def _run(
    session: Any, job: ExportJob, splits: list[Split], on_progress: Callable[..., None]
) -> list[TaskReport]:
    from functools import partial

    from engine.analysis.progress import watched

    context = session.sparkContext
    groups = pack_splits(splits, context.defaultParallelism)
    rows = [(number, encode_splits(group)) for number, group in enumerate(groups)]
    frame = session.createDataFrame(
        context.parallelize(rows, len(rows)), "number int, splits string"
    )
    reports = frame.mapInArrow(partial(map_export, job), "report string")
    try:
        report_rows = watched(context, reports.collect, len(rows), on_progress)
    except Exception as error:
        raise SparkFailed("the export failed", failure_of(error)) from error
    return [TaskReport.from_json(row["report"]) for row in report_rows]


def _complete(
    files: Files, plan: ExportPlan, staging: str, reports: list[TaskReport]
) -> ExportSummary:
    problems = [problem for report in reports for problem in report.problems]
    bad = sum(report.bad_batch_count for report in reports)
    if plan.strict and bad:
        first = next(p for p in problems if p.code != "torn_tail")
        raise DamagedData(bad, f"{first.segment} at position {first.position}: {first.message}")
    listed = {report.file for report in reports if report.file}
    for name in files.list_dir(staging):
        if name not in listed:
            files.remove(f"{staging}/{name}")
    if not listed:
        listed = {_empty_file(staging, plan)}
    _write_problems(files, staging, problems)
    summary = ExportSummary(
        out=plan.out,
        file_count=len(listed),
        record_count=sum(report.record_count for report in reports),
        file_bytes=sum(report.file_bytes for report in reports),
        read_bytes=sum(report.read_bytes for report in reports),
        bad_batch_count=bad,
        problem_count=len(problems),
    )
    files.replace_file(f"{staging}/{_SUCCESS}", b"")
    files.replace_file(f"{staging}/{MANIFEST}", _manifest(plan, reports, summary))
    return summary


def _empty_file(staging: str, plan: ExportPlan) -> str:
    """Write a file without rows, so that the folder still says its columns."""
    import pyarrow.parquet as pq

    schema = arrow_schema(chosen(RECORDS, list(plan.columns)))
    pq.write_table(schema.empty_table(), f"{staging}/part-00000-empty.parquet")
    return "part-00000-empty.parquet"


def _write_problems(files: Files, staging: str, problems: list[Any]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = arrow_schema(PROBLEMS)
    table = pa.Table.from_pylist([problem._asdict() for problem in problems], schema=schema)
    files.make_dir(f"{staging}/{posixpath.dirname(PROBLEMS_FILE)}")
    pq.write_table(table, f"{staging}/{PROBLEMS_FILE}")


def _manifest(plan: ExportPlan, reports: list[TaskReport], summary: ExportSummary) -> bytes:
    content = {
        "version": 1,
        "kctl_version": __version__,
        "columns": list(plan.columns),
        "include_control": plan.include_control,
        "sources": sorted({split.path for split in plan.splits}),
        "files": [
            {"name": r.file, "records": r.record_count, "bytes": r.file_bytes}
            for r in reports
            if r.file
        ],
        "record_count": summary.record_count,
        "read_bytes": summary.read_bytes,
        "bad_batch_count": summary.bad_batch_count,
        "problem_count": summary.problem_count,
    }
    return json.dumps(content, indent=1).encode() + b"\n"


def _publish(files: Files, staging: str, out: str) -> None:
    folder, name = posixpath.split(out)
    old = None
    if files.exists(out):
        old = f"{folder}/.{name}.kctl-replaced"
        files.rename(out, old)
    files.rename(staging, out)
    files.sync_dir(folder)
    if old is not None:
        remove_tree(files, old)


def remove_tree(files: Files, path: str) -> None:
    """Remove a folder and all that is in it."""
    for name in files.list_dir(path):
        inner = f"{path}/{name}"
        if files.is_dir(inner):
            remove_tree(files, inner)
        else:
            files.remove(inner)
    files.remove(path)
