"""Export records to a Delta or Iceberg table: the table's own commit publishes them.

```
out                    the table; readers see the files of its commits
.out.kctl-<job>        staging: the files of a running export
.out.kctl-pending      note: the run's number, and the files that it moves to `out`
.out.kctl-lock         held by the process that exports into `out`
```

1. Claim the folder. If a note exists and the table lacks the run of its number, a crash came before
   the commit: the files of the note are removed from `out`. Then the note is removed.
2. Tasks write to the staging folder. If there is no table, it is created and synced.
3. The note is written and synced. The files are moved to `out`, and the folders synced.
4. The commit: files, run number and the end offset of each partition, atomically. Its files are
   synced.
5. The note and the staging folder are removed, then the lock.

| after a crash in step | the table has | the next run |
|---|---|---|
| 1 to 3 | the earlier runs | removes the moved files, exports the same offsets again |
| 4, before the commit | the earlier runs | the same |
| 4, after the commit, or 5 | this run, too | continues after this run |

So each offset is in the table once. A power failure during step 4 is as safe as the library's
commit.
"""

from __future__ import annotations

import json
import os
import posixpath
from collections.abc import Callable
from contextlib import closing
from typing import NamedTuple

from engine.analysis.appending import (
    Earlier,
    ExportChanged,
    check_form,
    exported_ends,
    read_earlier_problems,
)
from engine.analysis.columns import arrow_schema
from engine.analysis.export_folder import ExportFiles, ExportFolder, make_durable_dir
from engine.analysis.export_task import ExportJob, TaskReport
from engine.analysis.parquet_export import (
    ExportPlan,
    ExportSummary,
    found_problems,
    problems_table,
    remove_unlisted,
    write_table,
)
from engine.analysis.partitioned_files import FileEntry, parse_folder_values
from engine.analysis.problem import Problem
from engine.analysis.table_format import Ends, Table, TableColumns, TableFile, TableState
from engine.errors import EngineError
from engine.host.ports import Files


class TableExists(EngineError):
    """The export, without --append, would replace a table that has records."""

    exit_code = 2
    hint = "--append adds what it has not; or choose another folder for --out"

    def __init__(self, out: str) -> None:
        super().__init__(f"{out} has a table with records already")
        self.out = out


def plan_for_table(table: Table, plan: ExportPlan, *, append: bool) -> ExportPlan:
    """Return the plan of an export into a table, without the records that the table has already.

    Raises TableExists without `append`, AppendMismatch, TableFailed.
    """
    out = os.path.realpath(plan.out)
    state = table.state(_places(plan))
    if state is None:
        return plan._replace(out=out)
    if not append:
        check_empty(table, out)
    check_form(out, state.form, plan.form)
    table.check(_table_columns(plan))
    partitions = [
        {"topic": topic, "partition": number, "next_offset": end}
        for (topic, number), end in state.ends.items()
    ]
    earlier = Earlier(b"", {**state.form, "partitions": partitions, "runs": state.run_count})
    return plan._replace(out=out).after(earlier)


def check_empty(table: Table, out: str) -> None:
    """Raise TableExists if the table has a run; also raises TableFailed, AppendMismatch."""
    state = table.state(())
    if state is not None and state.run_count:
        raise TableExists(out)


def _places(plan: ExportPlan) -> list[tuple[str, int]]:
    """Return the distinct (topic, partition) that an export reads, sorted."""
    return sorted({(split.topic, split.partition) for split in plan.splits})


def export_into_table(
    run: Callable[[ExportJob], list[TaskReport]],
    files: ExportFiles,
    plan: ExportPlan,
    job_id: str,
    table: Table,
) -> ExportSummary:
    """Add the files that `run` writes to a staging folder to a Delta or Iceberg table.

    `plan` is the result of `plan_for_table`. Returns a summary. Raises ExportRunning,
    ForeignFolder, ExportChanged, DamagedData (strict), TableFailed, and the errors of `run`.
    """
    number = (plan.earlier.run_count if plan.earlier else 0) + 1
    with ExportFolder(files, plan.out, job_id, table.mark) as folder:
        state = table.state(_places(plan))
        _finish_crashed(files, plan.out, folder.pending, state)
        if (state.run_count if state else 0) != number - 1:
            raise ExportChanged(plan.out)
        job = ExportJob(folder.staging, plan.columns, plan.include_control, plan.shape)
        reports = run(job._replace(prefix=f"run{number}-{job_id}-"))
        moves, summary = _finish_staging(files, plan, folder.staging, reports, number, table)
        ends = _end_offsets(plan, reports)
        if state is None:
            make_durable_dir(files, plan.out)
            for path in table.create(_table_columns(plan), json.dumps(plan.form)):
                _sync(files, path)
            files.sync_dir(plan.out)
        if moves or state is None or ends != (plan.earlier.ends if plan.earlier else {}):
            _move(files, plan.out, folder, moves, number)
            added = [move.added for move in moves if move.added is not None]
            for path in table.commit(added, number, ends, _table_columns(plan)):
                _sync(files, path)
            _forget(files, folder.pending)
        leftovers = folder.clean_up()
    return summary._replace(leftovers=tuple(leftovers))


