"""Export records to a folder of Parquet files, which appear all at once or not at all.

1. `export_folder.py` claims the folder, which is absent, empty, or an earlier export.
2. Tasks write to a hidden staging folder next to it, and sync each file.
3. The driver removes files that no finished task reported, and adds the table of problems,
   `_SUCCESS` and the manifest; the manifest is written and synced last.
4. `export_folder.py` publishes the staging folder by renames.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import posixpath
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from engine import __version__
from engine.analysis.appending import (
    Earlier,
    ExportedEnd,
    ExportedFile,
    carry_over,
    deleted_offset_problems,
    exported_ends,
    read_earlier_export,
    read_earlier_problems,
    shortened_log_problems,
    splits_not_exported,
)
from engine.analysis.column_types import type_name
from engine.analysis.columns import PROBLEMS, arrow_schema
from engine.analysis.damage import refuse_damage
from engine.analysis.export_files import EXTENSIONS, empty_content
from engine.analysis.export_folder import MANIFEST, ExportFiles, ExportFolder
from engine.analysis.export_task import ExportJob, ExportShape, TaskReport, map_export
from engine.analysis.gaps import add_gaps
from engine.analysis.problem import Problem
from engine.analysis.spark_failures import failure_of
from engine.analysis.spark_session import SparkFailed
from engine.analysis.spark_tasks import count_parallel_tasks, frame_of_tasks, run_with_progress
from engine.analysis.spark_thread import on_spark_thread
from engine.analysis.splits import Split, encode_splits, pack_splits
from engine.analysis.view_column import ViewColumn
from engine.host.ports import Files

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

PROBLEMS_FILE = "_problems/part-00000.parquet"
_SUCCESS = "_SUCCESS"
#: Hex digits of a key's check value: too few to guess the key, enough to notice another key.
_KEY_CHECK_DIGITS = 8


class ExportSummary(NamedTuple):
    """Counts and sizes of a published export."""

    out: str
    file_count: int
    record_count: int
    file_bytes: int
    read_bytes: int
    bad_batch_count: int
    problem_count: int
    #: Hidden folders beside `out` that could not be removed after it was published.
    leftovers: tuple[str, ...] = ()


class ExportPlan(NamedTuple):
    """The input and options of an export."""

    splits: list[Split]
    out: str
    columns: tuple[str, ...]
    include_control: bool = False
    strict: bool = False
    #: Problems that were found before the export, which are listed with those of the tasks.
    problems: tuple[Problem, ...] = ()
    shape: ExportShape = ExportShape()
    isolation: str = "read_uncommitted"
    #: The export to append to; `splits` then has only records that it lacks. None for a new one.
    earlier: Earlier | None = None

    def after(self, earlier: Earlier) -> ExportPlan:
        """Return the plan without the records that an earlier export has."""
        splits = splits_not_exported(self.splits, earlier)
        problems = (*self.problems, *deleted_offset_problems(splits, earlier))
        return self._replace(splits=splits, problems=problems, earlier=earlier)

    @property
    def written_columns(self) -> tuple[ViewColumn, ...]:
        """Return the columns that the exported files contain."""
        return self.shape.written_columns(self.columns)

    @property
    def form(self) -> dict[str, object]:
        """Return the options that must be equal in an earlier export to append to it."""
        return {
            "format": self.shape.file_format,
            "columns": [column.name for column in self.written_columns],
            "types": [type_name(column.type) for column in self.written_columns],
            "where": self.shape.condition.text if self.shape.condition else None,
            "anonymised": {entry.name: entry.method for entry in self.shape.anonymised},
            "partition_by": list(self.shape.partition_by),
            "hashes": _hash_name(self.shape.hash_key),
            "include_control": self.include_control,
            "isolation": self.isolation,
        }


def _hash_name(key: bytes | None) -> str:
    """Return the hash's name for the manifest; a key is represented by a short check value."""
    if key is None:
        return "sha-256"
    check = hmac.new(key, b"kctl export", hashlib.sha256).hexdigest()[:_KEY_CHECK_DIGITS]
    return f"hmac-sha-256 {check}"


def plan_to_append(files: Files, plan: ExportPlan) -> ExportPlan:
    """Return the plan without the records that the earlier export in its folder has.

    Without an earlier export the plan is returned unchanged. Raises AppendMismatch for an export of
    another form.
    """
    earlier = read_earlier_export(files, os.path.realpath(plan.out), plan.form)
    if earlier is None:
        return plan
    return plan.after(earlier)


def export(
    session: SparkSession,
    files: ExportFiles,
    plan: ExportPlan,
    job_id: str,
    on_progress: Callable[..., None],
) -> ExportSummary:
    """Export by Spark: write files, and publish them as a whole; return a summary.

    `on_progress(done, all)` is called with counts of tasks; `job_id` is part of the staging
    folder's name. Raises ExportRunning, ForeignFolder, DamagedData (strict), SparkFailed.
    """

    def run(job: ExportJob) -> list[TaskReport]:
        """Run the export's tasks in Spark."""
        return run_tasks(session, job, plan.splits, on_progress)

    return export_with(run, files, plan, job_id)


def export_with(
    run: Callable[[ExportJob], list[TaskReport]], files: ExportFiles, plan: ExportPlan, job_id: str
) -> ExportSummary:
    """Publish the files that `run` writes to a staging folder; return a summary.

    The files that `run` reports must be synced when it returns. Raises the errors of `export` and
    of `run`.
    """
    # Resolved, so that two paths of one folder use one lock.
    out = os.path.realpath(plan.out)
    with ExportFolder(files, out, job_id) as folder:
        prefix = f"run{plan.earlier.run_count + 1}-" if plan.earlier else ""
        columns, control = plan.columns, plan.include_control
        reports = run(ExportJob(folder.staging, columns, control, plan.shape, prefix))
        summary = _complete_staging(files, plan._replace(out=out), folder.staging, reports)
        leftovers = folder.publish()
    return summary._replace(out=out, leftovers=tuple(leftovers))


def run_tasks(
    session: SparkSession, job: ExportJob, splits: list[Split], on_progress: Callable[..., None]
) -> list[TaskReport]:
    """Run the export's tasks in Spark, each with some of the splits; return their reports."""
    groups = pack_splits(splits, count_parallel_tasks(session))
    rows = [(number, encode_splits(group)) for number, group in enumerate(groups)]
    frame = frame_of_tasks(session, rows, "number int, splits string")
    reports = frame.mapInArrow(partial(map_export, job), "report string")
    run = partial(run_with_progress, session, reports.collect, len(rows), on_progress)
    try:
        report_rows = on_spark_thread(session, run)
    except Exception as error:
        raise SparkFailed("the export failed", failure_of(error)) from error
    return [TaskReport.from_json(row["report"]) for row in report_rows]


def _complete_staging(
    files: Files, plan: ExportPlan, staging: str, reports: list[TaskReport]
) -> ExportSummary:
    """Write the problems, the manifest and `_SUCCESS` to the staging folder; return the summary.

    Files that no report names are removed. An appending export copies the files and problems of the
    earlier runs. A strict export raises DamagedData for a problem that is not harmless.
    """
    problems = found_problems(plan, reports)
    bad = sum(report.bad_batch_count for report in reports)
    written = [entry for report in reports for entry in report.files]
    remove_unlisted(files, staging, {entry.name for entry in written})
    entries: list[ExportedFile] = [
        {"name": entry.name, "records": entry.record_count, "bytes": entry.file_bytes}
        for entry in written
    ]
    if plan.earlier is not None:
        entries = [*carry_over(files, plan.out, staging, plan.earlier), *entries]
        known = read_earlier_problems(files, f"{plan.out}/{PROBLEMS_FILE}")
        problems = [*known, *(problem for problem in problems if problem not in known)]
    if not entries:
        _write_empty_file(files, staging, plan)
    _write_problems(files, staging, problems)
    summary = ExportSummary(
        out=plan.out,
        file_count=max(len(entries), 1),
        record_count=sum(report.record_count for report in reports),
        file_bytes=sum(entry.file_bytes for entry in written),
        read_bytes=sum(report.read_bytes for report in reports),
        bad_batch_count=bad,
        problem_count=len(problems),
    )
    files.replace_file(f"{staging}/{_SUCCESS}", b"")
    spans = [span for report in reports for span in report.spans]
    partitions = exported_ends(spans, plan.splits, plan.earlier)
    files.replace_file(f"{staging}/{MANIFEST}", _manifest(plan, entries, partitions, summary))
    return summary