class _Move(NamedTuple):
    """A file of the staging folder, its path in the table's folder, and its entry in the commit.

    The entry is None for a file of problems.
    """

    source: str
    target: str
    added: TableFile | None


def _finish_staging(
    files: Files,
    plan: ExportPlan,
    staging: str,
    reports: list[TaskReport],
    run_number: int,
    table: Table,
) -> tuple[list[_Move], ExportSummary]:
    """Complete the staging folder; return the files to move into the table, and the summary.

    Files that no report names are removed, and a file of new problems is added. Raises DamagedData
    if the export is strict and records are damaged.
    """
    known = _known_problems(files, plan.out)
    problems = [problem for problem in found_problems(plan, reports) if problem not in known]
    written = [entry for report in reports for entry in report.files]
    remove_unlisted(files, staging, {entry.name for entry in written})
    moves = [_move_of(entry, table.data_folder) for entry in written]
    if problems:
        name = f"_problems/run{run_number}-{posixpath.basename(staging).rpartition('-')[2]}.parquet"
        files.make_dir(f"{staging}/_problems")
        write_table(files, f"{staging}/{name}", problems_table(problems))
        moves.append(_Move(name, name, None))
    summary = ExportSummary(
        out=plan.out,
        file_count=len(written),
        record_count=sum(report.record_count for report in reports),
        file_bytes=sum(entry.file_bytes for entry in written),
        read_bytes=sum(report.read_bytes for report in reports),
        bad_batch_count=sum(report.bad_batch_count for report in reports),
        problem_count=len(problems),
    )
    return moves, summary


def _known_problems(files: Files, out: str) -> set[Problem]:
    """Return the problems that earlier runs stored in `out`."""
    folder = f"{out}/_problems"
    names = files.list_dir(folder) if files.exists(folder) else []
    return {
        problem for name in names for problem in read_earlier_problems(files, f"{folder}/{name}")
    }


def _move_of(entry: FileEntry, data_folder: str) -> _Move:
    """Return the move of a staged file into the table, with its entry for the commit."""
    target = f"{data_folder}{entry.name}"
    values = parse_folder_values(posixpath.dirname(entry.name))
    added = TableFile(target, entry.record_count, entry.file_bytes, values)
    return _Move(entry.name, target, added)


def _end_offsets(plan: ExportPlan, reports: list[TaskReport]) -> Ends:
    """Return the offset after the last exported record of each partition, after this run."""
    spans = [span for report in reports for span in report.spans]
    return {
        (entry["topic"], entry["partition"]): entry["next_offset"]
        for entry in exported_ends(spans, plan.splits, plan.earlier)
    }


def _table_columns(plan: ExportPlan) -> TableColumns:
    """Return the columns of the table: those of the files, then those of folder names only."""
    import pyarrow as pa

    schema = arrow_schema(plan.written_columns)
    types = {"topic": pa.string(), "partition": pa.int32(), "date": pa.date32()}
    if plan.shape.file_format == "delta":
        for name in plan.shape.partition_by:
            schema = schema.append(pa.field(name, types[name], nullable=name == "date"))
    return TableColumns(schema, plan.shape.partition_by)


def _move(files: Files, out: str, folder: ExportFolder, moves: list[_Move], number: int) -> None:
    """Move a run's files from staging to the table's folder, and sync both.

    A note about them is written before, so that they can be removed if the run crashes before its
    commit.
    """
    targets = [move.target for move in moves]
    files.replace_file(folder.pending, json.dumps({"run": number, "files": targets}).encode())
    for path in sorted({posixpath.dirname(f"{out}/{target}") for target in targets}):
        make_durable_dir(files, path)
    for move in moves:
        files.rename(f"{folder.staging}/{move.source}", f"{out}/{move.target}")
    for path in sorted({posixpath.dirname(f"{out}/{target}") for target in targets}):
        files.sync_dir(path)


def _finish_crashed(files: Files, out: str, pending: str, state: TableState | None) -> None:
    """Remove the files that a crashed run moved into the table's folder but did not commit.

    Then remove the run's note. Does nothing without a note.
    """
    if not files.exists(pending):
        return
    note = json.loads(files.read_bytes(pending))
    if state is None or state.run_count < note["run"]:
        for path in (f"{out}/{target}" for target in note["files"]):
            if files.exists(path):
                files.remove(path)
                files.sync_dir(posixpath.dirname(path))
    _forget(files, pending)


def _forget(files: Files, pending: str) -> None:
    """Remove the note about files that were moved but not committed, and sync its folder."""
    files.remove(pending)
    files.sync_dir(posixpath.dirname(pending))


def _sync(files: Files, path: str) -> None:
    """Sync a file that a library wrote, and its folder."""
    with closing(files.open(path, write=True)) as file:
        file.sync()
    files.sync_dir(posixpath.dirname(path))