def found_problems(plan: ExportPlan, reports: list[TaskReport]) -> list[Problem]:
    """Return the problems of planning, of the export's tasks, and between splits.

    Raises DamagedData for a strict export.
    """
    spans = [span for report in reports for span in report.spans]
    of_tasks = add_gaps([problem for report in reports for problem in report.problems], spans)
    problems = [*plan.problems, *of_tasks, *shortened_log_problems(spans, plan.earlier)]
    if plan.strict:
        refuse_damage(problems)
    return problems


def remove_unlisted(files: Files, folder: str, listed: set[str], within: str = "") -> None:
    """Remove all files below `folder` that `listed` does not name, and sync the folders.

    A killed task may have left such a file. `within` is the folder's path in the export.
    """
    for name in files.list_dir(folder):
        path, relative = f"{folder}/{name}", f"{within}{name}"
        if files.is_dir(path):
            remove_unlisted(files, path, listed, f"{relative}/")
            if not files.list_dir(path):
                files.remove(path)
        elif relative not in listed:
            files.remove(path)
    files.sync_dir(folder)


def _write_empty_file(files: Files, staging: str, plan: ExportPlan) -> None:
    """Write a file without rows, so that readers of the folder find the columns."""
    file_format = plan.shape.file_format
    path = f"{staging}/part-00000-empty{EXTENSIONS[file_format]}"
    content = empty_content(arrow_schema(plan.written_columns), file_format)
    files.replace_file(path, content)


def problems_table(problems: list[Problem]) -> pa.Table:
    """Return problems as the table that an export stores next to the records."""
    import pyarrow as pa

    rows = [problem._asdict() for problem in problems]
    return pa.Table.from_pylist(rows, schema=arrow_schema(PROBLEMS))


def _write_problems(files: Files, staging: str, problems: list[Problem]) -> None:
    """Write the table of problems, also if it is empty: later appends read it."""
    table = problems_table(problems)
    files.make_dir(f"{staging}/{posixpath.dirname(PROBLEMS_FILE)}")
    write_table(files, f"{staging}/{PROBLEMS_FILE}", table)


def write_table(files: Files, path: str, table: pa.Table) -> None:
    """Write a table to a Parquet file, atomically and synced."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    content = pa.BufferOutputStream()
    pq.write_table(table, content)
    files.replace_file(path, content.getvalue().to_pybytes())


def _manifest(
    plan: ExportPlan,
    entries: list[ExportedFile],
    partitions: list[ExportedEnd],
    summary: ExportSummary,
) -> bytes:
    """Return the manifest of an export as JSON bytes.

    It has the sources, files and end offsets of all runs, this one included.
    """
    earlier = plan.earlier
    sources = {split.path for split in plan.splits}
    content = {
        "version": 1,
        "kctl_version": __version__,
        **plan.form,
        "runs": earlier.run_count + 1 if earlier else 1,
        "sources": sorted(sources | set(earlier.manifest["sources"] if earlier else ())),
        "files": entries,
        "partitions": partitions,
        "record_count": sum(entry["records"] for entry in entries),
        "read_bytes": summary.read_bytes,
        "bad_batch_count": summary.bad_batch_count,
        "problem_count": summary.problem_count,
    }
    return json.dumps(content, indent=1).encode() + b"\n"
